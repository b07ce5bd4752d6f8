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
        final = None if body.failures is None else body.failures.final()
        if final is not None:
            failures = first_failure(self._ending(final, truth), failures)
        return Column("bool", decided if dominant else ~decided, None, failures)

    def _ending(self, final: Failures, truth: Mask) -> Failures:
        """Errors that nothing absorbs, in rows where they come before the element that decides."""
        ends, decides = self._places(final.mask), self._places(truth)
        codes = np.zeros(self.size, np.int64)
        rows = np.flatnonzero(ends < decides)
        codes[rows] = final.codes[ends[rows]]
        return Failures(codes, final.table)

    def _places(self, mask: Mask) -> Codes:
        """For every row the place of its first element in the mask, one past all elements if there is none."""
        at = np.flatnonzero(mask)
        rows, first = np.unique(self.elements.owner[at], return_index=True)
        places = np.full(self.size, len(mask), np.int64)
        places[rows] = at[first]
        return places

    def one(self, body: Column) -> Column:
        """Whether exactly one element is true."""
        counts = self._reduce(np.add, body.data.astype(np.int64))
        return Column("bool", counts == 1, None, self._first(body.failures))

    def filtered(self, body: Column, element: Column | View, failures: Failures | None) -> Ragged:
        """The elements for which the body is true."""
        failures = first_failure(failures, self._first(body.failures))
        kept = self._kept(body.data, failures)
        taken = element.take(kept) if isinstance(element, Column) else Taken(element, kept)
        return Ragged(self._offsets(kept), taken, failures)

    def mapped(self, where: Column | None, body: Column, failures: Failures | None) -> Ragged:
        """The values of the body, of the elements for which `where` is true."""
        wrong = body.failures
        if where is not None:
            if wrong is not None:
                wrong = Failures(np.where(where.data, wrong.codes, 0), wrong.table)
            wrong = first_failure(where.failures, wrong)
        failures = first_failure(failures, self._first(wrong))
        if where is None and failures is None:
            return Ragged(self.offsets, body, None)
        kept = self._kept(np.ones(len(body), np.bool_) if where is None else where.data, failures)
        values = body.take(kept)
        return Ragged(self._offsets(kept), Column(values.kind, values.data, values.words, None), failures)

    def _kept(self, wanted: Mask, failures: Failures | None) -> Codes:
        """The wanted elements of rows without an error: a row with one has no elements at all."""
        return np.flatnonzero(wanted if failures is None else wanted & ~failures.mask[self.elements.owner])

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
