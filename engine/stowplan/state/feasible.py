"""The feasible set as scores see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stowplan.state.cluster import Watch
from stowplan.state.columns import Numbers

IGNORED = np.iinfo(np.int64).min
"""Raw score of a feasible row that takes no part: it counts in no extreme and gets 0."""


@dataclass(slots=True)
class Feasible:
    """The rows that passed all filters: how many nodes each asked row stands for (0: rejected)."""

    weights: Numbers
    """int64 per asked row"""
    watch: Watch | None = None

    def counted(self) -> Numbers:
        """The weights, for an answer that depends on the number of feasible nodes."""
        if self.watch is not None:
            self.watch.counts_rows()
        return self.weights

    def highest(self, raw: Numbers, initial: int | None = None) -> int:
        """Largest raw score on feasible rows; `initial` joins the comparison, as upstream's loops do."""
        return _extreme(self._taking_part(raw), initial, max)

    def lowest(self, raw: Numbers, initial: int | None = None) -> int:
        """Smallest raw score on feasible rows."""
        return _extreme(self._taking_part(raw), initial, min)

    def _taking_part(self, raw: Numbers) -> Numbers:
        taking_part: Numbers = raw[(self.weights > 0) & (raw != IGNORED)]
        return taking_part


def _extreme(raw: Numbers, initial: int | None, choose: Callable[[int, int], int]) -> int:
    if not len(raw):
        return initial or 0
    found = int(raw.max() if choose is max else raw.min())
    return found if initial is None else choose(found, initial)
