"""Values for many rows at once.

A cell is a constant, a column (NumPy data, with an error where a row has none) or a view (structured values by row,
which gives columns when asked for a field). Numbers and bools stand as they are, everything else as codes into a
dictionary, so that a function runs once for each distinct value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from stowplan.cel.errors import CelError
from stowplan.cel.values import INT_MAX, INT_MIN, Duration, Timestamp
from stowplan.cel.walk import elements

Array: TypeAlias = npt.NDArray[Any]
Codes: TypeAlias = npt.NDArray[np.signedinteger[Any]]
Mask: TypeAlias = npt.NDArray[np.bool_]
NUMERIC: dict[type, str] = {bool: "bool", int: "int", float: "double", Timestamp: "timestamp", Duration: "duration"}
DTYPES: dict[str, type[Any]] = {
    "bool": np.bool_,
    "int": np.int64,
    "double": np.float64,
    "timestamp": np.int64,  # nanoseconds, as long as all fit
    "duration": np.int64,
}
_MOMENTS: dict[str, Callable[[int], Any]] = {"timestamp": Timestamp, "duration": Duration}
_MEMOS = 256


@dataclass(frozen=True, slots=True, eq=False)
class Const:
    """The same value, or CelError, in every row."""

    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Failures:
    """For every row 0, or one more than the position of its error in the table."""

    codes: Codes
    table: tuple[CelError, ...]

    @property
    def mask(self) -> Mask:
        """The rows that have an error."""
        return self.codes > 0

    def final(self) -> Failures | None:
        """Those that nothing absorbs; None if there are none."""
        ends = [not error.absorbable for error in self.table]
        if not any(ends):
            return None
        codes = np.where(np.array([False, *ends])[self.codes], self.codes, 0)
        return Failures(codes, self.table) if codes.any() else None

    def take(self, rows: Array) -> Failures:
        """The failures of these rows."""
        return Failures(self.codes[rows], self.table)


def first_failure(*parts: Failures | None) -> Failures | None:
    """For every row the error of the first part that has one."""
    merged: Failures | None = None
    for part in parts:
        if part is None or merged is None:
            merged = part if merged is None else merged
            continue
        offset = len(merged.table)
        later = np.where(part.codes > 0, part.codes + offset, 0)
        merged = Failures(np.where(merged.codes > 0, merged.codes, later), merged.table + part.table)
    return merged


def failing(mask: Mask, error: CelError) -> Failures | None:
    """The error in the rows of the mask."""
    return Failures(mask.astype(np.int32), (error,)) if mask.any() else None


@dataclass(slots=True, eq=False)
class Dictionary:
    """The distinct values of a column; remembers what functions made of them."""

    values: Sequence[Any]
    memo: dict[Hashable, Any] = field(default_factory=dict)
    _index: dict[Hashable, int] | None = None

    def find(self, value: Any) -> int:
        """The code of a string, -1 if it is not there."""
        if self._index is None:
            self._index = {word: code for code, word in enumerate(self.values) if type(word) is str}
        return self._index.get(value, -1)

    def remember(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The result for this key, made once."""
        if key not in self.memo:
            if len(self.memo) >= _MEMOS:
                self.memo.clear()
            self.memo[key] = make()
        return self.memo[key]

    @property
    def texts(self) -> bool:
        """Whether all values are strings."""
        return bool(self.remember("texts", lambda: all(type(word) is str for word in self.values)))


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One value a row: `kind` is bool, int, double, timestamp or duration with plain data, or coded with codes into `words`.

    Where `failures` has an error the data means nothing (a code is -1).
    """

    kind: str
    data: Array
    words: Dictionary | None = None
    failures: Failures | None = None

    def __len__(self) -> int:
        return len(self.data)

    def take(self, rows: Array) -> Column:
        """The values of these rows."""
        failures = None if self.failures is None else self.failures.take(rows)
        return Column(self.kind, self.data[rows], self.words, failures)

    def failing(self, more: Failures | None) -> Column:
        """The same with errors in further rows; those of `more` come first."""
        return self if more is None else Column(self.kind, self.data, self.words, first_failure(more, self.failures))

    def row(self, index: int) -> Any:
        """The value of a row, or its CelError."""
        if self.failures is not None and self.failures.codes[index]:
            return self.failures.table[self.failures.codes[index] - 1]
        if self.words is not None:
            return self.words.values[self.data[index]]
        return restored(self.kind, self.data[index].item())

    def rows(self) -> list[Any]:
        """The values of all rows."""
        return [self.row(index) for index in range(len(self.data))]


def bare(value: Any) -> Any:
    """The number that stands for a plain value in an array."""
    return value.ns if isinstance(value, (Timestamp, Duration)) else value


def restored(kind: str, value: Any) -> Any:
    """The value a number in an array of that kind stands for."""
    make = _MOMENTS.get(kind)
    return value if make is None else make(value)


def encode(values: Sequence[Any]) -> Column:
    """A column of these values; a CelError among them is the failure of its row."""
    kinds = {type(value) for value in values}
    failures = _failures(values) if CelError in kinds else None
    kinds.discard(CelError)
    if len(kinds) == 1 and (kind := NUMERIC.get(next(iter(kinds)))) is not None:
        plain = [0 if type(value) is CelError else bare(value) for value in values]
        if kind in ("bool", "double") or all(INT_MIN <= value <= INT_MAX for value in plain):
            return Column(kind, np.array(plain, dtype=DTYPES[kind]), None, failures)
    codes = np.empty(len(values), np.int32)
    index: dict[Hashable, int] = {}
    words: list[Any] = []
    for row, value in enumerate(values):
        if type(value) is CelError:
            codes[row] = -1
            continue
        code = index.setdefault(_identity(value), len(words))
        if code == len(words):
            words.append(value)
        codes[row] = code
    return Column("coded", codes, Dictionary(words), failures)


def _identity(value: Any) -> Hashable:
    """What is equal for values that cannot be told apart; lists, maps and the like count as distinct objects."""
    cls = type(value)
    if cls is str:
        return value  # type: ignore[no-any-return]
    if cls in (Timestamp, Duration):
        return value  # type: ignore[no-any-return]
    if cls in (bool, int, float, bytes, type(None)):
        return (cls, repr(value) if cls is float else value)
    return (cls, id(value))


def _failures(values: Sequence[Any]) -> Failures:
    table: dict[CelError, int] = {}
    codes = [table.setdefault(value, len(table) + 1) if type(value) is CelError else 0 for value in values]
    return Failures(np.array(codes, np.int32), tuple(table))


class View:
    """Structured values, one a row. Subclasses answer from wherever the facts are kept."""

    __slots__ = ()
    opaque: ClassVar[bool] = False
    """whether no value is a text, number or bool, so that nothing is to be learnt from its column"""

    def __len__(self) -> int:
        raise NotImplementedError

    def derive(self, tag: Hashable, function: Callable[[Any], Any]) -> View:
        """The view of `function` of every value; `tag` names the function (`("field", "labels")`)."""
        raise NotImplementedError

    def column(self) -> Column:
        """The values as a column."""
        raise NotImplementedError

    def elements(self, names: int) -> Elements | None:
        """What a macro with that many names walks; None if it has to go row by row."""
        raise NotImplementedError

    def row(self, index: int) -> Any:
        """The value of a row, or its CelError."""
        raise NotImplementedError

    def section(self, first: int, last: int) -> View:
        """The rows from first up to last."""
        return Taken(self, np.arange(first, last))


@dataclass(slots=True, eq=False)
class Elements:
    """The elements of every row in a row: where each row's start, a cell for each name, the rows that cannot be walked.

    `first` is the number of its first row where these are some of more rows.
    """

    offsets: Codes
    cells: tuple[Column | View, ...]
    failures: Failures | None = None
    first: int = 0
    _owner: Codes | None = None

    @property
    def owner(self) -> Codes:
        """The row of every element; made when somebody asks and kept."""
        if self._owner is None:
            self._owner = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        return self._owner


class Rows(View):
    """Values as they are, in a list. What is derived is kept, so a second expression finds it done."""

    __slots__ = ("_column", "_derived", "_elements", "values")

    def __init__(self, values: Iterable[Any]) -> None:
        self.values = list(values)
        self._derived: dict[Hashable, Rows] = {}
        self._column: Column | None = None
        self._elements: dict[int, Elements] = {}

    def __len__(self) -> int:
        return len(self.values)

    def row(self, index: int) -> Any:
        return self.values[index]

    def derive(self, tag: Hashable, function: Callable[[Any], Any]) -> View:
        known = self._derived.get(tag)
        if known is None:
            if len(self._derived) >= _MEMOS:
                self._derived.clear()
            known = self._derived[tag] = Rows(outcomes(function, self.values))
        return known

    def column(self) -> Column:
        if self._column is None:
            self._column = encode(self.values)
        return self._column

    def elements(self, names: int) -> Elements | None:
        known = self._elements.get(names)
        if known is None:
            known = self._elements[names] = taken_apart(self.values, names)
        return known


def taken_apart(values: Sequence[Any], names: int) -> Elements:
    """The elements of lists or maps, for a macro with so many names."""
    offsets = np.zeros(len(values) + 1, np.int64)
    found: tuple[list[Any], ...] = tuple([] for _ in range(names))
    problems: list[Any] = []
    for index, value in enumerate(values):
        try:
            if isinstance(value, CelError):
                raise value
            for item in elements(value, names):
                for part, named in zip(found, item, strict=True):
                    part.append(named)
            problems.append(None)
        except CelError as error:
            problems.append(error)
        offsets[index + 1] = len(found[0])
    failures = _failures(problems) if any(problem is not None for problem in problems) else None
    return Elements(offsets, tuple(Rows(part) for part in found), failures)


class Taken(View):
    """Some rows of another view, in any order and number."""

    __slots__ = ("rows", "view")

    def __init__(self, view: View, rows: Array) -> None:
        self.view = view
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def row(self, index: int) -> Any:
        return self.view.row(int(self.rows[index]))

    def derive(self, tag: Hashable, function: Callable[[Any], Any]) -> View:
        return Taken(self.view.derive(tag, function), self.rows)

    def column(self) -> Column:
        return self.view.column().take(self.rows)

    def elements(self, names: int) -> Elements | None:
        return Rows([self.row(index) for index in range(len(self.rows))]).elements(names)


class Ragged(View):
    """Lists that were computed: the elements of all rows in one cell, the rows with an error apart."""

    __slots__ = ("cell", "failures", "offsets")

    def __init__(self, offsets: Codes, cell: Column | View, failures: Failures | None) -> None:
        self.offsets = offsets
        self.cell = cell
        self.failures = failures

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def count(self) -> int:
        """The number of elements of all rows."""
        return int(self.offsets[-1])

    def row(self, index: int) -> Any:
        if self.failures is not None and self.failures.codes[index]:
            return self.failures.table[self.failures.codes[index] - 1]
        return [self.cell.row(position) for position in range(int(self.offsets[index]), int(self.offsets[index + 1]))]

    def _rows(self) -> Rows:
        return Rows([self.row(index) for index in range(len(self))])

    def derive(self, tag: Hashable, function: Callable[[Any], Any]) -> View:
        return self._rows().derive(tag, function)

    def column(self) -> Column:
        return self._rows().column()

    def sizes(self) -> Column:
        """The number of elements of every row."""
        return Column("int", np.diff(self.offsets), None, self.failures)

    def elements(self, names: int) -> Elements | None:
        if names != 1:
            return self._rows().elements(names)
        return Elements(self.offsets, (self.cell,), self.failures)


Cell: TypeAlias = Const | Column | View


def outcomes(function: Callable[..., Any], values: Sequence[Any]) -> list[Any]:
    """The function of every value: its result or its CelError; an error stays as it is."""
    found: list[Any] = []
    for value in values:
        if type(value) is CelError:
            found.append(value)
            continue
        try:
            found.append(function(value))
        except CelError as error:
            found.append(error)
    return found
