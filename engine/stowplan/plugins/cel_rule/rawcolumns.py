"""The raw object of nodes as columns: `node.metadata`, `node.spec` and so on, by the distinct JSON of the fields that a rule reads.

Values are built by the same functions as for a single node, once for each distinct text, and what expressions make of
them is remembered with those.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from stowplan.cel.column import Array, Column, Dictionary, Elements, Failures, Rows, View
from stowplan.cel.errors import CelError, no_key
from stowplan.cel.lift import each
from stowplan.cel.touches import Path
from stowplan.plugins.cel_rule.members import Derive, Plain
from stowplan.plugins.cel_rule.nodeview import Gap, NodeView, Scene, assembled, decoded
from stowplan.plugins.cel_rule.podview import ABSENT, SECOND, STRUCTURES
from stowplan.plugins.cel_rule.reading import CREATED
from stowplan.state import Coded, raw_field

_STEPS = frozenset(("field", "look", "has", "in", "_[_]", "_[?_]", "or empty"))
_LONGEST = 2.0**63
_kept: WeakKeyDictionary[Any, tuple[int, Dictionary]] = WeakKeyDictionary()
"""By the storage of a field: the object with that field alone, for as many values as the field had."""
_ages: WeakKeyDictionary[Any, tuple[int, Array]] = WeakKeyDictionary()
"""By the storage of the time of creation: its values as seconds, NaN where there is none."""


class RawColumns(View):
    """The object or something in it; which of its fields matter shows in the steps that were taken."""

    __slots__ = ("_paths", "_scene", "_steps")

    def __init__(self, scene: Scene, paths: Iterable[Path], steps: tuple[tuple[Hashable, Derive], ...] = ()) -> None:
        self._scene, self._steps, self._paths = scene, steps, _shortest(paths)

    def __len__(self) -> int:
        return self._scene.cluster.size

    def derive(self, tag: Hashable, function: Derive) -> View:
        if isinstance(tag, tuple) and tag[0] in _STEPS and isinstance(tag[-1], str):
            depth = len(self._steps)
            below = [path for path in self._paths if len(path) <= depth or path[depth] == tag[-1]]
            if below:
                return RawColumns(self._scene, below, (*self._steps, (tag, function)))
            return Rows([self.row(place) for place in range(len(self))]).derive(tag, function)  # names and labels
        return Plain(each(self.column(), tag, function))

    def column(self) -> Column:
        if not self._paths:
            return Rows([self.row(place) for place in range(len(self))]).column()
        coded = [self._scene.cluster[raw_field(path)] for path in self._paths]
        column = self._of_one(coded[0]) if len(coded) == 1 else self._of_many(coded)
        for tag, function in self._steps:
            column = each(column, tag, function)
        return column

    def elements(self, names: int) -> Elements | None:
        return Plain(self.column()).elements(names)

    def row(self, index: int) -> Any:
        value: Any = NodeView(self._scene, index)
        try:
            for _, function in self._steps:
                value = function(value)
        except CelError as error:
            return error
        return value

    def _of_one(self, coded: Coded[bytes | int]) -> Column:
        size, words = _kept.get(coded.source, (-1, Dictionary(())))
        if size != len(coded.values):
            words = Dictionary([_object(self._paths, (value,)) for value in coded.values])
            _kept[coded.source] = (len(coded.values), words)
        return Column("coded", coded.codes, words)

    def _of_many(self, fields: list[Coded[bytes | int]]) -> Column:
        key = np.zeros(len(self), np.int64)
        for coded in fields:
            _, key = np.unique(key * len(coded.values) + coded.codes, return_inverse=True)
        _, first, codes = np.unique(key, return_index=True, return_inverse=True)
        rows = [tuple(coded.values[int(coded.codes[place])] for coded in fields) for place in first.tolist()]
        return Column("coded", codes.astype(np.int64), Dictionary([_object(self._paths, values) for values in rows]))


def _shortest(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Without the fields of what is there as a whole."""
    every = set(paths)
    return tuple(sorted(path for path in every if not any(path[:size] in every for size in range(1, len(path)))))


def _object(paths: tuple[Path, ...], values: tuple[bytes | int, ...]) -> dict[str, Any]:
    """An object with these fields, which are all of one of its members."""
    name = paths[0][0]
    fields = [(path, decoded(path, value)) for path, value in zip(paths, values, strict=True)]
    member = assembled({}, fields, structure=name in STRUCTURES)
    return {} if member is ABSENT else {name: member}


def ages(scene: Scene) -> Column | None:
    """`node.age`; None where an age does not fit."""
    coded = scene.cluster[raw_field(CREATED)]
    size, seconds = _ages.get(coded.source, (-1, np.zeros(0)))
    if size != len(coded.values):
        times = [decoded(CREATED, value) for value in coded.values]
        seconds = np.array([np.nan if isinstance(time, Gap) else time.ns / SECOND for time in times], np.float64)
        _ages[coded.source] = (size := len(coded.values), seconds)
    then = seconds[coded.codes]
    gone = np.isnan(then)
    passed = np.where(gone, 0.0, (scene.now - then) * SECOND)  # as `since`
    if np.abs(passed).max(initial=0.0) >= _LONGEST:
        return None
    failures = Failures(gone.astype(np.int32), (no_key("age"),)) if gone.any() else None
    return Column("duration", passed.astype(np.int64), None, failures)
