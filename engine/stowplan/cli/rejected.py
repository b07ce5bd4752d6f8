"""Rejections: the reasons grouped as in the event, and node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stowplan.cli.output import Page
from stowplan.cli.tables import Table
from stowplan.policy.decision import Status
from stowplan.policy.evaluate import points
from stowplan.policy.nominated import Attempt
from stowplan.state import Store
from stowplan.text import counted, some

REASONS = 6
"""Reasons that are shown unless all are asked for: what follows should still be on the first screen."""
LINES, MOST_LINES = 5, 50
"""Facts behind the rejections of one plugin that are shown, and that are shown if all are asked for."""
NAMES = 3
"""Nodes that are named for each reason."""


def rejections(page: Page, found: Attempt, store: Store, *, wide: bool) -> None:
    """How many nodes each reason rejects, and for example which; a node with several reasons counts for each."""
    groups: dict[tuple[str, str], list[str]] = {}
    for row, status in found.infeasible.items():
        for reason in status.reasons:
            groups.setdefault((reason, _plugin(found, status)), []).append(store.nodes[row].name)
    if not groups:
        return
    page.heading(f"REJECTED: {len(found.infeasible)} OF {len(store.nodes)} NODES")
    table = Table(["COUNT", "REASON", "PLUGIN", "NODES"], right=frozenset({0}))
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    for (reason, plugin), nodes in ordered[: None if wide else REASONS]:
        table.add(len(nodes), reason, plugin, some(sorted(nodes), None if wide else NAMES))
    page.table(table)
    if len(ordered) > REASONS and not wide:
        page.line(f"... and {counted(len(ordered) - REASONS, 'rarer reason')} (-o wide)")


def behind(page: Page, details: Mapping[str, Sequence[str]], *, wide: bool) -> None:
    """What plugins say about their rejections, a few lines of each."""
    for plugin, lines in details.items():
        for line in lines[: MOST_LINES if wide else LINES]:
            page.line(f"  {plugin}: {line}")
        rest = len(lines) - (MOST_LINES if wide else LINES)
        if rest > 0:
            page.line(f"  {plugin}: ... and {rest} more{'' if wide else ' (-o wide)'}")


def _plugin(found: Attempt, status: Status) -> str:
    """The plugin that gave a status; nodes outside the candidates are left out by those that narrow the search."""
    return status.plugin or (", ".join(found.opening.narrowing) if found.opening else "")


def all_nodes(page: Page, found: Attempt, store: Store, *, wide: bool) -> None:
    """Every node by name: its total, or the first plugin that rejects it with all its reasons; wide: every such plugin."""
    scoring = found.scoring
    steps = {} if scoring is None else dict(zip(found.feasible.tolist(), scoring.totals.tolist(), strict=False))
    totals = {row: points(total, scoring.scale if scoring else 1) for row, total in steps.items()}
    header = ["NODE", "TOTAL", "REJECTED BY", "REASONS"]
    page.heading("ALL NODES")
    table = Table([*header, "ALL PLUGINS THAT REJECT IT"] if wide else header, right=frozenset({1}))
    for row in sorted(range(len(store.nodes)), key=lambda row: store.nodes[row].name):
        status = found.infeasible.get(row)
        cells = [store.nodes[row].name, str(totals.get(row, "-" if status else ""))]
        cells += [_plugin(found, status), ", ".join(status.reasons)] if status else ["", ""]
        table.add(*cells, *([_all_failing(found, row)] if wide else []))
    page.table(table)


def _all_failing(found: Attempt, row: int) -> str:
    filtering = found.filtering
    if filtering is None:
        return ""
    failing = [name for name in filtering.names if filtering.rejected[name][row]]
    return "; ".join(f"{name}: {', '.join(filtering.status(name, row).reasons)}" for name in failing)
