"""One pod under two policies: what each does with it, what changes, and what sets the two nodes apart."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stowplan.loop.simulate import Placement
from stowplan.objects import Pod
from stowplan.policy.attempt import attempt
from stowplan.policy.choose import Choice
from stowplan.policy.compile import Policy
from stowplan.policy.preempt import Preemption
from stowplan.policy.standing import Sheet, Standing, Swing, sheet, swings
from stowplan.state import Store


class Change(enum.StrEnum):
    """What becomes of a pod; the weightiest first."""

    NEWLY_PENDING = "newlyPending"
    MOVED = "moved"
    NEWLY_PLACED = "newlyPlaced"
    OTHER_REASON = "otherReason"
    """pending as before, but its event says something else"""
    SAME = "same"


class Cause(enum.StrEnum):
    """Why a pod that waits fares differently."""

    POLICY = "policy"
    """the new policy decides differently about the pod on the very cluster that the old one saw"""
    EARLIER_PODS = "earlierPods"
    """on that cluster it would decide alike; what differs is where pods before it went"""


@dataclass(frozen=True, slots=True)
class Fate:
    """What one policy does with one pod: a node, or why there is none."""

    node: str | None
    score: float = 0
    feasible: int = 0
    message: str | None = None
    skipped: str | None = None
    preempts: tuple[str, tuple[str, ...]] | None = None
    """node on which evictions would make room, and keys of the victims"""

    @classmethod
    def of(cls, found: Placement | Choice, node: str | None) -> Fate:
        """The fate that a simulation or a chooser found, with the name of the node."""
        score = found.score if isinstance(found, Placement) else found.total
        return cls(node, score, found.feasible, found.message, found.skipped, _preempts(found.preemption))

    def outcome(self) -> tuple[object, ...]:
        """What users see of it: scores are not compared."""
        return (self.node,) if self.node is not None else (self.message, self.skipped, self.preempts)

    def to_json(self) -> dict[str, Any]:
        """Members as in a Simulation; empty ones are left out."""
        members: dict[str, Any] = {"node": self.node}
        if self.node is not None:
            members |= {"score": self.score, "feasible": self.feasible}
        members |= {"skipped": self.skipped, "message": self.message}
        if self.preempts is not None:
            members["preemption"] = {"node": self.preempts[0], "victims": list(self.preempts[1])}
        return {name: value for name, value in members.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Look:
    """A pod looked at closely under one policy: the nodes that matter, and where it was asked for, all of them."""

    standings: Mapping[str, Standing]
    weights: Mapping[str, float]
    ahead: tuple[float, str] | None
    """by how much its node is ahead, and of which"""
    sheet: Sheet | None = None

    def to_json(self) -> dict[str, Any]:
        return {} if self.ahead is None else {"margin": self.ahead[0], "runnerUp": self.ahead[1]}


@dataclass(frozen=True, slots=True)
class Case:
    """One pod under both policies."""

    pod: Pod
    old: Fate
    new: Fate
    change: Change
    cause: Cause | None = None
    looks: tuple[Look, Look] | None = None
    swings: tuple[Swing, ...] = ()
    chance: bool = False
    """both nodes tie under both policies: kube-scheduler takes either"""

    def to_json(self) -> dict[str, Any]:
        """`pod`, `change`, `cause`, `old`, `new`; `nodes`, `swings` and margins where it was looked at closely."""
        answer: dict[str, Any] = {"pod": self.pod.key, "change": self.change.value}
        answer |= {"cause": self.cause.value} if self.cause is not None else {}
        answer |= {"chance": True} if self.chance else {}
        sides = {"old": self.old.to_json(), "new": self.new.to_json()}
        if self.looks is None:
            return answer | sides
        old, new = self.looks
        answer |= {"old": sides["old"] | old.to_json(), "new": sides["new"] | new.to_json()}
        names = dict.fromkeys([*old.standings, *new.standings])
        answer["nodes"] = {
            name: {word: look.standings[name].to_json() for word, look in (("old", old), ("new", new)) if name in look.standings}
            for name in names
        }
        answer["swings"] = [_swing_json(swing) for swing in self.swings]
        return answer


def _swing_json(swing: Swing) -> dict[str, Any]:
    weight = dict(zip(("old", "new"), swing.weights, strict=True))
    return {"plugin": swing.plugin, "old": swing.old, "new": swing.new, "weight": weight}


def _preempts(found: Preemption | None) -> tuple[str, tuple[str, ...]] | None:
    if found is None or found.node is None:
        return None
    return found.node, tuple(pod.key for pod in found.victims)


def case(pod: Pod, old: Fate, new: Fate) -> Case:
    """A pod with what becomes of it."""
    change = Change.SAME
    if old.outcome() != new.outcome():
        change = _change(old.node is not None, new.node is not None)
    return Case(pod, old, new, change)


def _change(placed_before: bool, placed_after: bool) -> Change:
    if placed_before:
        return Change.MOVED if placed_after else Change.NEWLY_PENDING
    return Change.NEWLY_PLACED if placed_after else Change.OTHER_REASON


def look(policy: Policy, store: Store, pod: Pod, nodes: Iterable[str | None], *, keep: bool) -> Look:
    """Judge a pod on every node as the cluster stands, and pick out some nodes; `keep` all of it."""
    table = sheet(attempt(policy, store, pod))
    rows = {name: store.row_of[name] for name in nodes if name is not None}
    standings = {name: table.standing(row) for name, row in rows.items()}
    ahead = None if table.ahead is None else (table.ahead[0], store.nodes[table.ahead[1]].name)
    return Look(standings, table.weights, ahead, table if keep else None)


def with_looks(found: Case, old: Look, new: Look) -> Case:
    """The case, looked at closely under both policies."""
    views: tuple[Swing, ...] = ()
    if found.old.node is not None and found.new.node is not None:
        first, second = found.old.node, found.new.node
        pairs = [(side.standings[first], side.standings[second]) for side in (old, new)]
        views = tuple(swings(pairs[0], pairs[1], (old.weights, new.weights)))
    return replace(found, looks=(old, new), swings=views)
