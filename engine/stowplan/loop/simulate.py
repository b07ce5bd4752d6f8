"""Simulation: the pending pods in queue order, each seeing those placed before it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stowplan.loop.queue import in_order
from stowplan.loop.trial import Trial
from stowplan.objects import DisruptionBudget, Pod, show
from stowplan.policy.choose import Choice, Chooser
from stowplan.policy.compile import Policy
from stowplan.policy.explain import API_VERSION, profiles_json
from stowplan.policy.extenders import left_out_json
from stowplan.policy.given import given
from stowplan.policy.preempt import Preemption
from stowplan.state import ALLOCATABLE, PODS, REQUESTED, Cluster, Mask, Numbers, Store, collector_off
from stowplan.text import counted

if TYPE_CHECKING:
    from stowplan.plugins.cel_rule.compiled import NoValue


class OnPreemption(enum.StrEnum):
    """What a simulation does with a preemption: say what it would do, or carry it out."""

    REPORT = "report"
    APPLY = "apply"


VICTIMS_FATE = "deleted at once, not scheduled again"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one pod went, or why it went nowhere."""

    pod: Pod
    skipped: str | None
    node: str | None
    score: float
    feasible: int
    message: str | None
    preemption: Preemption | None
    """what preemption would do or, where there are `evicted` pods, has done before the pod was tried a second time"""
    tied: NDArray[np.uint8] | None
    """packed bits over the rows: nodes with the same, highest total"""
    evicted: tuple[Pod, ...] = ()
    """pods that had to go for this one, most important first; all of them from the preemption's node"""
    objections: Mapping[str, str] = field(default_factory=dict)
    """rules in audit that would have rejected the node, with the reason"""
    no_values: Mapping[str, NoValue] = field(default_factory=dict)
    """rules that had no value for some node, also on nodes that others reject"""
    version: str = ""
    """name of the profile where that is not the scheduler name of the pod"""

    @property
    def profile(self) -> str:
        """Name of the profile that tried the pod."""
        return self.version or self.pod.spec.scheduler_name


@dataclass(frozen=True, slots=True)
class RuleErrors:
    """A rule that had no value for some node in so many decisions, and the first error with its pod."""

    profile: str
    rule: str
    count: int
    error: str
    pod: Pod

    def to_json(self) -> dict[str, Any]:
        """Count, and the first error with the key of its pod."""
        return {"profile": self.profile, "rule": self.rule, "count": self.count, "error": self.error, "pod": self.pod.key}


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod that had to go, the node that it left, and the pod that took its place or tried to."""

    pod: Pod
    node: str
    preemptor: Pod
    budget: DisruptionBudget | None
    """the disruption budget that this breaks"""

    def to_json(self) -> dict[str, Any]:
        """Keys and names; `brokenBudget` only where there is one."""
        answer = {"pod": self.pod.key, "node": self.node, "preemptor": self.preemptor.key}
        return answer | ({"brokenBudget": self.budget.key} if self.budget is not None else {})


@dataclass(frozen=True, slots=True)
class Use:
    """Allocatable and requested amounts by resource, int64 over the nodes in the order of `nodes`."""

    allocatable: dict[str, Numbers]
    before: dict[str, Numbers]
    after: dict[str, Numbers]

    def to_json(self, nodes: Sequence[str]) -> dict[str, Any]:
        """`total` and, by name, the `nodes` on which something changes, as quantities by resource."""
        changed = np.any([self.before[name] != self.after[name] for name in self.after], axis=0) if nodes else np.zeros(0)
        rows = sorted(np.flatnonzero(changed).tolist(), key=nodes.__getitem__)
        return {"total": self._amounts(slice(None)), "nodes": {nodes[row]: self._amounts(slice(row, row + 1)) for row in rows}}

    def _amounts(self, rows: slice) -> dict[str, dict[str, str]]:
        columns = {"before": self.before, "after": self.after, "allocatable": self.allocatable}
        sums = {name: {when: sum(column[name][rows].tolist()) for when, column in columns.items()} for name in self.after}
        return {name: {when: show(name, n) for when, n in found.items()} for name, found in sums.items() if any(found.values())}


@dataclass(frozen=True, slots=True, repr=False)
class Simulation:
    """Placements in queue order, and how full the nodes were and would be."""

    policy: Policy
    nodes: tuple[str, ...]
    placements: tuple[Placement, ...]
    use: Use
    on_preemption: OnPreemption = OnPreemption.REPORT

    def __repr__(self) -> str:
        words = {"placed": "placed", "unschedulable": "unschedulable", "notTried": "not tried", "evicted": "evicted"}
        counts = [f"{number} {words[name]}" for name, number in self.summary.items() if name in words and number]
        pending, nodes = counted(len(self.placements), "pending pod"), counted(len(self.nodes), "node")
        return f"<Simulation of {pending} on {nodes}: {', '.join(counts) or 'none'}>"

    @property
    def evictions(self) -> Iterator[Eviction]:
        """Pods that were evicted, in the order in which that happened."""
        for placement in self.placements:
            done = placement.preemption
            for victim in placement.evicted if done is not None and done.chosen is not None else ():
                assert done is not None
                assert done.chosen is not None
                yield Eviction(victim, done.node or "", placement.pod, done.chosen.broken.get(victim.key))

    @property
    def unplaced(self) -> list[Placement]:
        """Pods that were tried and fit nowhere."""
        return [placement for placement in self.placements if placement.node is None and placement.skipped is None]

    def best(self, placement: Placement) -> list[str]:
        """Names of the nodes with the highest total for a placed pod."""
        if placement.tied is None:
            return []
        rows = np.flatnonzero(np.unpackbits(placement.tied, count=len(self.nodes)))
        return sorted(self.nodes[row] for row in rows.tolist())

    def to_json(self) -> dict[str, Any]:
        """`{"sequence": [...], "profiles": {...}}`, the shape of a golden, as a `stowplan.io/v1alpha1 Simulation`.

        Beside that, `summary` counts pods, `requested` has the amounts before and after, in all and on nodes that change,
        `preemption` says what became of victims, and `extenders`, if there are any, whose verdicts are left out.
        """
        sequence = [self._placement_json(placement) for placement in self.placements]
        preemption: dict[str, Any] = {"mode": self.on_preemption.value}
        if self.on_preemption is OnPreemption.APPLY:
            preemption |= {"victims": VICTIMS_FATE, "evictions": [eviction.to_json() for eviction in self.evictions]}
        answer = {"apiVersion": API_VERSION, "kind": "Simulation", "summary": self.summary, "sequence": sequence}
        answer |= {"preemption": preemption, "requested": self.use.to_json(self.nodes)}
        answer |= {"ruleErrors": [each.to_json() for each in self.rule_errors]} if self.rule_errors else {}
        return answer | left_out_json(self.policy, self.tried) | {"profiles": profiles_json(self.policy)}

    @property
    def rule_errors(self) -> list[RuleErrors]:
        """The rules that had no value for some node and pod, in order of profiles and rules."""
        found: dict[tuple[str, str], RuleErrors] = {}
        for placement in self.placements:
            for rule, said in placement.no_values.items():
                first = found.setdefault((placement.profile, rule), RuleErrors(placement.profile, rule, 0, said.why, placement.pod))
                found[placement.profile, rule] = replace(first, count=first.count + 1)
        return [found[key] for key in sorted(found)]

    @property
    def summary(self) -> dict[str, int]:
        """Numbers of pods by what became of them."""
        placed, unplaced = sum(placement.node is not None for placement in self.placements), len(self.unplaced)
        return {
            "nodes": len(self.nodes),
            "pending": len(self.placements),
            "placed": placed,
            "unschedulable": unplaced,
            "notTried": len(self.placements) - placed - unplaced,
            "evicted": sum(len(placement.evicted) for placement in self.placements),
        }

    @property
    def tried(self) -> list[Pod]:
        """Pods that there is a verdict about."""
        return [placement.pod for placement in self.placements if placement.skipped is None]

    def _placement_json(self, placement: Placement) -> dict[str, Any]:
        answer: dict[str, Any] = {"pod": placement.pod.key}
        members = {
            "profile": placement.version,
            "skipped": placement.skipped,
            "node": placement.node,
            "score": placement.score,
            "best": self.best(placement),
            "feasible": placement.feasible,
            "message": placement.message,
            "preemption": placement.preemption and placement.preemption.to_json(),
            "evicted": [pod.key for pod in placement.evicted],
            "audit": dict(placement.objections),
            "ruleErrors": {rule: said.why for rule, said in placement.no_values.items()},
        }
        return answer | {name: value for name, value in members.items() if value}


def simulate(
    policy: Policy | None,
    cluster: Store,
    progress: Callable[[int, int], None] | None = None,
    preemption: OnPreemption | str = OnPreemption.REPORT,
) -> Simulation:
    """Place every pending pod; ties go to the first node by name. The cluster is as before when this returns or raises.

    `progress` is called with (pods done, pods in all) after each pod. With `preemption` "apply", victims are deleted at
    once and not scheduled again, and their preemptor is tried again at once, first on the node that it is then nominated
    to. Pods that were tried before are not tried again. Without a policy kube-scheduler's defaults apply. ValueError for
    another word, TypeError for a policy or cluster that is still to be loaded.
    """
    policy, cluster = given(policy, cluster)
    if preemption not in [choice.value for choice in OnPreemption]:
        raise ValueError(f"preemption is {' or '.join(choice.value for choice in OnPreemption)}, not {preemption!r}")
    mode = OnPreemption(preemption)
    queue = in_order(policy, cluster.pending.values())
    names, before = tuple(node.name for node in cluster.nodes), amounts(cluster)
    run = _Run(Chooser(policy, cluster), cluster, Trial(policy, cluster), mode)
    placements: list[Placement] = []
    try:
        with collector_off():
            for done, pod in enumerate(queue, 1):
                placements.append(run.place(pod))
                if progress is not None:
                    progress(done, len(queue))
        after = amounts(cluster)
    finally:
        run.trial.undo()
    view = Cluster(cluster)
    allocatable = {name: view[ALLOCATABLE][name].copy() for name in before}
    return Simulation(policy, names, tuple(placements), Use(allocatable, before, after), mode)


@dataclass(slots=True)
class _Run:
    """One pod after the other."""

    chooser: Chooser
    store: Store
    trial: Trial
    mode: OnPreemption

    def place(self, pod: Pod) -> Placement:
        """Try a pod, twice if it may preempt, and bind it if it fits."""
        now = self.store.pending[pod.key]  # it may have lost its nomination meanwhile
        first = choice = self.chooser.choose(now)
        evicted: tuple[Pod, ...] = ()
        if self.mode is OnPreemption.APPLY:
            done = first.preemption
            if done is not None and done.node is not None and done.chosen is not None:
                evicted = done.chosen.victims
                now = self.trial.preempt(now, done.node, done.chosen)
                choice = self.chooser.choose(now)
            self._denominate(now, choice)
        node = None if choice.row is None else self.store.nodes[choice.row].name
        objections: Mapping[str, str] = {}
        tied = _packed(choice.tied)
        if choice.row is not None and node is not None:
            objections = self.chooser.objections(now, choice.row)
            self.trial.place(now, node, choice.facts_at(choice.row))
        reported = first.preemption if evicted else choice.preemption
        said = (choice.total, choice.feasible, choice.message)
        version = self.chooser.version(now)
        return Placement(pod, choice.skipped, node, *said, reported, tied, evicted, objections, choice.no_values, version)

    def _denominate(self, pod: Pod, choice: Choice) -> None:
        """A pod that was tried in vain loses its nomination, unless it may not preempt or has just been given it."""
        if choice.row is not None or choice.skipped is not None or not pod.nominated_node:
            return
        if choice.preemption is None or choice.preemption.hopeless:
            self.trial.nominate(pod, "")


def _packed(tied: Mask | None) -> NDArray[np.uint8] | None:
    return None if tied is None else np.packbits(tied)


def amounts(store: Store) -> dict[str, Numbers]:
    """Requested amounts by resource, and the number of pods, over the nodes."""
    view = Cluster(store)
    resources = [name for name in view[ALLOCATABLE].names if name != "pods"]
    return {name: view[REQUESTED][name].copy() for name in resources} | {"pods": view[PODS]["pods"].copy()}
