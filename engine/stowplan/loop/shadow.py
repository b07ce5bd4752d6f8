"""In the shadow of another scheduler: each of its placements is compared with what would have been decided here.

The comparison is made when a placement is seen, before it counts: the other scheduler decided with what it had placed before,
which by then has been seen as well. Nodes with the same, highest score are as good as each other.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from stowplan.loop.records import Candidate, best, reasons
from stowplan.objects import Pod
from stowplan.policy.attempt import attempt
from stowplan.policy.compile import Policy
from stowplan.policy.nominated import Attempt
from stowplan.state import Store
from stowplan.text.moments import rfc3339_micro

KEPT = 1000
"""Disagreements that are remembered."""
AGREEMENTS = ("same", "tied")


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A pod that went elsewhere than it would have here.

    kind      `rejected` (no node for it here, or not that one), `lower` (that node scores less here)
    theirs    node it went to; `ours` the one it would have gone to here, empty: none
    """

    pod: str
    uid: str
    time: float
    kind: str
    theirs: str
    ours: str
    explanation: str
    scores: tuple[Candidate, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Scores by node and plugin, weighted."""
        scores = {each.node: {"total": each.total} | {name: part[2] for name, part in each.scores.items()} for each in self.scores}
        members = {"pod": self.pod, "uid": self.uid, "time": rfc3339_micro(self.time), "kind": self.kind, "theirs": self.theirs}
        return members | {"ours": self.ours, "explanation": self.explanation, "scores": scores}


@dataclass(slots=True)
class Shadow:
    """Agreements and disagreements so far. `outcomes`: same, tied, lower, rejected; skipped where nothing can be compared."""

    outcomes: Counter[str] = field(default_factory=Counter)
    disagreements: deque[Disagreement] = field(default_factory=lambda: deque(maxlen=KEPT))
    told: Callable[[Disagreement], None] | None = None
    """who else is to know of each of them, if anybody"""

    @property
    def agreement(self) -> float | None:
        """Share of the compared placements that are as good here; None before the first."""
        compared = sum(number for kind, number in self.outcomes.items() if kind != "skipped")
        return sum(self.outcomes[kind] for kind in AGREEMENTS) / compared if compared else None

    def placed(self, policy: Policy, store: Store, pod: Pod, node: str, now: float) -> None:
        """The other scheduler has put a pod, waiting in the store still, on a node."""
        row = store.row_of.get(node)
        found = attempt(policy, store, pod)
        if row is None or found.skipped is not None:
            self.outcomes["skipped"] += 1
            return
        ours = store.nodes[int(found.best[0])].name if len(found.best) else ""
        if row in found.best.tolist():
            self.outcomes["same" if len(found.best) == 1 else "tied"] += 1
            return
        kind = "lower" if row in found.feasible.tolist() else "rejected"
        self.outcomes[kind] += 1
        text, scores = (_lower if kind == "lower" else _rejected)(found, store, node, ours)
        differs = Disagreement(pod.key, pod.uid, now, kind, node, ours, text, scores)
        self.disagreements.append(differs)
        if self.told is not None:
            self.told(differs)

    def to_json(self) -> dict[str, Any]:
        """A `stowplan.io/v1alpha1 ShadowReport`."""
        share = self.agreement
        return {
            "apiVersion": "stowplan.io/v1alpha1",
            "kind": "ShadowReport",
            "outcomes": dict(self.outcomes),
            "agreement": None if share is None else round(share, 6),
            "disagreements": [each.to_json() for each in self.disagreements],
        }


def _lower(found: Attempt, store: Store, theirs: str, ours: str) -> tuple[str, tuple[Candidate, ...]]:
    """The plugins that make the difference, the largest first."""
    ranked = best(found, store, ours)
    mine, other = ranked[0], best(found, store, theirs)[0]
    gaps = {name: mine.scores[name][2] - other.scores[name][2] for name in mine.scores}
    parts = [f"{name} {gap:+g}" for name, gap in sorted(gaps.items(), key=lambda item: -abs(item[1])) if gap]
    text = f"{ours} scores {mine.total:g} and {theirs} {other.total:g}: {', '.join(parts)}"
    return text, (mine, other)


def _rejected(found: Attempt, store: Store, theirs: str, ours: str) -> tuple[str, tuple[Candidate, ...]]:
    """Why that node is refused here."""
    row = store.row_of[theirs]
    if row in found.infeasible:
        status = found.infeasible[row]
        text = f"{theirs} is rejected by {status.plugin or 'the profile'}: {', '.join(status.reasons)}"
    else:
        told = reasons(found.infeasible, store)
        text = found.message or (f"{theirs}: {told[0].text}" if told else f"{theirs} is not among the nodes that pass")
    return text, best(found, store, ours)[:1] if ours else ()
