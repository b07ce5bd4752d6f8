"""How full nodes, zones or other parts of a cluster are, before and after, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stowplan.cli.output import Page
from stowplan.cli.tables import Table
from stowplan.loop.simulate import Use
from stowplan.objects import show as quantity
from stowplan.state import Numbers

FEW = 12
"""More nodes than that are not all shown unless asked for."""
CHANGING_MOST = 10
ALWAYS = ("cpu", "memory", "pods")
PLENTIFUL = ("cpu", "memory", "ephemeral-storage")
"""Resources that are shown in percent."""


def utilisation(page: Page, use: Use, names: Sequence[str], *, wide: bool) -> None:
    """What is requested on each node before and after; of many nodes those that change most."""
    resources = _resources(use)
    rows = _shown_rows(use, names, resources, wide)
    few = ""
    if len(rows) < len(names):
        change = "changes" if len(rows) == 1 else "change most" if len(rows) == CHANGING_MOST else "change"
        few = f", {f'the {len(rows)} of {len(names)} nodes that {change}' if rows else 'no node changes'} (-o wide: all)"
    page.heading(f"REQUESTED, BEFORE -> AFTER{few}")
    page.table(_table("NODE", use, {row: names[row] for row in rows}, resources, wide=wide))


def difference(page: Page, use: Use, names: Sequence[str], kind: str, *, wide: bool) -> None:
    """What is requested under two policies, where that differs; of many nodes those that differ most."""
    resources = _resources(use)
    changing = np.flatnonzero(np.array(_change(use, resources)) > 0).tolist() if resources else []
    rows = [row for row in _shown_rows(use, names, resources, wide) if row in set(changing)]
    if not changing:
        return
    few = f", the {len(rows)} of {len(changing)} that differ most (-o wide: all)" if len(rows) < len(changing) else ""
    page.heading(f"REQUESTED BY {kind}, OLD -> NEW{few}")
    page.table(_table(kind, use, {row: names[row] or "(none)" for row in rows}, resources, wide=wide))


def _resources(use: Use) -> list[str]:
    """Names of the resources to show: the usual ones, and those that somebody requests."""
    resources = [name for name in ALWAYS if name in use.after]
    return resources + sorted(
        name for name in use.after if name not in ALWAYS and (use.after[name].any() or use.before[name].any())
    )


def _table(kind: str, use: Use, rows: Mapping[int, str], resources: Sequence[str], *, wide: bool) -> Table:
    """Some rows with their names, and all rows in sum."""
    table = Table([kind, *(name.upper() if name in ALWAYS else name for name in resources)])
    for row, name in rows.items():
        table.add(name, *(_cell(use, resource, row, wide) for resource in resources))
    table.add("TOTAL", *(_cell(use, name, None, wide) for name in resources))
    return table


def _shown_rows(use: Use, names: Sequence[str], resources: Sequence[str], wide: bool) -> list[int]:
    """Rows of the nodes to show: all by name, or of many those whose share of something changes, most changed first."""
    rows = sorted(range(len(names)), key=names.__getitem__)
    if wide or len(rows) <= FEW:
        return rows
    change = _change(use, resources)
    return sorted((row for row in rows if change[row] > 0), key=lambda row: -change[row])[:CHANGING_MOST]


def _change(use: Use, resources: Sequence[str]) -> list[float]:
    changes = [(use.after[name] - use.before[name]) / np.maximum(use.allocatable[name], 1) for name in resources]
    most: list[float] = np.max(np.abs(changes), axis=0).tolist()
    return most


def _cell(use: Use, name: str, row: int | None, wide: bool) -> str:
    """`20% -> 45%`, with amounts if wide; `2 -> 4 of 8` for what is counted in pieces; `-` where a node has none of it."""
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
