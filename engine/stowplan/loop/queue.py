"""The order in which pending pods are tried."""

from __future__ import annotations

from collections.abc import Iterable

from stowplan.objects import Pod
from stowplan.policy.compile import Policy


def in_order(policy: Policy, pods: Iterable[Pod]) -> list[Pod]:
    """Pods as the active queue would give them out; all profiles share one order. Equal pods keep their places."""
    for profile in policy.profiles.values():
        order = profile.plugins[profile.points["queueSort"][0]].order
        if order is not None:
            return sorted(pods, key=order)
    return list(pods)
