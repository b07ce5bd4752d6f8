"""What a simulation looks like: placements, pods that stay where they are, and how full the nodes get."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from stowplan.cli.audited import tally
from stowplan.cli.output import Page
from stowplan.cli.tables import Table
from stowplan.cli.unasked import unasked
from stowplan.cli.victims import evicts
from stowplan.loop.simulate import VICTIMS_FATE, Placement, Simulation
from stowplan.objects import Pod
from stowplan.objects import show as quantity
from stowplan.state import Numbers
from stowplan.text import counted, some

FEW_NODES = 12
"""More nodes than that are not all shown unless asked for."""
CHANGING_MOST = 10
MOST_EVICTIONS = 20
NAMES = 4
"""Pods that are named before the rest is counted."""
ALWAYS = ("cpu", "memory", "pods")
PLENTIFUL = ("cpu", "memory", "ephemeral-storage")
"""Resources that are shown in percent."""


def show(simulation: Simulation, *, wide: bool) -> None:
    """Print a simulation as tables."""
    page = Page()
    page.line(_summary(simulation), bold=True)
    unasked(page, simulation.policy, simulation.tried)
    tally(page, simulation)
    placed = [placement for placement in simulation.placements if placement.node is not None]
    if placed:
        page.heading("PLACEMENTS")
        page.table(_placements(simulation, placed, wide))
    _evictions(page, simulation, wide)
    _unplaced(page, simulation.unplaced, wide)
    _skipped(page, [placement for placement in simulation.placements if placement.skipped is not None], wide)
    if simulation.nodes:
        _utilisation(page, simulation, wide)
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
            row += [placement.pod.spec.priority, placement.pod.spec.scheduler_name, some(others, NAMES)]
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


def _utilisation(page: Page, simulation: Simulation, wide: bool) -> None:
    use = simulation.use
    resources = [name for name in ALWAYS if name in use.after]
    resources += sorted(name for name in use.after if name not in ALWAYS and (use.after[name].any() or use.before[name].any()))
    rows = _shown_rows(simulation, resources, wide)
    few = (
        f", the {len(rows)} of {len(simulation.nodes)} nodes that change most (-o wide: all)"
        if len(rows) < len(simulation.nodes)
        else ""
    )
    page.heading(f"REQUESTED, BEFORE -> AFTER{few}")
    table = Table(["NODE", *(name.upper() if name in ALWAYS else name for name in resources)])
    for row in rows:
        table.add(simulation.nodes[row], *(_cell(simulation, name, row, wide) for name in resources))
    table.add("TOTAL", *(_cell(simulation, name, None, wide) for name in resources))
    page.table(table)


def _shown_rows(simulation: Simulation, resources: Sequence[str], wide: bool) -> list[int]:
    """Rows of the nodes to show, by name: all, or those whose share of something changes most."""
    rows = list(range(len(simulation.nodes)))
    if not wide and len(rows) > FEW_NODES:
        change = _change(simulation, resources)
        rows = sorted(rows, key=lambda row: (-change[row], simulation.nodes[row]))[:CHANGING_MOST]
    return sorted(rows, key=simulation.nodes.__getitem__)


def _change(simulation: Simulation, resources: Sequence[str]) -> list[float]:
    use = simulation.use
    changes = [(use.after[name] - use.before[name]) / np.maximum(use.allocatable[name], 1) for name in resources]
    most: list[float] = np.max(np.abs(changes), axis=0).tolist()
    return most


def _cell(simulation: Simulation, name: str, row: int | None, wide: bool) -> str:
    """`20% -> 45%`, with amounts if wide; `2 -> 4 of 8` for what is counted in pieces; `-` where a node has none of it."""
    use = simulation.use
    before, after, most = (_amount(column[name], row) for column in (use.before, use.after, use.allocatable))
    if not most and not after and not before:
        return "-"
    pieces = name not in PLENTIFUL or not most
    shown = [quantity(name, amount) if pieces else f"{round(100 * amount / most)}%" for amount in (before, after)]
    text = shown[1] if before == after else " -> ".join(shown)
    if pieces:
        return f"{text} of {quantity(name, most)}"
    return f"{text} ({quantity(name, after)} of {quantity(name, most)})" if wide else text


def _amount(numbers: Numbers, row: int | None) -> int:
    return sum(numbers.tolist()) if row is None else int(numbers[row])
