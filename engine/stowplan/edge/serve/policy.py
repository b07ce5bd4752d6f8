"""/policy: the policy in force, what was refused since, and how the two versions of a rollout compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stowplan.edge.serve.configz import InForce, identified
from stowplan.edge.serve.pages import Asked, Page, Reply, as_json
from stowplan.edge.serve.standing import Stand, Standing

HEAD = {"apiVersion": "stowplan.io/v1alpha1", "kind": "PolicyStatus"}


def policy(
    in_force: Callable[[], InForce], rollout: Callable[[], dict[str, Any]], stand: Stand = lambda: Standing(leads=True)
) -> Page:
    """The page; `rollout` is left out where there is none (see `loop.rollout.rollout_json`)."""

    def answer(_: Asked) -> Reply:
        now, versions = in_force(), rollout()
        told = {**HEAD, **stand().to_json(), **identified(now), "profiles": list(now.policy.profiles)}
        return as_json(told | ({"rollout": versions} if versions else {}))

    return Page("/policy", answer, takes=())
