"""Groups: rows that normalised scores and domain counts cannot tell apart, and how many acceptable rows each holds.

A group is a set of rows with equal codes in every component: the raw value of each normalised score, and the label codes
or own counts that topology plugins looked at. One representative row answers for its group, so exact normalisation is a
computation over a handful of rows, whatever the number of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from stowplan.state import Mask, Numbers, Rows

Component = Callable[[], Numbers]
"""Current code of every row; called anew each time, since arrays may be replaced as the store grows."""


class Groups:
    """Partition of the rows by their codes in some components."""

    def __init__(self, components: Sequence[Component], acceptable: Mask) -> None:
        """`acceptable`: bool per row, whether the row-local filters pass it."""
        self._components = tuple(components)
        self.of: Rows = np.zeros(len(acceptable), dtype=np.intp)
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

    def _partition(self, size: int) -> None:
        code: Numbers = np.zeros(size, dtype=np.int64)
        for component in self._components:
            codes = component()[:size]
            if size == 0 or (codes == codes[0]).all():
                continue
            _, part = np.unique(codes, return_inverse=True)
            _, code = np.unique(code * (int(part.max(initial=0)) + 1) + part, return_inverse=True)
        _, first = np.unique(code, return_index=True) if code.any() else (None, np.zeros(min(size, 1), dtype=np.intp))
        self.of[:] = code
        self.representatives = first.astype(np.intp)
        self.keys = [self._key(row) for row in first.tolist()]
        self._index = {key: number for number, key in enumerate(self.keys)}
        self.weights = np.zeros(len(self.keys), dtype=np.int64)

    def _key(self, row: int) -> tuple[int, ...]:
        return tuple(int(component()[row]) for component in self._components)

    def recount(self, acceptable: Mask) -> None:
        """Count the acceptable rows of each group afresh."""
        self.weights[:] = np.bincount(self.of, weights=acceptable, minlength=len(self.keys))[: len(self.keys)]

    def values(self, component: int) -> Numbers:
        """Code of each group in one component."""
        if self._table is None:
            self._table = np.array(self.keys, dtype=np.int64).reshape(len(self.keys), len(self._components))
        found: Numbers = self._table[:, component]
        return found

    def update(self, rows: Rows, before: Mask, after: Mask) -> bool:
        """Rows changed their acceptability or codes. True if scores of groups may change: a weight met zero, a group is new."""
        codes = [component()[rows].tolist() for component in self._components]
        keys = list(zip(*codes, strict=True)) if codes else [()] * len(rows)
        stirred = False
        changes = zip(rows.tolist(), self.of[rows].tolist(), keys, before.tolist(), after.tolist(), strict=True)
        for row, old, key, was, now in changes:
            if was != now or self.keys[old] != key:
                stirred |= self._move(row, key, was, now)
        return stirred

    def _move(self, row: int, key: tuple[int, ...], was: bool, now: bool) -> bool:
        old, new, stirred = int(self.of[row]), self._index.get(key), False
        if new is None:
            new, stirred = self._found(key, row), True
        if was:
            self.weights[old] -= 1
            stirred |= bool(self.weights[old] == 0)
        if new != old:
            self.of[row] = new
            if self.of[self.representatives[new]] != new:  # the group was empty: its last member stands in another
                self.representatives[new] = row
            if self.representatives[old] == row:
                self._replace(old)
        if now:
            self.weights[new] += 1
            stirred |= bool(self.weights[new] == 1)
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
