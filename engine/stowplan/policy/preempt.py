"""Preemption: which pods would have to go so that one that fits nowhere fits somewhere (upstream: DefaultPreemption).

A dry run is the filters themselves on rows with pods supposed to be gone; all candidate nodes are tried at once, and
victims are spared rank by rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stowplan.objects import DisruptionBudget, Pod
from stowplan.plugins.plugin import Code
from stowplan.policy.compile import Policy, Profile
from stowplan.policy.decision import Status, fit_error
from stowplan.policy.evaluate import filter_rows
from stowplan.policy.nominated import Attempt, with_nominated
from stowplan.state import Cluster, Store, Supposition

NAME = "DefaultPreemption"
NO_VICTIMS = Status(Code.UNRESOLVABLE, ("No preemption victims found for incoming pod",))
NOT_HELPFUL = "Preemption is not helpful for scheduling"
BY_SCHEDULER = "PreemptionByScheduler"
NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."
PRIORITY_OFFSET = 1 << 31
LATEST = float("inf")


@dataclass(frozen=True, slots=True)
class Candidate:
    """Pods to evict from one node, most important first, and how many of them break a disruption budget."""

    victims: tuple[Pod, ...]
    violations: int

    def cost(self) -> tuple[int, int, int, int, float]:
        """What upstream compares, least first: violations, highest priority, sum of priorities, number, start time."""
        highest = self.victims[0].spec.priority
        earliest = min(started(pod) for pod in self.victims if pod.spec.priority == highest)
        total = sum(pod.spec.priority + PRIORITY_OFFSET for pod in self.victims)
        return self.violations, highest, total, len(self.victims), -earliest


@dataclass(frozen=True, slots=True)
class Preemption:
    """Outcome of the PostFilter plugins."""

    code: Code
    message: str
    node: str | None = None
    tied: tuple[str, ...] = ()
    """nodes that cost the same, where there was a choice"""
    candidates: dict[str, Candidate] = field(default_factory=dict)

    @property
    def victims(self) -> tuple[Pod, ...]:
        """Pods to evict from the chosen node."""
        return self.candidates[self.node].victims if self.node is not None else ()

    def to_json(self) -> dict[str, Any]:
        """In the shape of the goldens: empty members are left out."""
        candidates = {
            node: {"victims": [pod.key for pod in candidate.victims], "pdbViolations": candidate.violations}
            for node, candidate in self.candidates.items()
        }
        members = {
            "node": self.node,
            "victims": [pod.key for pod in self.victims],
            "tied": list(self.tied),
            "candidates": candidates,
        }
        return {"code": self.code.value, "message": self.message} | {name: value for name, value in members.items() if value}


def started(pod: Pod) -> float:
    """Start time; a pod that has not started counts as starting now."""
    return LATEST if pod.started is None else pod.started


def importance(pod: Pod) -> tuple[int, float]:
    """Sort key, most important first: higher priority, then earlier start (util.MoreImportantPod)."""
    return -pod.spec.priority, started(pod)


def post_filter(policy: Policy, store: Store, found: Attempt) -> Preemption | None:
    """Run PostFilter for a pod that no node takes; None if the profile has no such plugin."""
    profile = policy.profiles[found.profile]
    if not profile.points["postFilter"]:
        return None
    if NAME not in profile.points["postFilter"]:
        return Preemption(Code.UNSCHEDULABLE, "")
    if text := ineligible(store, found):
        return Preemption(Code.UNSCHEDULABLE, f"preemption: {text}")
    return _Search(profile, policy, store, found).run()


def ineligible(store: Store, found: Attempt) -> str | None:
    """Why the pod may not preempt at all."""
    pod = found.pod
    if pod.spec.preemption_policy == "Never":
        return NEVER
    row = store.row_of.get(pod.nominated_node)
    if row is None or found.infeasible[row].code is Code.UNRESOLVABLE:
        return None
    leaving = (
        other.terminating and other.disruption == BY_SCHEDULER and other.spec.priority < pod.spec.priority
        for other in store.seats[row].values()
    )
    return TERMINATING if any(leaving) else None


@dataclass(slots=True)
class Dry:
    """State of the dry run on one node."""

    row: int
    queue: list[Pod]
    """pods that may be spared, in the order in which that is tried"""
    breaking: set[str]
    """keys of those whose eviction breaks a budget"""
    gone: dict[str, Pod]
    """pods supposed to be evicted"""

    def candidate(self) -> Candidate:
        """The victims once all that can be spared are."""
        victims = [pod for pod in self.queue if pod.key in self.gone]
        if self.breaking and len(self.breaking) < len(self.queue):
            victims.sort(key=importance)
        return Candidate(tuple(victims), sum(pod.key in self.breaking for pod in victims))


class _Search:
    """One search for victims."""

    def __init__(self, profile: Profile, policy: Policy, store: Store, found: Attempt) -> None:
        self._profile, self._policy, self._store, self._found = profile, policy, store, found

    def run(self) -> Preemption:
        statuses: dict[int, Status] = {}
        dry = []
        for row, status in self._found.infeasible.items():
            if status.code is not Code.UNSCHEDULABLE:
                continue
            lower = [p for p in self._store.seats[row].values() if p.spec.priority < self._found.pod.spec.priority]
            if lower:
                dry.append(self._prepare(row, lower))
            else:
                statuses[row] = NO_VICTIMS
        dry = self._removable(dry, statuses)
        self._spare(dry)
        candidates = {self._store.nodes[d.row].name: d.candidate() for d in dry}
        empty = sorted(name for name, candidate in candidates.items() if not candidate.victims)
        candidates = {name: candidates[name] for name in sorted(candidates) if candidates[name].victims}
        if candidates:
            return picked(candidates)
        if empty:
            return Preemption(Code.ERROR, f'preemption: expected at least one victim pod on node "{empty[0]}"')
        return self._nothing(statuses)

    def _prepare(self, row: int, lower: list[Pod]) -> Dry:
        ordered = sorted(lower, key=importance)
        breaking = violating(ordered, self._store.facts.get(DisruptionBudget, {}).values())
        queue = [pod for pod in ordered if pod.key in breaking] + [pod for pod in ordered if pod.key not in breaking]
        return Dry(row, queue, breaking, {pod.key: pod for pod in queue})

    def _removable(self, dry: list[Dry], statuses: dict[int, Status]) -> list[Dry]:
        """Nodes that the pod fits once all less important pods are gone; the others get their status."""
        left = []
        for trial, status in zip(dry, self._fits(dry), strict=True):
            if status is None:
                left.append(trial)
            else:
                statuses[trial.row] = status
        return left

    def _spare(self, dry: list[Dry]) -> None:
        """Put pods back, most important first, as long as the incoming one still fits."""
        for rank in range(max((len(trial.queue) for trial in dry), default=0)):
            tried = [trial for trial in dry if rank < len(trial.queue)]
            for trial in tried:
                del trial.gone[trial.queue[rank].key]
            for trial, status in zip(tried, self._fits(tried), strict=True):
                if status is not None:
                    trial.gone[trial.queue[rank].key] = trial.queue[rank]

    def _fits(self, dry: Sequence[Dry]) -> list[Status | None]:
        """What the filters say of each node without the pods that are gone, nominated pods counted."""
        if not dry:
            return []
        opening = self._found.opening
        assert opening is not None
        rows = np.array([trial.row for trial in dry], dtype=np.intp)
        worlds = [Supposition(removed=tuple(trial.gone.values())) for trial in dry]
        filtering = filter_rows(self._profile, opening, Cluster(self._store).suppose(rows, worlds))
        statuses = [None if filtering.first[i] < 0 else filtering.first_status(i) for i in range(len(dry))]
        removed = {trial.row: worlds[i].removed for i, trial in enumerate(dry)}
        crowded, refusals = with_nominated(self._profile, self._policy, self._store, self._found, removed)
        nominated = {row: status for row, status in zip(crowded, refusals, strict=True) if status is not None}
        return [nominated.get(trial.row, status) for trial, status in zip(dry, statuses, strict=True)]

    def _nothing(self, statuses: dict[int, Status]) -> Preemption:
        nodes = len(self._store.nodes)
        reasons = [(reason, 1) for status in statuses.values() for reason in status.reasons]
        reasons.append((NOT_HELPFUL, nodes - len(statuses)))
        return Preemption(Code.UNSCHEDULABLE, f"preemption: {fit_error(nodes, reasons)}")


def picked(candidates: dict[str, Candidate]) -> Preemption:
    """The cheapest candidate, first by name among equals (preemption.pickOneNodeForPreemption)."""
    least = min(candidate.cost() for candidate in candidates.values())
    tied = tuple(name for name, candidate in candidates.items() if candidate.cost() == least)
    victims = len(candidates[tied[0]].victims)
    message = f"preemption: found a potential placement for pod on node {tied[0]}, preempting {victims} victims"
    return Preemption(Code.SUCCESS, message, tied[0], tied if len(candidates) > 1 else (), candidates)


def violating(pods: Iterable[Pod], budgets: Iterable[DisruptionBudget]) -> set[str]:
    """Keys of the pods whose eviction, in this order, exceeds a budget (filterPodsWithPDBViolation)."""
    budgets = list(budgets)
    left = {budget.key: budget.allowed for budget in budgets}
    found = set()
    for pod in pods:
        for budget in budgets:
            if not len(pod.labels) or pod.name in budget.disrupted or not budget.covers(pod.namespace, pod.labels):
                continue
            left[budget.key] -= 1
            if left[budget.key] < 0:
                found.add(pod.key)
                break
    return found
