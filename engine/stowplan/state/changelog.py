"""A log of row numbers that many readers follow, each from a place of its own."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from stowplan.state.columns import Rows

KEPT = 1 << 16
"""Entries that are kept at least, unless told otherwise; who has fallen further behind looks at everything."""


class ChangeLog:
    """Numbers in the order in which they were written; its length counts all that were ever written."""

    __slots__ = ("_dropped", "_kept", "_numbers", "_used")

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._numbers: Rows = np.empty(64, dtype=np.intp)
        self._used = 0
        self._dropped = 0

    def __len__(self) -> int:
        return self._dropped + self._used

    def append(self, number: int) -> None:
        """Write one number."""
        if self._used == len(self._numbers):
            self._make_room()
        self._numbers[self._used] = number
        self._used += 1

    def extend(self, numbers: Iterable[int]) -> None:
        """Write several numbers."""
        for number in numbers:
            self.append(number)

    def since(self, place: int, most: int = KEPT) -> Rows | None:
        """What was written after the log had this length, not to be written to; None if that is more than `most` or is gone."""
        behind = self._dropped + self._used - place
        if behind > most or behind > self._used:
            return None
        return self._numbers[self._used - behind : self._used]

    def _make_room(self) -> None:
        kept = self._kept
        if len(self._numbers) < 2 * kept:
            wider: Rows = np.empty(2 * len(self._numbers), dtype=np.intp)
            wider[: self._used] = self._numbers
            self._numbers = wider
            return
        self._numbers[:kept] = self._numbers[-kept:].copy()
        self._dropped += self._used - kept
        self._used = kept
