"""Groups: rows that normalised scores and domain counts cannot tell apart, and how many acceptable rows each holds.

A group is a set of rows with equal codes in every component: the raw value of each normalised score, and the label codes
or own counts that topology plugins looked at. One representative row answers for its group, so exact normalisation is a
computation over a handful of rows, whatever the number of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from stowplan.state import Census, CodeSource, Mask, Numbers, Rows


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """An array over all rows as a source of codes."""

    array: Numbers
    pods_matter: bool
    moves: None = None

    def current(self) -> Numbers:
        """The array; it is patched, never replaced."""
        return self.array


class Groups:
    """Partition of the rows by their codes in some components."""

    def __init__(self, components: Sequence[CodeSource], acceptable: Mask) -> None:
        """`acceptable`: bool per row, whether the row-local filters pass it."""
        self._components = tuple(components)
        moving = [place for place, component in enumerate(components) if component.pods_matter]
        self._compared = [place for place in moving if components[place].moves is None]
        """components whose changes are found by comparison, of which there is no account"""
        logs = {log for place in moving if (log := components[place].moves) is not None}
        self._read = {log: len(log) for log in logs}
        self.census = Census()
        self.of: Rows = np.broadcast_to(np.zeros(1, dtype=np.intp), acceptable.shape)
        """group of each row; takes no memory as long as there is one group"""
        self.keys: list[tuple[int, ...]] = []
        self.weights: Numbers = np.zeros(0, dtype=np.int64)
        self.representatives: Rows = np.zeros(0, dtype=np.intp)
        self._index: dict[tuple[int, ...], int] = {}
        self._table: Numbers | None = None
        """the keys as a matrix, made when asked for"""
        self._partition(len(acceptable))
        self.recount(acceptable)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays over all rows."""
        return self.of.nbytes if self.of.flags.writeable else 0

    def _partition(self, size: int) -> None:
        code: Numbers | None = None
        for component in self._components:
            codes = component.current()[:size]
            if size == 0 or (codes == codes[0]).all():
                continue
            part = _numbered(codes)
            code = part if code is None else _numbered(code * (int(part.max()) + 1) + part)
        first = np.zeros(min(size, 1), dtype=np.intp)
        if code is not None:
            self.of = code.astype(np.intp)
            first = np.full(int(code.max()) + 1, size, dtype=np.intp)
            np.minimum.at(first, self.of, np.arange(size))
        self.representatives = first
        self.keys = [self._key(row) for row in first.tolist()]
        self._index = {key: number for number, key in enumerate(self.keys)}
        self.weights = np.zeros(len(self.keys), dtype=np.int64)

    def _key(self, row: int) -> tuple[int, ...]:
        return tuple(int(component.current()[row]) for component in self._components)

    def recount(self, acceptable: Mask) -> None:
        """Count the acceptable rows of each group afresh."""
        self.census.version += 1
        if len(self.keys) == 1:
            self.weights[0] = np.count_nonzero(acceptable)
        else:
            self.weights[:] = np.bincount(self.of[acceptable], minlength=len(self.keys))[: len(self.keys)]

    def values(self, component: int) -> Numbers:
        """Code of each group in one component."""
        if self._table is None:
            self._table = np.array(self.keys, dtype=np.int64).reshape(len(self.keys), len(self._components)).T.copy()
        found: Numbers = self._table[component]
        return found

    def flip(self, row: int, now: bool) -> bool:
        """A row began or ceased to be acceptable. True if scores of groups may change: a weight met zero."""
        self.census.version += 1
        group = self.of[row]
        self.weights[group] += 1 if now else -1
        return bool(self.weights[group] == now)

    def follow(self, rows: Rows | slice, acceptable: Callable[[int], bool]) -> bool:
        """Codes of rows may have changed. True if scores of groups may change: a weight met zero, or a group is new."""
        changed = self._accounted()
        if changed is None:
            changed = self._different(slice(len(self.of)), range(len(self._components)))
        elif self._compared:
            changed += self._different(rows, self._compared)
        stirred = False
        for row in dict.fromkeys(changed):
            key = self._key(row)
            if key != self.keys[self.of[row]]:
                stirred |= self._move(row, key, acceptable(row))
        return stirred

    def _accounted(self) -> list[int] | None:
        """Rows that components have written down since this was last called; None if there are too many of them."""
        found: list[int] = []
        for log, place in self._read.items():
            if place != len(log):
                rows = log.since(place)
                self._read[log] = len(log)
                if rows is None:
                    return None
                found += rows.tolist()
        return found

    def _different(self, rows: Rows | slice, components: Iterable[int]) -> list[int]:
        """Those of some rows whose code in some component is not that of their group."""
        of, moved = self.of[rows], None
        for place in components:
            differs = self._components[place].current()[: len(self.of)][rows] != self.values(place)[of]
            moved = differs if moved is None else moved | differs
        if moved is None or not np.count_nonzero(moved):
            return []
        found: list[int] = (moved.nonzero()[0] if isinstance(rows, slice) else rows[moved]).tolist()
        return found

    def _move(self, row: int, key: tuple[int, ...], acceptable: bool) -> bool:
        old, new, stirred = int(self.of[row]), self._index.get(key), False
        if new is None:
            new, stirred = self._found(key, row), True
        if not self.of.flags.writeable:
            self.of = self.of.copy()
        self.of[row] = new
        if self.of[self.representatives[new]] != new:  # the group was empty: its last member stands in another
            self.representatives[new] = row
        if self.representatives[old] == row:
            self._replace(old)
        if acceptable:
            self.census.version += 1
            self.weights[old] -= 1
            self.weights[new] += 1
            stirred |= bool(self.weights[old] == 0 or self.weights[new] == 1)
        return stirred

    def _found(self, key: tuple[int, ...], row: int) -> int:
        number = self._index[key] = len(self.keys)
        self._table = None
        self.keys.append(key)
        self.weights = np.append(self.weights, 0)
        self.representatives = np.append(self.representatives, row)
        return number

    def _replace(self, group: int) -> None:
        members = np.flatnonzero(self.of == group)
        if len(members):
            self.representatives[group] = members[0]


def _numbered(codes: Numbers) -> Numbers:
    """Numbers from 0 for the distinct codes, smallest first."""
    low, high = int(codes.min()), int(codes.max())
    if high - low >= 4 * len(codes):
        return np.unique(codes, return_inverse=True)[1]
    present = np.zeros(high - low + 1, dtype=np.bool_)  # quicker than sorting
    present[codes - low] = True
    found: Numbers = (np.cumsum(present) - 1)[codes - low]
    return found
