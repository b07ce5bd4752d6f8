"""Policies with rules, and clusters in the short notation, for the tests of this folder."""

from __future__ import annotations

from typing import Any

from stowplan import explain, load_cluster, load_policy
from stowplan.edge.notation import read_notation

ZONE = "topology.kubernetes.io/zone"


def document(*rules: dict[str, Any], variables: Any = (), **profile: Any) -> dict[str, Any]:
    """A SchedulerPolicy of one profile; variables as `(name, expression)`."""
    named = [{"name": name, "expression": text} for name, text in variables]
    members = {"schedulerName": "default-scheduler", "variables": named, "rules": list(rules), **profile}
    return {"apiVersion": "stowplan.io/v1alpha1", "kind": "SchedulerPolicy", "profiles": [members]}


def policy(*rules: dict[str, Any], variables: Any = (), **profile: Any) -> Any:
    return load_policy(document(*rules, variables=variables, **profile))


def cluster(text: str, *objects: dict[str, Any]) -> Any:
    return load_cluster([*read_notation(text), *objects])


def explained(compiled: Any, store: Any, pod: str = "p") -> dict[str, Any]:
    """The explanation of one pod."""
    return explain(compiled, store, [pod if "/" in pod else f"default/{pod}"]).to_json()["pods"][0]


def passing(text: str, expression: str, *objects: dict[str, Any], now: float = 0.0, **rule: Any) -> list[str]:
    """Names of the nodes that a filter lets through for pod `p`."""
    store = cluster(text, *objects)
    store.set_now(now)
    found = explained(policy({"name": "r", "filter": expression, **rule}), store)
    return sorted(found.get("feasible", []))


def scored(text: str, expression: str, *objects: dict[str, Any], now: float = 0.0, **rule: Any) -> dict[str, float]:
    """Normalised scores of a rule for pod `p` by node."""
    store = cluster(text, *objects)
    store.set_now(now)
    found = explained(policy({"name": "r", "score": expression, **rule}), store)
    return found["scores"]["r"]["normalized"]
