"""What a comparison of two policies looks like: who fares differently and why, the weightiest changes first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from stowplan.cli.output import Page
from stowplan.cli.simulated import why_skipped
from stowplan.cli.tables import Table
from stowplan.cli.unasked import unasked
from stowplan.cli.usage import difference
from stowplan.cli.whys import BEFORE, NEXT, refused, scores_of, why
from stowplan.loop.comparison import Comparison, Running
from stowplan.loop.fates import Case, Change, Fate
from stowplan.text import counted, some

K = TypeVar("K")
PODS = 20
"""Pods of one kind of change that are shown unless all are asked for."""
WORKLOADS = 10
NAMES = 4
"""Pods that are named before the rest is counted."""
IN_FULL = 10
"""Pods whose scores are all shown, if all is asked for."""
WORDS = {
    Change.NEWLY_PENDING: "newly pending",
    Change.MOVED: "placed elsewhere",
    Change.NEWLY_PLACED: "newly placed",
    Change.OTHER_REASON: "pending for another reason",
}


def show(comparison: Comparison, *, wide: bool) -> None:
    """Print a comparison as tables."""
    page = Page()
    _summary(page, comparison)
    most = None if wide else PODS
    by_change = {change: [case for case in comparison.cases if case.change is change] for change in Change}
    _newly_pending(page, by_change[Change.NEWLY_PENDING], most)
    _moved(page, by_change[Change.MOVED], most)
    if wide:
        scores_of(page, [case for case in by_change[Change.MOVED] if case.swings][:IN_FULL])
    _newly_placed(page, by_change[Change.NEWLY_PLACED], most)
    _other_reasons(page, by_change[Change.OTHER_REASON], most)
    if comparison.differs:
        _alike(page, by_change[Change.SAME], most)
    if comparison.running is not None:
        _running(page, comparison.running, wide=wide)
    if comparison.old.nodes:
        difference(page, comparison.use, comparison.old.nodes, "NODE", wide=wide)
        zones, use = comparison.by_zone(comparison.use)
        if zones:
            difference(page, use, zones, "ZONE", wide=wide)
    if comparison.notes:
        page.line()
    for note in comparison.notes:
        page.line(f"note: {note}")
    page.write()


def _summary(page: Page, comparison: Comparison) -> None:
    changes = comparison.changes
    counts = [f"{changes[change]} {words}" for change, words in WORDS.items() if changes[change]]
    alike = f"; {changes[Change.SAME]} as before" if changes[Change.SAME] else ""
    differing = len(comparison.cases) - changes[Change.SAME]
    if counts:
        fare = "fares" if differing == 1 else "fare"
        page.line(f"{differing} of {len(comparison.cases)} pending pods {fare} differently: {', '.join(counts)}{alike}", bold=True)
    else:
        rescored = sum(case.old.score != case.new.score for case in comparison.cases)
        scored = f" ({counted(rescored, 'pod')} with another score)" if rescored else ""
        page.line(f"all {len(comparison.cases)} pending pods fare alike{scored}", bold=True)
    for word, title, side in zip(("OLD", "NEW"), comparison.titles, (comparison.old, comparison.new), strict=True):
        count = side.summary
        unplaced = count["unschedulable"]
        tail = f", {unplaced} {'does' if unplaced == 1 else 'do'} not fit" if unplaced else ""
        tail += f", {count['notTried']} not tried" if count["notTried"] else ""
        page.line(f"{word} {title}: {count['placed']} placed{tail}")
        unasked(page, side.policy, side.tried)


def _more(page: Page, cases: Sequence[object], most: int | None) -> None:
    if most is not None and len(cases) > most:
        page.line(f"... and {len(cases) - most} more (-o wide)")


def _newly_pending(page: Page, cases: Sequence[Case], most: int | None) -> None:
    """Where they went, why not there, and the event that each gets."""
    if not cases:
        return
    page.heading("NEWLY PENDING")
    table = Table(["POD", "OLD NODE", "REFUSED THERE BY"])
    for case in cases[:most]:
        table.add(case.pod.key, case.old.node, refused(case, NEXT, case.old.node) or "")
    page.table(table)
    _more(page, cases, most)
    for text, pods in _grouped((_said(case, case.new), case.pod.key) for case in cases):
        page.line(some(pods, None if most is None else NAMES), fg="red")
        page.line(f"  {text}")


def _moved(page: Page, cases: Sequence[Case], most: int | None) -> None:
    if not cases:
        return
    page.heading("PLACED ELSEWHERE (WHY: POINTS FOR THE NEW NODE OVER THE OLD ONE)")
    table = Table(["POD", "OLD NODE", "NEW NODE", "AHEAD BY", "WHY"])
    for case in cases[:most]:
        table.add(case.pod.key, case.old.node, case.new.node, _ahead(case), why(case))
    page.table(table)
    _more(page, cases, most)


def _ahead(case: Case) -> str:
    """Margins over the next node, before and after; `-` where there is no other node."""
    if case.looks is None:
        return ""
    return " -> ".join("-" if look.ahead is None else f"{look.ahead[0]:g}" for look in case.looks)


def _newly_placed(page: Page, cases: Sequence[Case], most: int | None) -> None:
    if not cases:
        return
    page.heading("NEWLY PLACED")
    table = Table(["POD", "NEW NODE", "SCORE", "FEASIBLE", "WAS REFUSED THERE BY"], right=frozenset({2, 3}))
    for case in cases[:most]:
        before = why_skipped(case.pod, case.old.skipped) if case.old.skipped else refused(case, BEFORE, case.new.node)
        table.add(case.pod.key, case.new.node, f"{case.new.score:g}", case.new.feasible, before or "")
    page.table(table)
    _more(page, cases, most)


def _other_reasons(page: Page, cases: Sequence[Case], most: int | None) -> None:
    if not cases:
        return
    page.heading("PENDING AS BEFORE, FOR ANOTHER REASON")
    groups = _grouped(((_said(case, case.old), _said(case, case.new)), case.pod.key) for case in cases)
    for (old, new), pods in groups[:most]:
        page.line(some(pods, None if most is None else NAMES))
        page.line(f"  old: {old}")
        page.line(f"  new: {new}")
    _more(page, groups, most)


def _alike(page: Page, cases: Sequence[Case], most: int | None) -> None:
    """Pods without a difference, in one line for each node; those that go nowhere together."""
    if not cases:
        return
    page.heading("AS BEFORE")
    places = [case.new.node or ("not tried" if case.new.skipped else "pending") for case in cases]
    groups = _grouped(zip(places, (case.pod.key for case in cases), strict=True))
    for place, pods in groups[:most]:
        page.line(f"{place}: {some(pods, None if most is None else NAMES)}")
    _more(page, groups, most)


def _said(case: Case, fate: Fate) -> str:
    """Why a pod goes nowhere, and whom it would evict."""
    if fate.skipped is not None:
        return why_skipped(case.pod, fate.skipped)
    evicting = ""
    if fate.preempts is not None:
        node, victims = fate.preempts
        evicting = f" would evict {some(victims, NAMES)} from {node}"
    return f"{fate.message or ''}{evicting}"


def _grouped(pairs: Iterable[tuple[K, str]]) -> list[tuple[K, list[str]]]:
    groups: dict[K, list[str]] = {}
    for key, pod in pairs:
        groups.setdefault(key, []).append(pod)
    return list(groups.items())


def _running(page: Page, running: Running, *, wide: bool) -> None:
    """Workloads whose running pods would fare differently, with an example of each."""
    changes = running.changes
    differing = running.judged - changes[Change.SAME]
    if not running.judged:
        return
    if not differing:
        page.line()
        page.line(f"all {running.judged} running pods that were judged would fare alike if they were scheduled anew")
        return
    page.heading(f"RUNNING PODS, EACH SCHEDULED ANEW: {differing} OF {running.judged} WOULD FARE DIFFERENTLY")
    kinds = [change for change in (Change.MOVED, Change.NEWLY_PENDING, Change.NEWLY_PLACED) if changes[change]]
    heads = {Change.MOVED: "ELSEWHERE", Change.NEWLY_PENDING: "PENDING", Change.NEWLY_PLACED: "PLACED"}
    header = ["WORKLOAD", "PODS", *(heads[kind] for kind in kinds), "FOR EXAMPLE"]
    table = Table(header, right=frozenset(range(1, 2 + len(kinds))))
    ordered = sorted(running.workloads, key=lambda workload: (-workload.differing, workload.name))
    for workload in ordered[: None if wide else WORKLOADS]:
        counts = [workload.changes.get(kind, 0) for kind in kinds]
        table.add(workload.name, workload.pods, *counts, "; ".join(_example(case) for case in workload.examples))
    page.table(table)
    _more(page, ordered, None if wide else WORKLOADS)


def _example(case: Case) -> str:
    """`api-1: n1 -> n2, Plugin -3 -> +9`."""
    places = " -> ".join(fate.node or "pending" for fate in (case.old, case.new))
    reason = why(case, 1)
    return f"{case.pod.name}: {places}{f', {reason}' if reason else ''}"
