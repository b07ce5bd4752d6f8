"""The elements of list columns brought back to their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stowplan.cel.column import Codes, Column, Elements, Failures, Mask, Ragged, Taken, View, first_failure


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """The elements of every row."""

    elements: Elements

    @property
    def offsets(self) -> Codes:
        """Where the elements of each row start."""
        return self.elements.offsets

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.offsets) - 1

    def any(self, body: Column, dominant: bool) -> Column:
        """Whether an element decides; else the error of the first element that has one."""
        truth = body.data == dominant
        if body.failures is not None:
            truth &= ~body.failures.mask
        decided = self._reduce(np.logical_or, truth)
        failures = self._first(body.failures)
        if failures is not None:
            failures = Failures(np.where(decided, 0, failures.codes), failures.table)
        return Column("bool", decided if dominant else ~decided, None, failures)

    def one(self, body: Column) -> Column:
        """Whether exactly one element is true."""
        counts = self._reduce(np.add, body.data.astype(np.int64))
        return Column("bool", counts == 1, None, self._first(body.failures))

    def filtered(self, body: Column, element: Column | View, failures: Failures | None) -> Ragged:
        """The elements for which the body is true."""
        kept = np.flatnonzero(body.data)
        taken = element.take(kept) if isinstance(element, Column) else Taken(element, kept)
        return Ragged(self._offsets(kept), taken, first_failure(failures, self._first(body.failures)))

    def mapped(self, where: Column | None, body: Column, failures: Failures | None) -> Ragged:
        """The values of the body, of the elements for which `where` is true."""
        wrong = body.failures
        if where is None:
            return Ragged(self.offsets, _clean(body), first_failure(failures, self._first(wrong)))
        if wrong is not None:
            wrong = Failures(np.where(where.data, wrong.codes, 0), wrong.table)
        wrong = first_failure(where.failures, wrong)
        kept = np.flatnonzero(where.data)
        return Ragged(self._offsets(kept), _clean(body.take(kept)), first_failure(failures, self._first(wrong)))

    def _offsets(self, kept: Codes) -> Codes:
        offsets = np.zeros(self.size + 1, np.int64)
        np.cumsum(np.bincount(self.elements.owner[kept], minlength=self.size), out=offsets[1:])
        return offsets

    def _reduce(self, reduce: np.ufunc, data: Codes | Mask) -> Any:
        """The elements of every row reduced; zero for none (reduceat alone would give the next row's)."""
        filled = np.flatnonzero(np.diff(self.offsets))
        found = np.zeros(self.size, data.dtype)
        if len(filled):
            found[filled] = reduce.reduceat(data, self.offsets[:-1][filled])
        return found

    def _first(self, failures: Failures | None) -> Failures | None:
        """For every row the error of its first element that has one."""
        if failures is None:
            return None
        at = np.flatnonzero(failures.codes)
        rows, first = np.unique(self.elements.owner[at], return_index=True)
        codes = np.zeros(self.size, np.int64)
        codes[rows] = failures.codes[at[first]]
        return Failures(codes, failures.table)


def _clean(body: Column) -> Column:
    """Without the errors of elements: their rows carry them."""
    return body if body.failures is None else Column(body.kind, body.data, body.words, None)
