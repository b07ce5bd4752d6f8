"""The elements of list columns brought back to their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stowplan.cel.column import (
    Array,
    Codes,
    Column,
    Elements,
    Failures,
    Mask,
    Ragged,
    Taken,
    View,
    first_failure,
    taken_apart,
)
from stowplan.cel.lift import coded_form, merged


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
        decided = self.reduce(np.logical_or, truth)
        failures = self._first(body.failures)
        if failures is not None:
            failures = Failures(np.where(decided, 0, failures.codes), failures.table)
        final = None if body.failures is None else body.failures.final()
        if final is not None:
            failures = first_failure(self._ending(final, truth), failures)
        return Column("bool", decided if dominant else ~decided, None, failures)

    def _ending(self, final: Failures, truth: Mask) -> Failures:
        """Errors that nothing absorbs, in rows where they come before the element that decides."""
        ends, decides = self.places(final.mask), self.places(truth)
        codes = np.zeros(self.size, np.int64)
        rows = np.flatnonzero(ends < decides)
        codes[rows] = final.codes[ends[rows]]
        return Failures(codes, final.table)

    def places(self, mask: Mask) -> Codes:
        """For every row the place of its first element in the mask, one past all elements if there is none."""
        at = np.flatnonzero(mask)
        rows, first = np.unique(self.elements.owner[at], return_index=True)
        places = np.full(self.size, len(mask), np.int64)
        places[rows] = at[first]
        return places

    def one(self, body: Column) -> Column:
        """Whether exactly one element is true."""
        counts = self.reduce(np.add, body.data.astype(np.int64))
        return Column("bool", counts == 1, None, self._first(body.failures))

    def filtered(self, body: Column, element: Column | View, start: int) -> Ragged:
        """The elements for which the body is true; `element` has those of more rows, and these from `start` on."""
        failures = first_failure(self.elements.failures, self._first(body.failures))
        kept = self._kept(body.data, failures)
        offsets = self._offsets(kept)
        places = (kept + start).astype(np.int32)
        taken = element.take(places) if isinstance(element, Column) else Taken(element, places)
        return Ragged(offsets, taken, failures)

    def mapped(self, where: Column | None, body: Column) -> Ragged:
        """The values of the body, of the elements for which `where` is true."""
        wrong = body.failures
        if where is not None:
            if wrong is not None:
                wrong = Failures(np.where(where.data, wrong.codes, 0), wrong.table)
            wrong = first_failure(where.failures, wrong)
        failures = first_failure(self.elements.failures, self._first(wrong))
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

    def reduce(self, function: np.ufunc, data: Array) -> Any:
        """The elements of every row reduced; zero for none (reduceat alone would give the next row's)."""
        filled = np.flatnonzero(np.diff(self.offsets))
        found = np.zeros(self.size, data.dtype)
        if len(filled):
            found[filled] = function.reduceat(data, self.offsets[:-1][filled])
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


def walked(column: Column, names: int) -> Elements:
    """What a macro with so many names walks of a column of lists or maps: each distinct one is taken apart once."""
    words = column.words
    if words is None or not len(words.values):
        return taken_apart(column.rows(), names)
    of_words: Elements = words.remember(("elements", names), lambda: taken_apart(words.values, names))
    codes = np.maximum(column.data, 0)
    counts = np.diff(of_words.offsets)[codes]
    if column.failures is not None:
        counts[column.failures.mask] = 0
    offsets = np.concatenate(([0], np.cumsum(counts)))
    places = np.repeat(of_words.offsets[codes] - offsets[:-1], counts) + np.arange(offsets[-1])
    cells = tuple(Taken(cell, places) if isinstance(cell, View) else cell.take(places) for cell in of_words.cells)
    failures = None if of_words.failures is None else of_words.failures.take(codes)
    return Elements(offsets, cells, first_failure(column.failures, failures))


def runs(elements: Elements, most: int) -> Iterator[Elements]:
    """The same in runs of rows with no more than so many elements, but for rows that have more by themselves."""
    offsets, first = elements.offsets, 0
    if offsets[-1] <= most:
        yield elements
        return
    while first < len(offsets) - 1:
        begin = int(offsets[first])
        last = max(first + 1, int(np.searchsorted(offsets, begin + most, side="right")) - 1)
        end = int(offsets[last])
        cells = tuple(
            cell.section(begin, end) if isinstance(cell, View) else cell.take(np.arange(begin, end)) for cell in elements.cells
        )
        failures = None if elements.failures is None else elements.failures.take(np.arange(first, last))
        yield Elements(offsets[first : last + 1] - begin, cells, failures, first)
        first = last


def joined(parts: Sequence[Column | Ragged]) -> Column | Ragged:
    """What was computed for runs of rows, for all of them."""
    if len(parts) == 1:
        return parts[0]
    failures = _all_failures(parts)
    lists = [part for part in parts if isinstance(part, Ragged)]
    if not lists:
        return _all_values([part for part in parts if isinstance(part, Column)], failures)
    sizes = np.concatenate([np.diff(part.offsets) for part in lists])
    cells = [part.cell for part in lists]
    views = [cell for cell in cells if isinstance(cell, Taken)]
    cell: Column | View
    if views:  # of one view
        cell = Taken(views[0].view, np.concatenate([view.rows for view in views]))
    else:
        columns = [cell for cell in cells if isinstance(cell, Column)]
        cell = _all_values(columns, _all_failures(columns))
    return Ragged(np.concatenate(([0], np.cumsum(sizes))), cell, failures)


def _all_values(parts: Sequence[Column], failures: Failures | None) -> Column:
    first = parts[0]
    if any(part.kind != first.kind or part.words is not first.words for part in parts):
        codes, words = coded_form(first)
        for part in parts[1:]:
            more, others = coded_form(part)
            if others is not words:
                table, both = merged(words, others)
                codes = _through(table, codes, 0)
                more = _through(table, more, len(words.values))
                words = both
            codes = np.concatenate((codes, more))
        return Column("coded", codes, words, failures)
    return Column(first.kind, np.concatenate([part.data for part in parts]), first.words, failures)


def _through(table: Codes, codes: Codes, start: int) -> Codes:
    """Codes in a merged dictionary; rows without a value stay so."""
    found = np.full(len(codes), -1, np.int64)
    there = codes >= 0
    found[there] = table[codes[there] + start]
    return found


def _all_failures(parts: Sequence[Column | Ragged]) -> Failures | None:
    if all(part.failures is None for part in parts):
        return None
    table: dict[Any, int] = {}
    found = []
    for part in parts:
        if part.failures is None:
            found.append(np.zeros(len(part), np.int64))
        else:
            numbers = np.array([0, *(table.setdefault(error, len(table) + 1) for error in part.failures.table)])
            found.append(numbers[part.failures.codes])
    return Failures(np.concatenate(found), tuple(table))
