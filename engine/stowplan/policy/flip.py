"""What decided for the winning node, and the smallest change of a weight or of a request after which another one wins.

All of it is read off an `Attempt`. Only a changed request is judged anew, by the same pipeline, because its effect on filters
and scores cannot be derived. A node counts as winning when its total is strictly higher: equal totals are a matter of chance
for kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from stowplan.objects import Amounts, Pod, show
from stowplan.policy.attempt import attempt
from stowplan.policy.compile import Policy
from stowplan.policy.evaluate import points
from stowplan.policy.nominated import Attempt
from stowplan.state import ALLOCATABLE, REQUESTED, Cluster, Numbers, Store

W = TypeVar("W")

UNITS = {"cpu": 1, "memory": 1 << 20}
"""Steps in which requests are varied: 1m of cpu, 1Mi of memory (scheduler units)."""
TRIALS = 48
"""Most evaluations of the changed pod in one direction of one resource."""
WORK = 400_000
"""Most node evaluations for all requests of a pod, about a second."""


@dataclass(frozen=True, slots=True)
class Margin:
    """How far the winner is ahead of the next node."""

    winner: int
    """row in the store, as `runner_up`"""
    runner_up: int
    points: float
    parts: tuple[tuple[str, float], ...]
    """weighted difference by plugin, those that speak for the winner first; equal scores are left out"""


@dataclass(frozen=True, slots=True)
class WeightFlip:
    """Another node wins if one plugin's weight changes from `weight` to `changed`; 0 stands for a disabled score."""

    plugin: str
    weight: float
    changed: float
    winner: int
    """row in the store"""


@dataclass(frozen=True, slots=True)
class RequestFlip:
    """Another node wins if the pod requests `changed` instead of `amount`, both in scheduler units."""

    resource: str
    amount: int
    changed: int
    winner: int
    """row in the store"""
    full: bool
    """the present winner has no room for the changed pod; otherwise scores change sides"""


def ranking(found: Attempt) -> Numbers:
    """Places in `found.feasible`, best total first, equal totals by node name; empty where nothing was scored."""
    if found.scoring is None or found.scoring.error is not None:
        return np.zeros(0, dtype=np.int64)
    return np.argsort(-found.scoring.totals, kind="stable")


def margin(found: Attempt) -> Margin | None:
    """Winner against runner-up; None with fewer than two scored nodes."""
    order = ranking(found)
    if len(order) < 2 or found.scoring is None:
        return None
    first, second = int(order[0]), int(order[1])
    scale, totals = found.scoring.scale, found.scoring.totals
    steps = {name: s.weighted for name, s in found.scoring.scores.items()}
    parts = [(name, points(int(part[first] - part[second]), scale)) for name, part in steps.items()]
    parts = sorted((part for part in parts if part[1]), key=lambda part: -part[1])
    ahead = points(int(totals[first] - totals[second]), scale)
    return Margin(int(found.feasible[first]), int(found.feasible[second]), ahead, tuple(parts))


def weight_flips(found: Attempt) -> list[WeightFlip]:
    """For each plugin the smallest integer change of its weight that makes another node win, smallest changes first."""
    order = ranking(found)
    if len(order) < 2 or found.scoring is None:
        return []
    flips = []
    for name, scored in found.scoring.scores.items():
        gain = scored.normalised * (found.scoring.scale // scored.unit)
        steps = _smallest_step(found.scoring.totals, gain, int(order[0]), scored.weight)
        if steps is not None:
            winner = int((found.scoring.totals + steps * gain).argmax())
            flips.append(WeightFlip(name, scored.weight, scored.weight + steps, int(found.feasible[winner])))
    return sorted(flips, key=lambda flip: abs(flip.changed - flip.weight))


def _smallest_step(totals: Numbers, scores: Numbers, winner: int, weight: float) -> int | None:
    """Smallest change of a weight after which some total exceeds the winner's; an increase is preferred to a decrease."""
    ahead, gain = totals[winner] - totals, scores - scores[winner]
    steps = []
    if (rising := gain > 0).any():
        steps.append(int((ahead[rising] // gain[rising] + 1).min()))
    if (falling := gain < 0).any():
        down = int((ahead[falling] // -gain[falling] + 1).min())
        if down <= weight:
            steps.append(-down)
    return min(steps, key=abs, default=None)


def request_flips(policy: Policy, store: Store, found: Attempt) -> list[RequestFlip]:
    """For cpu and memory a small change of the request that makes another node win, found by judging the changed pod.

    Requests that do not count alike in filters and scores (init containers aside, pod-level requests) are left alone, and so
    are pods on clusters too large for the number of trials. Winners need not follow a request monotonously: the change is the
    smallest one around the first that was found by doubling.
    """
    if not len(found.best) or len(store.nodes) * TRIALS > WORK:
        return []
    flips = []
    for resource, unit in UNITS.items():
        amount = plain_request(found.pod, resource)
        if not amount:
            continue
        ways = [_search(policy, store, found, resource, sign * unit) for sign in (1, -1)]
        flip = min((way for way in ways if way is not None), key=lambda f: abs(f.changed - amount), default=None)
        if flip is not None:
            flips.append(flip)
    return flips


def plain_request(pod: Pod, resource: str) -> int:
    """The request where filters, scores and accounting agree about it, otherwise 0."""
    amount = pod.spec.requests.get(resource)
    same = amount == pod.spec.score_requests.get(resource) == pod.requested.get(resource)
    return amount if same and amount == pod.nonzero[tuple(UNITS).index(resource)] else 0


def _search(policy: Policy, store: Store, found: Attempt, resource: str, unit: int) -> RequestFlip | None:
    """The flip nearest to the request in the direction of `unit`: doubling, then halving the gap."""
    amount, winner = found.pod.spec.requests.get(resource), int(found.best[0])

    def other(units: int) -> tuple[int, bool] | None:
        again = attempt(policy, store, resized(found.pod, resource, amount + units * unit))
        return (int(again.best[0]), winner in again.infeasible) if len(again.best) and winner not in again.best else None

    bound = _room(store, found, resource) - amount if unit > 0 else amount - 1
    nearest = _bisect(other, bound // abs(unit))
    if nearest is None:
        return None
    units, (row, full) = nearest
    return RequestFlip(resource, amount, amount + units * unit, row, full)


def _room(store: Store, found: Attempt, resource: str) -> int:
    """The most that some feasible node has free: with larger requests the pod fits nowhere, and nobody wins."""
    cluster = Cluster(store, found.feasible)
    return int((cluster[ALLOCATABLE][resource] - cluster[REQUESTED][resource]).max())


def _bisect(other: Callable[[int], W | None], most: int) -> tuple[int, W] | None:
    """The smallest number of units in 1..most for which `other` has an answer, and the answer, as far as trials reach."""
    same, hit, trials = 0, None, TRIALS
    for units in _doubling(most):
        trials -= 1
        if (answer := other(units)) is not None:
            hit = (units, answer)
            break
        same = units
    while hit is not None and hit[0] - same > 1 and trials > 0:
        trials -= 1
        middle = (same + hit[0]) // 2
        answer = other(middle)
        same, hit = (middle, hit) if answer is None else (same, (middle, answer))
    return hit


def _doubling(most: int) -> Iterator[int]:
    units = 1
    while units < most:
        yield units
        units *= 2
    if most > 0:
        yield most


def resized(pod: Pod, resource: str, amount: int) -> Pod:
    """The pod as it would be with another plain request of cpu or memory, in scheduler units."""
    change, place, spec = amount - pod.spec.requests.get(resource), tuple(UNITS).index(resource), pod.spec

    def with_change(amounts: Amounts) -> Amounts:
        return Amounts.of({**amounts, resource: amounts.get(resource) + change})

    nonzero = (pod.nonzero[0] + change, pod.nonzero[1]) if place == 0 else (pod.nonzero[0], pod.nonzero[1] + change)
    changed = replace(
        spec,
        requests=with_change(spec.requests),
        score_requests=with_change(spec.score_requests),
        usage=(with_change(pod.requested), nonzero),
        reported={},
    )
    return replace(pod, spec=changed, requested=changed.usage[0], nonzero=nonzero)


def written(resource: str, amount: int) -> str:
    """An amount in scheduler units as a quantity: exact for cpu (`250m`, `2`) and whole Mi, otherwise as people read it."""
    if resource == "cpu":
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if resource == "memory" and amount % (1 << 20) == 0 and amount % (1 << 30):
        return f"{amount >> 20}Mi"
    return show(resource, amount)
