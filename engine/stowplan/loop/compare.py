"""Comparing two policies on one cluster: the pending pods are placed under each, and the running ones judged anew.

Pods that fare differently are looked at closely, each in the state that the simulation has reached when it comes to it. What
differs is known only after a first run, so there is a second one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stowplan.loop.comparison import Comparison, Running, zones_of
from stowplan.loop.fates import Case, Cause, Change, Fate, Look, case, look, with_looks
from stowplan.loop.queue import in_order
from stowplan.loop.rerun import Rerun
from stowplan.loop.simulate import Placement, Simulation, simulate
from stowplan.objects import Pod
from stowplan.policy.choose import Chooser
from stowplan.policy.compile import Policy
from stowplan.policy.given import given
from stowplan.state import Store
from stowplan.text import counted

Progress = Callable[[int, int], None]
CLOSELY, CLOSELY_WORK = 500, 500_000
"""Most pods that are looked at closely, and most of them times nodes: some seconds."""
SHEETS, SHEETS_WORK = 100, 20_000
"""Most pods whose whole table of nodes is kept, and most of them times nodes: a page of some megabytes."""
UNCHANGED = 5
"""Pods without a difference whose table is kept too."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to find out beside the pending pods."""

    running: int | None = None
    """most pods that run to be judged; None: none of them is looked at"""
    sheets: bool = False
    """whether to keep tables of nodes and plugins"""


PENDING = Wanted()


def compare(
    old: Policy | None, new: Policy | None, cluster: Store, wanted: Wanted = PENDING, progress: Progress | None = None
) -> Comparison:
    """Place the pending pods under both policies, ties to the first node by name. The cluster is as before when this returns.

    None is kube-scheduler's defaults. Preemption is reported, not carried out. `progress` is called with (pods done, pods in all).
    TypeError for a policy or cluster that is still to be loaded.
    """
    (old, store), (new, _) = given(old, cluster), given(new, cluster)
    rerun = None if wanted.running is None else Rerun((old, new), store, wanted.running)
    told = _Told(progress, 4 * len(store.pending) + (0 if rerun is None else len(rerun.pods)))
    before, after = simulate(old, store, told.step), simulate(new, store, told.step)
    reached = {placement.pod.key: Fate.of(placement, placement.node) for placement in after.placements}
    cases = [case(found.pod, Fate.of(found, found.node), reached[found.pod.key]) for found in before.placements]
    closely = _Closely(store, _chosen(cases, len(store.nodes)), _tables(cases, len(store.nodes)) if wanted.sheets else {})
    found = closely.look(old, new, told)
    cases = _by_chance([found.get(one.pod.key, one) for one in cases], before, after)
    running: Running | None = None
    notes = closely.notes(cases, sheets=wanted.sheets)
    if rerun is not None:
        room = min(SHEETS, SHEETS_WORK // max(1, len(store.nodes))) - len(closely.tables)
        running = rerun.run(room if wanted.sheets else 0, told.step)
        notes += rerun.notes()
    return Comparison(before, after, tuple(cases), zones_of(store), running, tuple(notes))


@dataclass(slots=True)
class _Told:
    """Progress of several runs as one."""

    progress: Progress | None
    total: int
    done: int = 0

    def step(self, *_: int) -> None:
        """One more pod of a run."""
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.total)


def _chosen(cases: Sequence[Case], nodes: int) -> dict[str, Case]:
    """Cases to look at closely by key of the pod: those that differ, the weightiest changes first."""
    weight = {change: place for place, change in enumerate(Change)}
    differing = sorted((one for one in cases if one.change is not Change.SAME), key=lambda one: weight[one.change])
    return {one.pod.key: one for one in differing[: min(CLOSELY, CLOSELY_WORK // max(1, nodes))]}


def _tables(cases: Sequence[Case], nodes: int) -> dict[str, Case]:
    """Cases whose tables are kept: those that differ, then a few of the others that are tried."""
    room = min(SHEETS, SHEETS_WORK // max(1, nodes))
    differing = list(_chosen(cases, nodes).values())[:room]
    same = [one for one in cases if one.change is Change.SAME and one.new.skipped is None]
    return {one.pod.key: one for one in [*differing, *same[: min(UNCHANGED, room - len(differing))]]}


def _by_chance(cases: Sequence[Case], before: Simulation, after: Simulation) -> list[Case]:
    """The cases, those marked in which either policy may take either node."""
    placements: list[dict[str, Placement]] = [{one.pod.key: one for one in side.placements} for side in (before, after)]

    def tied(one: Case) -> bool:
        old, new = (found[one.pod.key] for found in placements)
        return one.old.node in after.best(new) and one.new.node in before.best(old)

    return [replace(one, chance=True) if one.change is Change.MOVED and tied(one) else one for one in cases]


@dataclass(slots=True)
class _Closely:
    """The second run under each policy."""

    store: Store
    chosen: Mapping[str, Case]
    tables: Mapping[str, Case]
    causes: dict[str, Cause] = field(default_factory=dict)

    def look(self, old: Policy, new: Policy, told: _Told) -> dict[str, Case]:
        """The chosen cases by key, with what was found out about them."""
        wanted = {**self.tables, **self.chosen}
        if not wanted:
            return {}
        other = Chooser(new, self.store)
        looks = [self._run(old, wanted, told, other), self._run(new, wanted, told, None)]
        return {
            key: replace(with_looks(one, looks[0][key], looks[1][key]), cause=self.causes.get(key)) for key, one in wanted.items()
        }

    def _run(self, policy: Policy, wanted: Mapping[str, Case], told: _Told, other: Chooser | None) -> dict[str, Look]:
        """Each wanted pod as the simulation of a policy comes to it; `other` says what the other policy would do there."""
        queue, looks = in_order(policy, self.store.pending.values()), {}

        def reach(done: int, _: int) -> None:
            told.step()
            if done < len(queue) and queue[done].key in wanted:
                pod = self.store.pending[queue[done].key]
                one = wanted[pod.key]
                looks[pod.key] = look(policy, self.store, pod, (one.old.node, one.new.node), keep=pod.key in self.tables)
                if other is not None and one.change is not Change.SAME:
                    self.causes[pod.key] = self._cause(one, pod, other)

        reach(0, len(queue))
        simulate(policy, self.store, reach)
        return looks

    def _cause(self, one: Case, pod: Pod, other: Chooser) -> Cause:
        """Whether the other policy, on the cluster as it is now, would do with the pod what the old one did."""
        choice = other.choose(pod)
        there = Fate.of(choice, None if choice.row is None else self.store.nodes[choice.row].name)
        return Cause.EARLIER_PODS if there.outcome() == one.old.outcome() else Cause.POLICY

    def notes(self, cases: Sequence[Case], *, sheets: bool) -> list[str]:
        """What was left out."""
        differing = sum(one.change is not Change.SAME for one in cases)
        found = []
        if len(self.chosen) < differing:
            found.append(f"scores and causes are known of {len(self.chosen)} of the {counted(differing, 'pod')} that differ")
        shown = sum(key in self.chosen for key in self.tables)
        if sheets and shown < differing:
            found.append(f"there is a table of nodes for {shown} of the {counted(differing, 'pod')} that differ")
        return found
