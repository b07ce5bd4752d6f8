"""What follows from one attempt, as JSON: requests, what decided and by how much, what would flip it, what would make it fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stowplan.policy.compile import Policy
from stowplan.policy.details import details
from stowplan.policy.flip import margin, request_flips, weight_flips, written
from stowplan.policy.nominated import Attempt
from stowplan.policy.unmet import cheapest, remedies
from stowplan.state import Store


def analysis_json(policy: Policy, store: Store, found: Attempt) -> dict[str, Any]:
    """`requests` for every pod that was tried, `details` behind rejections, and depending on how it fares:

    it fits              `margin`, if another node passes the filters too, `decidedBy`, unless the best nodes tie; `flips`
    it fits nowhere      `remedies`, `needs`

    Empty ones are left out. Points of `margin` are weighted. A flip has either a `plugin` and its weights or a `resource` and its
    requests, before and after. `needs` are nodes with what would have to change for them to take the pod; `possible` is false
    where nothing would.
    """
    if found.skipped is not None:
        return {}
    members: dict[str, Any] = {
        "requests": {name: written(name, amount) for name, amount in found.pod.spec.requests.items() if amount}
    }
    if len(found.best):
        members |= _margin_json(store, found)
        members["flips"] = list(_flips_json(policy, store, found))
    else:
        members["remedies"] = list(remedies(store, found))
        members["needs"] = [
            {"nodes": list(way.nodes), "needs": list(way.needs), "possible": way.possible} for way in cheapest(store, found)
        ]
    members["details"] = details(policy, store, found)
    return {name: value for name, value in members.items() if value or name == "requests"}


def _margin_json(store: Store, found: Attempt) -> dict[str, Any]:
    ahead = margin(found)
    if ahead is None:
        return {}
    names = {"winner": store.nodes[ahead.winner].name, "runnerUp": store.nodes[ahead.runner_up].name}
    answer: dict[str, Any] = {"margin": names | {"points": ahead.points, "parts": dict(ahead.parts)}}
    return answer | ({"decidedBy": ahead.parts[0][0]} if ahead.points else {})


def _flips_json(policy: Policy, store: Store, found: Attempt) -> Iterator[dict[str, Any]]:
    for flip in weight_flips(found):
        change = {"plugin": flip.plugin, "before": flip.weight, "after": flip.changed}
        yield change | {"winner": store.nodes[flip.winner].name}
    for other in request_flips(policy, store, found):
        before, after = written(other.resource, other.amount), written(other.resource, other.changed)
        yield {"resource": other.resource, "before": before, "after": after, "winner": store.nodes[other.winner].name}
