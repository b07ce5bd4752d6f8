"""Pods that are thought to have come to some rows or left them, dictionary-encoded by kind of pod."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stowplan.objects import Pod
from stowplan.state.columns import Mask, Numbers


@dataclass(slots=True)
class Supposition:
    """A world of its own for one row: pods that are thought to have come to it or left it."""

    added: Sequence[Pod] = ()
    removed: Sequence[Pod] = ()


class Changes:
    """For each asked row, pods that came (+1) or left (-1). A function of a pod runs once per distinct kind of pod."""

    def __init__(
        self, kinds: Sequence[Pod], codes: NDArray[np.intp], signs: NDArray[np.int8], worlds: Callable[[int], Supposition]
    ) -> None:
        """`codes` and `signs`: one row per asked row, padded with sign 0; `worlds` gives the pods of a row themselves."""
        self._kinds, self._codes, self._signs = kinds, codes, signs
        self.world = worlds

    def weigh(self, number: Callable[[Pod], int]) -> Numbers:
        """Sum per asked row of `number` over the pods that came, less that over those that left."""
        table = np.fromiter((number(pod) for pod in self._kinds), np.int64, len(self._kinds))
        if not table.any():
            return np.zeros(len(self._codes), dtype=np.int64)
        total: Numbers = (table[self._codes] * self._signs).sum(axis=1)
        return total

    def touched(self, test: Callable[[Pod], bool]) -> Mask:
        """Asked rows where some pod that came or left passes a test."""
        table = np.fromiter((test(pod) for pod in self._kinds), np.bool_, len(self._kinds))
        if not table.any():
            return np.zeros(len(self._codes), dtype=np.bool_)
        touched: Mask = (table[self._codes] & (self._signs != 0)).any(axis=1)
        return touched

    def kinds(self) -> Sequence[Pod]:
        """One pod of each kind that may occur."""
        return self._kinds


def kind_of(pod: Pod) -> tuple[object, ...]:
    """What columns see of a pod: pods of one kind are alike to all of them."""
    return pod.spec, pod.labels, pod.namespace, pod.requested, pod.nonzero, pod.terminating


def changes_of(worlds: Sequence[Supposition]) -> Changes:
    """Changes from lists of pods."""
    index: dict[tuple[object, ...], int] = {}
    kinds: list[Pod] = []
    rows: list[list[tuple[int, int]]] = []
    for world in worlds:
        row = []
        for pods, sign in ((world.removed, -1), (world.added, 1)):
            for pod in pods:
                code = index.setdefault(kind_of(pod), len(kinds))
                if code == len(kinds):
                    kinds.append(pod)
                row.append((code, sign))
        rows.append(row)
    width = max((len(row) for row in rows), default=0)
    codes = np.zeros((len(rows), width), dtype=np.intp)
    signs = np.zeros((len(rows), width), dtype=np.int8)
    for place, row in enumerate(rows):
        if row:
            codes[place, : len(row)], signs[place, : len(row)] = zip(*row, strict=True)
    return Changes(kinds, codes, signs, worlds.__getitem__)
