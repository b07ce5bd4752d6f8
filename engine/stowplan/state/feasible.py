"""The feasible set as scores see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stowplan.state.cluster import Watch
from stowplan.state.columns import Mask, Numbers

IGNORED = np.iinfo(np.int64).min
NOTHING = np.array(IGNORED)
"""Raw score of a feasible row that takes no part: it counts in no extreme and gets 0."""


@dataclass(slots=True)
class Feasible:
    """The rows that passed all filters: how many nodes each asked row stands for (0: rejected)."""

    weights: Numbers
    """int64 per asked row"""
    watch: Watch | None = None
    _selected: tuple[Numbers, Numbers] | None = None
    """raw scores that were asked about last, and those of them that take part"""

    def counted(self) -> Numbers:
        """The weights, for an answer that depends on the number of feasible nodes."""
        if self.watch is not None:
            self.watch.counts_rows()
        return self.weights

    def number(self, ignored: Mask | None = None) -> int:
        """Number of feasible nodes but for those of some asked rows."""
        weights = self.counted()
        return int(np.add.reduce(weights if ignored is None else weights[~ignored]))

    def highest(self, raw: Numbers, initial: int | None = None) -> int:
        """Largest raw score on feasible rows; `initial` joins the comparison, as upstream's loops do."""
        return _extreme(self._taking_part(raw), initial, max)

    def lowest(self, raw: Numbers, initial: int | None = None) -> int:
        """Smallest raw score on feasible rows."""
        return _extreme(self._taking_part(raw), initial, min)

    def _taking_part(self, raw: Numbers) -> Numbers:
        if self._selected is None or self._selected[0] is not raw:
            self._selected = (raw, raw[(self.weights > 0) & (raw != NOTHING)])
        return self._selected[1]


def _extreme(raw: Numbers, initial: int | None, choose: Callable[[int, int], int]) -> int:
    if not len(raw):
        return initial or 0
    found = int(raw[raw.argmax() if choose is max else raw.argmin()])  # quicker than max() on short arrays
    return found if initial is None else choose(found, initial)
