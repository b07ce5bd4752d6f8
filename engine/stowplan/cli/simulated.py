"""What a simulation looks like: placements, pods that stay where they are, and how full the nodes get."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from stowplan.cli.audited import broken, tally
from stowplan.cli.output import Page
from stowplan.cli.tables import Table
from stowplan.cli.unasked import unasked
from stowplan.cli.usage import utilisation
from stowplan.cli.victims import evicts
from stowplan.loop.simulate import VICTIMS_FATE, Placement, Simulation
from stowplan.objects import Pod
from stowplan.text import counted, some

MOST_EVICTIONS = 20
NAMES = 4
"""Pods that are named before the rest is counted."""


def show(simulation: Simulation, *, wide: bool) -> None:
    """Print a simulation as tables."""
    page = Page()
    page.line(_summary(simulation), bold=True)
    unasked(page, simulation.policy, simulation.tried)
    tally(page, simulation)
    broken(page, simulation)
    placed = [placement for placement in simulation.placements if placement.node is not None]
    if placed:
        page.heading("PLACEMENTS")
        page.table(_placements(simulation, placed, wide))
    _evictions(page, simulation, wide)
    _unplaced(page, simulation.unplaced, wide)
    _skipped(page, [placement for placement in simulation.placements if placement.skipped is not None], wide)
    if simulation.nodes:
        utilisation(page, simulation.use, simulation.nodes, wide=wide)
    page.write()


def _summary(simulation: Simulation) -> str:
    count = simulation.summary
    unplaced, left = count["unschedulable"], count["notTried"]
    tail = [f"{unplaced} {'does' if unplaced == 1 else 'do'} not fit"] if unplaced else []
    tail += [f"{left} not tried"] if left else []
    tail += [f"{counted(count['evicted'], 'pod')} evicted"] if count["evicted"] else []
    placed = f"{count['placed']} of {count['pending']} pending pods placed on {counted(count['nodes'], 'node')}"
    return "; ".join([placed, *tail])


def _placements(simulation: Simulation, placed: Sequence[Placement], wide: bool) -> Table:
    header = ["POD", "NODE", "SCORE", "TIES", "FEASIBLE"]
    table = Table(
        [*header, "PRIORITY", "PROFILE", "TIED NODES"] if wide else header, right=frozenset({2, 3, 4, 5} if wide else {2, 3, 4})
    )
    for placement in placed:
        ties = 1 if placement.tied is None else int(np.bitwise_count(placement.tied).sum(dtype=np.int64))
        row = [placement.pod.key, placement.node, placement.score, ties - 1, placement.feasible]
        if wide:
            others = [node for node in simulation.best(placement) if node != placement.node]
            row += [placement.pod.spec.priority, placement.profile, some(others, NAMES)]
        table.add(*row)
    return table


def _evictions(page: Page, simulation: Simulation, wide: bool) -> None:
    """Who had to go, from where and for whom."""
    evictions = list(simulation.evictions)
    if not evictions:
        return
    page.heading(f"EVICTED ({VICTIMS_FATE})")
    budgets = any(eviction.budget is not None for eviction in evictions)
    table = Table(["POD", "PRIORITY", "NODE", "FOR", "PRIORITY", *(["BREAKS BUDGET"] if budgets else [])], right=frozenset({1, 4}))
    for eviction in evictions[: None if wide else MOST_EVICTIONS]:
        pod, preemptor, budget = eviction.pod, eviction.preemptor, eviction.budget
        row = (pod.key, pod.spec.priority, eviction.node, preemptor.key, preemptor.spec.priority)
        table.add(*row, *([budget.key if budget else ""] if budgets else []))
    page.table(table)
    if len(evictions) > MOST_EVICTIONS and not wide:
        page.line(f"... and {len(evictions) - MOST_EVICTIONS} more (-o wide)")


def _unplaced(page: Page, unplaced: Iterable[Placement], wide: bool) -> None:
    """Event messages, each once, with the pods that get it."""
    groups: dict[tuple[str, str], list[Pod]] = {}
    for placement in unplaced:
        evicted = ""
        if placement.preemption is not None and placement.preemption.victims:
            evicted = evicts(placement.preemption, done=bool(placement.evicted))
        groups.setdefault((placement.message or "", evicted), []).append(placement.pod)
    if groups:
        page.heading("UNSCHEDULABLE")
    for (message, evicted), pods in groups.items():
        page.line(some([pod.key for pod in pods], len(pods) if wide else NAMES), fg="red")
        page.line(f"  {message}")
        dominants = {pod.spec.dominant for pod in pods if pod.spec.dominant != "containers" and "Insufficient cpu" in message}
        for dominant in sorted(dominants):
            page.line(f"  the cpu request is that of {dominant}")
        if evicted:
            page.line(f"  {evicted}")


def _skipped(page: Page, skipped: Sequence[Placement], wide: bool) -> None:
    groups: dict[str, list[str]] = {}
    for placement in skipped:
        groups.setdefault(why_skipped(placement.pod, placement.skipped or ""), []).append(placement.pod.key)
    if not groups:
        return
    page.heading("NOT TRIED")
    table = Table(["PODS", "WHY"])
    for why, keys in groups.items():
        table.add(some(keys, len(keys) if wide else NAMES), why)
    page.table(table)


def why_skipped(pod: Pod, skipped: str) -> str:
    """Why nobody tries a pod, in words."""
    if skipped == "no profile":
        return f'no profile serves "{pod.spec.scheduler_name}"'
    if skipped == "gated":
        return f"gated: waiting for scheduling gates: [{' '.join(pod.spec.gates)}]" if pod.spec.gates else "gated by a plugin"
    return "it is being deleted"
