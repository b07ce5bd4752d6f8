"""Decision records: what was decided, when, under which policy, and why, kept for those who ask afterwards.

The last decisions stay in a ring. Scores by plugin are worked out at the moment of the decision, as nothing else would show
what it saw; where many decisions follow upon each other, most do without, and their records say so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from stowplan.objects import Pod
from stowplan.policy.attempt import attempt
from stowplan.policy.compile import Policy
from stowplan.policy.decision import Refusals
from stowplan.policy.evaluate import points
from stowplan.policy.nominated import Attempt
from stowplan.state import Store
from stowplan.text.moments import rfc3339_micro

BEST = 5
"""Nodes whose scores are kept."""
REASONS, LONGEST = 50, 4096
"""Reasons that are kept, and characters of a message."""
EXAMPLES = 3
"""Nodes that are named for each reason, in no order."""
PAUSE = 0.1
"""Seconds between two records with scores: working them out costs more than the decision."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that passed, its total, and by plugin the raw, normalised and weighted score, in points."""

    node: str
    total: float
    scores: dict[str, tuple[float, float, float]]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why some nodes were rejected, how many, and the first of them by name."""

    text: str
    plugin: str
    nodes: int
    examples: tuple[str, ...]


class Found(NamedTuple):
    """The last members of a record: what was found out beyond the outcome."""

    tied: int = 0
    victims: tuple[str, ...] = ()
    best: tuple[Candidate, ...] = ()
    reasons: tuple[Reason, ...] = ()
    audit: tuple[tuple[str, str], ...] = ()
    detailed: bool = False
    errors: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """One decision about one pod. `time` in epoch seconds; `best` starts with the chosen node; `detailed`: scores are there."""

    pod: str
    uid: str
    time: float
    profile: str
    generation: int
    digest: str
    attempt: int
    result: str
    node: str = ""
    score: float = 0.0
    feasible: int = 0
    message: str = ""
    tied: int = 0
    victims: tuple[str, ...] = ()
    best: tuple[Candidate, ...] = ()
    reasons: tuple[Reason, ...] = ()
    audit: tuple[tuple[str, str], ...] = ()
    """rules in audit that would have rejected the node, with the reason"""
    detailed: bool = False
    errors: tuple[tuple[str, str], ...] = ()
    """rules that had no value for some node, and the error on one of them"""

    @property
    def runner_up(self) -> Candidate | None:
        """The best node that was not chosen."""
        return self.best[1] if len(self.best) > 1 else None

    @property
    def margin(self) -> float | None:
        """By how much the chosen node was better than the runner-up."""
        other = self.runner_up
        return None if other is None else round(self.best[0].total - other.total, 6)

    def to_json(self) -> dict[str, Any]:
        """A `stowplan.io/v1alpha1 Decision`; empty members are left out."""
        members: dict[str, Any] = {
            "pod": self.pod,
            "uid": self.uid,
            "time": rfc3339_micro(self.time),
            "profile": self.profile,
            "policy": {"generation": self.generation} | ({"hash": self.digest} if self.digest else {}),
            "attempt": self.attempt,
            "result": self.result,
            "node": self.node,
            "score": self.score if self.node else None,
            "feasible": self.feasible,
            "tied": self.tied,
            "message": self.message,
            "victims": list(self.victims),
            "candidates": [_candidate_json(each) for each in self.best],
            "runnerUp": self.runner_up and self.runner_up.node,
            "margin": self.margin,
            "audit": dict(self.audit),
            "ruleErrors": dict(self.errors),
            "rejected": [_reason_json(each) for each in self.reasons],
        }
        kept = {name: value for name, value in members.items() if value not in (None, "", [], {})}
        return {"apiVersion": "stowplan.io/v1alpha1", "kind": "Decision"} | kept | {"detailed": self.detailed}


def _candidate_json(candidate: Candidate) -> dict[str, Any]:
    scores = {
        name: {"raw": raw, "normalized": normal, "weighted": weighted} for name, (raw, normal, weighted) in candidate.scores.items()
    }
    return {"node": candidate.node, "total": candidate.total, "scores": scores}


def _reason_json(reason: Reason) -> dict[str, Any]:
    return {"reason": reason.text, "plugin": reason.plugin, "nodes": reason.nodes, "examples": list(reason.examples)}


@dataclass(slots=True)
class Records:
    """The last decisions, newest last."""

    size: int = 1000
    written: int = 0
    """records since the start, those that are gone included"""
    outbox: deque[Record] | None = None
    """where somebody else takes all of them from, to keep them elsewhere; None: nobody does"""
    _ring: deque[Record] = field(init=False)
    _detailed: float = 0.0

    def __post_init__(self) -> None:
        self._ring = deque(maxlen=self.size)

    def spare(self, now: float) -> bool:
        """Whether there is time for scores; whoever is told so works them out."""
        if not self.size or now < self._detailed + PAUSE:
            return False
        self._detailed = now
        return True

    def add(self, record: Record) -> None:
        self.written += 1
        if len(record.message) > LONGEST:
            record = replace(record, message=f"{record.message[:LONGEST]} ...")
        self._ring.append(record)
        if self.outbox is not None:
            self.outbox.append(record)

    def of(self, key: str) -> list[Record]:
        """Records about a pod of this key, oldest first."""
        return [record for record in self._ring if record.pod == key]

    def __iter__(self) -> Iterator[Record]:
        return iter(self._ring)

    def __len__(self) -> int:
        return len(self._ring)


def details(policy: Policy, store: Store, pod: Pod, node: str) -> tuple[tuple[Candidate, ...], tuple[Reason, ...]]:
    """Scores of the chosen node and of the best others, and why the rest was rejected, as the cluster stands."""
    found = attempt(policy, store, pod)
    return best(found, store, node), reasons(found.infeasible, store)


def best(found: Attempt, store: Store, node: str) -> tuple[Candidate, ...]:
    """The scores of a node, then those of the best others; nothing where it is not among those that passed."""
    scoring = found.scoring
    row = store.row_of.get(node)
    if scoring is None or row is None or not len(scoring.totals):
        return ()
    order = np.argsort(-scoring.totals, kind="stable")
    ranked = [place for place in order[: BEST + 1].tolist() if found.feasible[place] != row]
    mine = np.flatnonzero(found.feasible == row).tolist()
    return tuple(_candidate(found, store, place) for place in (*mine, *ranked[: BEST - 1]))


def _candidate(found: Attempt, store: Store, place: int) -> Candidate:
    assert found.scoring is not None
    scores = {
        name: (
            points(int(each.raw[place]), each.unit),
            points(int(each.normalised[place]), each.unit),
            points(int(each.weighted[place]), found.scoring.scale),
        )
        for name, each in found.scoring.scores.items()
    }
    total = points(int(found.scoring.totals[place]), found.scoring.scale)
    return Candidate(store.nodes[int(found.feasible[place])].name, total, scores)


def reasons(refused: Refusals, store: Store) -> tuple[Reason, ...]:
    """Reasons by number of nodes, the most frequent first; a node with several counts for each.

    Where each node has one of its own, as extenders give them, the last one stands for those that are left out.
    """
    found = []
    for number, status in enumerate(refused.statuses):
        rows = np.flatnonzero(refused.codes == number)
        names = tuple(store.nodes[row].name for row in rows[:EXAMPLES].tolist())
        found += [Reason(text, status.plugin, len(rows), names) for text in status.reasons if len(rows)]
    found.sort(key=lambda reason: (-reason.nodes, reason.text))
    if rest := found[REASONS:]:
        found[REASONS:] = [Reason(f"{len(rest)} other reasons", "", sum(reason.nodes for reason in rest), ())]
    return tuple(found)
