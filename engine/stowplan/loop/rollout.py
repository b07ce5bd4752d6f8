"""How the two versions of a profile compare: what each has placed, what waits for it, how long that took, and by what margin.

The figures begin anew when either version is another one; a different share of the pods leaves them as they are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stowplan.loop.waiting import Place

if TYPE_CHECKING:
    from stowplan.loop.ledger import Ledger, Outcome
    from stowplan.loop.records import Record
    from stowplan.policy.rollout import Rollout

BOUNDS = tuple(0.01 * 2**power for power in range(20))
"""Upper bounds of the times to place, in seconds (those of `scheduler_pod_scheduling_sli_duration_seconds`)."""
STABLE, CANDIDATE = "stable", "candidate"


@dataclass(slots=True)
class Tally:
    """What became of the pods of one version.

    attempts  by result, as in `Outcome`
    placed    pods that were bound; `seconds` from when they could first be tried until then, in all, and by `BOUNDS`
    margins   by how much the node chosen was better than the runner-up, where decisions have been looked at that closely
    """

    attempts: Counter[str] = field(default_factory=Counter)
    placed: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    margins: int = 0
    margin: float = 0.0
    """sum of the margins"""

    def bound(self, seconds: float) -> None:
        """A pod was bound after so long."""
        self.placed += 1
        self.seconds += seconds
        self.longest = max(self.longest, seconds)
        self.buckets[bisect_left(BOUNDS, seconds)] += 1

    def cumulative(self) -> list[tuple[str, int]]:
        """Bound -> number of pods that took no longer, as histograms of Prometheus have them."""
        total, found = 0, []
        for limit, count in zip((*(f"{limit:g}" for limit in BOUNDS), "+Inf"), self.buckets, strict=True):
            total += count
            found.append((limit, total))
        return found

    def to_json(self) -> dict[str, Any]:
        """Members that say nothing yet are left out."""
        answer: dict[str, Any] = {"placed": self.placed, "attempts": dict(self.attempts)}
        if self.placed:
            mean = round(self.seconds / self.placed, 6)
            histogram = dict(self.cumulative())
            answer["secondsToPlace"] = {"sum": round(self.seconds, 6), "mean": mean, "max": round(self.longest, 6), "le": histogram}
        if self.margins:
            answer["margin"] = {"decisions": self.margins, "mean": round(self.margin / self.margins, 6)}
        return answer


@dataclass(slots=True)
class Figures:
    """The tallies of a rollout, by name of the profile."""

    rollout: Rollout
    tallies: dict[str, Tally] = field(init=False)

    def __post_init__(self) -> None:
        self.tallies = {self.rollout.stable: Tally(), self.rollout.candidate: Tally()}

    @property
    def versions(self) -> tuple[tuple[str, str], ...]:
        """`stable` and `candidate`, with the names of their profiles."""
        return (STABLE, self.rollout.stable), (CANDIDATE, self.rollout.candidate)

    def attempted(self, outcome: Outcome, record: Record) -> None:
        """A pod was tried."""
        tally = self.tallies.get(record.profile)
        if tally is None:
            return
        tally.attempts[outcome.result] += 1
        if record.margin is not None:
            tally.margins += 1
            tally.margin += record.margin

    def bound(self, profile: str, seconds: float) -> None:
        """A pod of a profile was bound, so long after it could first be tried."""
        tally = self.tallies.get(profile)
        if tally is not None:
            tally.bound(seconds)


def follow(figures: Figures | None, rollout: Rollout | None) -> Figures | None:
    """The figures under the policy that has this rollout."""
    if rollout is None:
        return None
    if figures is None or (figures.rollout.stable, figures.rollout.texts) != (rollout.stable, rollout.texts):
        return Figures(rollout)
    figures.rollout = rollout
    return figures


def pending(ledger: Ledger) -> dict[str, Counter[Place]]:
    """Waiting pods of both versions by where they wait, by profile. Those that are being bound are not among them."""
    figures = ledger.figures
    found: dict[str, Counter[Place]] = {} if figures is None else {name: Counter() for name in figures.tallies}
    for entry in ledger.queue.pods.values() if found else ():
        name = ledger.policy.profile_of(entry.pod, ledger.store)
        if name in found and entry.place is not Place.OUT:
            found[name][entry.place] += 1
    return found


def rollout_json(ledger: Ledger) -> dict[str, Any]:
    """The rollout in force and how its versions compare; empty where there is none. Takes about 1 us for a pod that waits."""
    figures = ledger.figures
    if figures is None:
        return {}
    rollout, waiting = figures.rollout, pending(ledger)
    answer: dict[str, Any] = {"profile": rollout.stable, "percent": rollout.percent}
    if rollout.match is not None:
        answer["match"] = rollout.match.value.source.text
    if rollout.nodes is not None:
        open_to = sum(rollout.covers(node.labels) for node in ledger.store.nodes)
        answer["nodes"] = {"candidate": open_to, "total": len(ledger.store.nodes)}
    versions = {}
    for word, name in figures.versions:
        by_place = {str(place): count for place, count in sorted(waiting[name].items())}
        versions[word] = {"profile": name, "pending": waiting[name].total(), "waiting": by_place} | figures.tallies[name].to_json()
    return answer | {"versions": versions}
