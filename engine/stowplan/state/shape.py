"""Broken-linear functions: how a score follows from a utilisation."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from stowplan.state.allocation import quotient
from stowplan.state.columns import Numbers


class Point(Protocol):
    """A utilisation in percent and its score, 0 to 10."""

    @property
    def utilization(self) -> int: ...

    @property
    def score(self) -> int: ...


def broken_linear(shape: Sequence[Point], at: Numbers) -> Numbers:
    """Value of the shape (scores 0..10 scaled to 0..100) at a utilisation in percent (helper.BuildBrokenLinearFunction)."""
    points = [(point.utilization, point.score * 10) for point in shape]
    result = np.full(at.shape, points[-1][1], dtype=np.int64)
    for (x0, y0), (x1, y1) in reversed(list(itertools.pairwise(points))):
        result = np.where(at <= x1, y0 + quotient((y1 - y0) * (at - x0), np.int64(x1 - x0)), result)
    return np.where(at <= points[0][0], points[0][1], result)
