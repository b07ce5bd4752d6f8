"""What callers from Python hand over: a policy, or none for the defaults, and a cluster, both of them loaded."""

from __future__ import annotations

from typing import Any

from stowplan.policy.compile import Policy, load
from stowplan.state import Store


def given(policy: Policy | None, cluster: Store) -> tuple[Policy, Store]:
    """The policy (None: kube-scheduler's defaults) and the cluster. TypeError for what is still to be loaded."""
    if policy is not None and not isinstance(policy, Policy):
        raise TypeError(_wrong("policy", policy, "load_policy"))
    if not isinstance(cluster, Store):
        raise TypeError(_wrong("cluster", cluster, "load_cluster"))
    return load(None) if policy is None else policy, cluster


def _wrong(what: str, found: Any, loader: str) -> str:
    shown = "None" if found is None else f"{type(found).__name__} {found!r:.40}"
    return f"the {what} is {shown}: load it with {loader} and hand over what that gives"
