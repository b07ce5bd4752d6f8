"""Functions that make one value of each list, over list columns: the same answers as their kernels row by row.

Only for numbers, bools, moments and durations, of one kind in all lists; everything else goes row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from stowplan.cel import lift
from stowplan.cel.column import Array, Column, Const, Elements, Ragged, outcomes
from stowplan.cel.errors import CelError
from stowplan.cel.meter import Total
from stowplan.cel.overloads import Function
from stowplan.cel.segments import Segments, joined, runs
from stowplan.cel.values import INT_MAX

_Reduction: TypeAlias = Callable[[Segments, Array], Array]
_Choice: TypeAlias = Callable[[Column, Ragged], _Reduction | None]


def reduced(function: Function, lists: Ragged, total: Total, together: int) -> Column | None:
    """The function of every row's list, paid from the total as a macro is, in runs of so many elements.

    None where the elements have to be looked at row by row.
    """
    column = lists.cell
    made = _CHOICES.get(function.name)
    if made is None or not isinstance(column, Column) or column.words is not None or column.failures is not None:
        return None
    total.spend(lists.count)
    first = [[column.row(0)]] if len(column) else []
    empty, *sample = outcomes(lambda items: function.find(items)(items), [[], *first])
    reduction = made(column, lists)
    if reduction is None or isinstance(next(iter(sample), None), CelError):  # such elements are refused
        return None
    kind = "bool" if function.name == "isSorted" else column.kind
    parts = [
        Column(kind, reduction(Segments(part), _data(part))) for part in runs(Elements(lists.offsets, (column,), None), together)
    ]
    found = joined(parts)
    assert isinstance(found, Column)
    filled = np.diff(lists.offsets) > 0
    if not filled.all():
        found = lift.choose(Column("bool", filled), found, Const(empty))
    return found.failing(lists.failures)


def _data(part: Elements) -> Array:
    (cell,) = part.cells
    assert isinstance(cell, Column)
    return cell.data


def _sum(column: Column, lists: Ragged) -> _Reduction | None:
    data = column.data
    if column.kind == "double":  # one after the other, as rounding depends on the order; from 0.0
        return lambda segments, part: np.bincount(segments.elements.owner, part, segments.size)
    if column.kind not in ("int", "duration"):
        return None
    largest = max(int(data.max(initial=0)), -int(data.min(initial=0)))
    longest = int(np.diff(lists.offsets).max(initial=0))
    return (lambda segments, part: segments.reduce(np.add, part)) if largest * longest <= INT_MAX else None


def _extreme(ufunc: np.ufunc) -> _Choice:
    """`ufunc` passes over NaN, as nothing is greater or less than it; but one that comes first stays for the same reason."""

    def run(segments: Segments, part: Array) -> Array:
        found: Array = segments.reduce(ufunc, part)
        if part.dtype.kind == "f":
            starts, filled = segments.offsets[:-1], np.diff(segments.offsets) > 0
            zero = np.flatnonzero(filled & (found == 0))
            found[zero] = part[segments.places(part == 0)[zero]]  # 0.0 and -0.0 are equal: the first one counts
            stays = filled.copy()
            stays[filled] = np.isnan(part[starts[filled]])
            found[stays] = np.nan
        return found

    return lambda *_: run


def _is_sorted(_: Column, __: Ragged) -> _Reduction:
    def run(segments: Segments, part: Array) -> Array:
        falls = np.zeros(len(part), np.bool_)
        falls[1:] = part[:-1] > part[1:]  # never of NaN, which counts as neither greater nor less
        starts = segments.offsets[:-1]
        falls[starts[starts < len(part)]] = False
        rises: Array = ~segments.reduce(np.logical_or, falls)
        return rises

    return run


_CHOICES: dict[str, _Choice] = {
    "sum": _sum,
    "min": _extreme(np.fmin),
    "max": _extreme(np.fmax),
    "isSorted": _is_sorted,
}
