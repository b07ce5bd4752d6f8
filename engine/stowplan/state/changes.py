"""Pods that are thought to have come to some rows or left them, dictionary-encoded by kind of pod."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stowplan.objects import Pod
from stowplan.state.columns import Mask, Numbers, Rows


@dataclass(slots=True)
class Supposition:
    """A world of its own for one row: pods that are thought to have come to it or left it."""

    added: Sequence[Pod] = ()
    removed: Sequence[Pod] = ()
    tried: Sequence[tuple[Pod, int]] = ()
    """pods taken away (-1) and put back (+1) on the way to this world, in order, where that matters"""

    def steps(self) -> list[tuple[Pod, int]]:
        """All comings and goings in order."""
        return [*(self.tried or [(pod, -1) for pod in self.removed]), *((pod, 1) for pod in self.added)]


class Kinds:
    """Distinct kinds of pods, numbered, and tables of numbers by kind that are computed once."""

    def __init__(self) -> None:
        self.pods: list[Pod] = []
        """one pod of each kind"""
        self._index: dict[tuple[object, ...], int] = {}
        self._tables: dict[Hashable, Numbers] = {}

    def code(self, pod: Pod) -> int:
        """Number of a pod's kind: pods of one kind are alike to all columns."""
        kind = (pod.spec, pod.labels, pod.namespace, pod.requested, pod.nonzero, pod.terminating)
        code = self._index.setdefault(kind, len(self.pods))
        if code == len(self.pods):
            self.pods.append(pod)
        return code

    def table(self, key: Hashable, number: Callable[[Pod], int]) -> Numbers:
        """`number` of each kind; `key` stands for the function, which must always give the same for a pod."""
        table = self._tables.get(key)
        if table is None or len(table) < len(self.pods):
            table = self._tables[key] = np.fromiter(map(number, self.pods), np.int64, len(self.pods))
        return table


class Changes:
    """For each asked row, pods that came (+1) or left (-1)."""

    def __init__(
        self, kinds: Kinds, codes: NDArray[np.intp], signs: NDArray[np.int64], world: Callable[[int], Supposition]
    ) -> None:
        """`codes` and `signs`: one row per asked row, padded with sign 0; `world` gives the pods of a row themselves."""
        self._kinds, self._codes, self._signs = kinds, codes, signs
        self.world = world

    def weigh(self, key: Hashable, number: Callable[[Pod], int]) -> Numbers:
        """Sum per asked row of `number` over the pods that came, less that over those that left."""
        table = self._kinds.table(key, number)
        if not table.any():
            return np.zeros(len(self._codes), dtype=np.int64)
        total: Numbers = np.einsum("ij,ij->i", table[self._codes], self._signs)
        return total

    def touched(self, key: Hashable, test: Callable[[Pod], int]) -> Rows:
        """Places where some pod that came or left passes a test."""
        table = self._kinds.table(key, test)
        if not table.any():
            return np.zeros(0, dtype=np.intp)
        touched: Mask = ((table[self._codes] != 0) & (self._signs != 0)).any(axis=1)
        return touched.nonzero()[0]

    def kinds(self) -> Sequence[Pod]:
        """One pod of each kind that may occur."""
        return self._kinds.pods


class Gone:
    """Pods that are thought to be gone from some rows: whether each one is, and sums over them that follow every change.

    Matrices are rows x pods; a pod may come back and go again.
    """

    def __init__(self, kinds: Kinds, codes: NDArray[np.intp], gone: Mask) -> None:
        self._kinds, self._codes = kinds, codes
        self.mask = gone
        self._sums: dict[Hashable, tuple[Numbers, Numbers]] = {}
        """by question: the number for each kind, and its sum over the pods that are gone from each row"""

    def set(self, rows: Rows, pod: int, *, gone: bool) -> None:
        """The pod at this place comes back to some rows, or goes from them."""
        self.mask[rows, pod] = gone
        codes = self._codes[rows, pod]
        for table, sums in self._sums.values():
            if gone:
                sums[rows] += table[codes]
            else:
                sums[rows] -= table[codes]

    def sum(self, key: Hashable, number: Callable[[Pod], int]) -> Numbers:
        """Sum of `number` over the pods that are gone, by row."""
        found = self._sums.get(key)
        if found is None:
            table = self._kinds.table(key, number)
            found = self._sums[key] = (table, (table[self._codes] * self.mask).sum(axis=1))
        return found[1]

    def changes(self, rows: Rows, world: Callable[[int], Supposition]) -> Changes:
        """What that means for some of the rows, as it stands; `world` gives the pods of each."""
        return Departures(self, self._kinds, rows, self._codes, world)


class Departures(Changes):
    """Changes of some rows that pods have left; the matrices are made only for who needs them."""

    def __init__(self, gone: Gone, kinds: Kinds, rows: Rows, codes: NDArray[np.intp], world: Callable[[int], Supposition]) -> None:
        self._gone, self._rows = gone, rows
        super().__init__(kinds, codes, np.zeros(0, dtype=np.int64), world)

    def weigh(self, key: Hashable, number: Callable[[Pod], int]) -> Numbers:
        return -self._gone.sum(key, number)[self._rows]

    def touched(self, key: Hashable, test: Callable[[Pod], int]) -> Rows:
        table = self._kinds.table(key, test)
        if not table.any():
            return np.zeros(0, dtype=np.intp)
        touched: Mask = ((table[self._codes[self._rows]] != 0) & self._gone.mask[self._rows]).any(axis=1)
        return touched.nonzero()[0]


def changes_of(worlds: Sequence[Supposition]) -> Changes:
    """Changes from lists of pods."""
    kinds = Kinds()
    rows = [[(kinds.code(pod), sign) for pods, sign in ((world.removed, -1), (world.added, 1)) for pod in pods] for world in worlds]
    width = max(map(len, rows), default=0)
    codes = np.zeros((len(rows), width), dtype=np.intp)
    signs = np.zeros((len(rows), width), dtype=np.int64)
    for place, row in enumerate(rows):
        if row:
            codes[place, : len(row)], signs[place, : len(row)] = zip(*row, strict=True)
    return Changes(kinds, codes, signs, worlds.__getitem__)
