"""Scalar functions over columns: once a distinct value, or as an array kernel where there is one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from stowplan.cel.column import (
    DTYPES,
    NUMERIC,
    Array,
    Cell,
    Codes,
    Column,
    Const,
    Dictionary,
    Failures,
    Mask,
    View,
    bare,
    encode,
    failing,
    first_failure,
    outcomes,
    restored,
)
from stowplan.cel.errors import CelError, no_overload
from stowplan.cel.library.arrays import different, same
from stowplan.cel.overloads import Function
from stowplan.cel.values import INT_MAX, INT_MIN, Duration, Timestamp, kind_of

Scalar = Callable[..., Any]
_EQUALITY = {"_==_": same, "_!=_": different}
_NUMBERS = frozenset(("int", "double"))
_TAGGED = frozenset((str, bool, int, float, Timestamp, Duration))
_WIDEST = 2**62  # combinations of codes that a number can hold
_SHORT = 64  # constant lists that may be part of a tag


def as_column(cell: Cell, size: int) -> Column:
    """The cell as a column of that many rows."""
    if isinstance(cell, Column):
        return cell
    if isinstance(cell, View):
        return cell.column()
    if isinstance(cell.value, CelError):
        return Column("coded", np.full(size, -1, np.int64), Dictionary(()), Failures(np.ones(size, np.int64), (cell.value,)))
    return encode([cell.value]).take(np.zeros(size, np.int64))


def derive(cell: Cell, tag: Hashable, function: Scalar) -> Cell:
    """A function of structured values that depends on nothing else."""
    if isinstance(cell, View):
        return cell.derive(tag, function)
    if isinstance(cell, Const):
        return Const(outcomes(function, [cell.value])[0])
    return each(cell, tag, function)


def each(column: Column, tag: Hashable, function: Scalar) -> Column:
    """The function of every row, run once a distinct value; `tag` names it for the dictionary's memory."""
    codes, words = coded_form(column)
    if not len(words.values):
        return column
    result: Column = words.remember(("each", tag), lambda: encode(outcomes(function, words.values)))
    return _spread(result, codes, column.failures)


def _spread(result: Column, codes: Codes, failures: Failures | None) -> Column:
    """The results of distinct values given to the rows; rows that failed before keep their error."""
    taken = result.take(codes if failures is None else np.maximum(codes, 0))
    return taken.failing(failures)


def coded_form(column: Column) -> tuple[Codes, Dictionary]:
    """Codes into the distinct values of a column."""
    if column.words is not None:
        return column.data, column.words
    data = np.ascontiguousarray(column.data)
    if column.kind != "double":
        distinct, codes = np.unique(data, return_inverse=True)
    else:  # by bits: 0.0 and -0.0 are not the same value
        bits, codes = np.unique(data.view(np.int64), return_inverse=True)
        distinct = bits.view(np.float64)
    return codes.astype(np.int64), Dictionary([restored(column.kind, value) for value in distinct.tolist()])


def bools(cell: Cell, name: str) -> Column:
    """The column with an error wherever the value is no bool."""
    column = cell.column() if isinstance(cell, View) else cell
    assert isinstance(column, Column)
    if column.kind == "bool":
        return column

    def check(value: Any) -> bool:
        if value is True or value is False:
            return bool(value)
        raise no_overload(name, kind_of(value))

    checked = each(column, ("bool", name), check)
    return checked if checked.kind == "bool" else Column("bool", np.zeros(len(column), np.bool_), None, checked.failures)


def call(scalar: Scalar, function: Function | None, cells: Sequence[Cell], size: int, pay: Callable[[int], None]) -> Cell:
    """The function over cells of which at least one is no constant; `pay` is told how many sets of values it is given."""
    varying = [cell for cell in cells if not isinstance(cell, Const)]
    if not varying:
        error = next((cell for cell in cells if isinstance(cell, Const) and isinstance(cell.value, CelError)), None)
        return error or Const(_outcome(scalar, [cell.value for cell in cells if isinstance(cell, Const)]))
    if any(isinstance(cell, Const) and isinstance(cell.value, CelError) for cell in cells):
        return as_column(_first_error(cells, size), size)
    if len(varying) == 1 and isinstance(varying[0], View) and varying[0].opaque:
        pay(size)
        return _derived(scalar, function, varying[0], cells)
    columns = [cell if isinstance(cell, Const) else as_column(cell, size) for cell in cells]
    if function is not None:
        fast = _by_codes(function, columns) or _by_arrays(function, columns, size)
        if fast is not None:
            return fast
    if len(varying) == 1 and isinstance(varying[0], View) and not _memorable(columns):
        pay(size)
        return _derived(scalar, function, varying[0], cells)
    return _distinct(scalar, function, columns, pay)


def _outcome(scalar: Scalar, values: Sequence[Any]) -> Any:
    try:
        return scalar(*values)
    except CelError as error:
        return error


def _first_error(cells: Sequence[Cell], size: int) -> Column:
    """An argument fails in every row: the first error of each row, from left to right."""
    failures = first_failure(*(as_column(cell, size).failures for cell in cells))
    return Column("coded", np.full(size, -1, np.int64), Dictionary(()), failures)


def _memorable(columns: Sequence[Cell]) -> bool:
    """Whether the one column has few values to run through."""
    column = next(column for column in columns if isinstance(column, Column))
    return column.words is None or column.words.texts


def _constants(cells: Sequence[Cell]) -> Hashable:
    """The constants among the arguments as part of a tag; an object of its own where they cannot be told apart."""
    parts: list[Hashable] = []
    for index, cell in enumerate(cells):
        if isinstance(cell, Const):
            value = cell.value
            plain = value if type(value) in (list, tuple) and len(value) <= _SHORT else (value,)
            if type(value) is dict and len(value) <= _SHORT:
                plain = (*value.keys(), *value.values())
            if not all(type(part) in _TAGGED for part in plain):
                return object()
            parts.append((index, type(value), repr(value)))
    return tuple(parts)


def _derived(scalar: Scalar, function: Function | None, view: View, cells: Sequence[Cell]) -> Cell:
    constants = _constants(cells)
    run = _with(scalar, cells)
    if type(constants) is object or function is None:
        return encode(outcomes(run, [view.row(index) for index in range(len(view))]))
    return view.derive(("call", function, constants), run)


def _with(scalar: Scalar, cells: Sequence[Cell]) -> Scalar:
    """The function of the one argument that is no constant."""
    values = [cell.value if isinstance(cell, Const) else None for cell in cells]
    place = next(index for index, cell in enumerate(cells) if not isinstance(cell, Const))

    def run(value: Any) -> Any:
        return scalar(*values[:place], value, *values[place + 1 :])

    return run


def _by_codes(function: Function, cells: Sequence[Cell]) -> Column | None:
    """Equality of texts, by their codes."""
    if function.name not in _EQUALITY or len(cells) != 2:
        return None
    left, right = cells
    if isinstance(left, Const):
        left, right = right, left
    if not isinstance(left, Column) or left.words is None or not left.words.texts:
        return None
    if isinstance(right, Const):
        if type(right.value) is not str:
            return None
        code = left.words.find(right.value)
        equal = left.data == (code if code >= 0 else -2)
        failures = left.failures
    else:
        if not isinstance(right, Column) or right.words is None or not right.words.texts:
            return None
        equal = _same_codes(left, right)
        first, second = cells
        failures = first_failure(*(cell.failures for cell in (first, second) if isinstance(cell, Column)))
    return Column("bool", equal if function.name == "_==_" else ~equal, None, failures)


def _same_codes(left: Column, right: Column) -> Mask:
    assert left.words is not None
    assert right.words is not None
    if left.words is right.words:
        same_words: Mask = left.data == right.data
        return same_words
    if len(left.words.values) > len(right.words.values):
        left, right = right, left
    small, large = left.words, right.words
    assert small is not None
    assert large is not None
    if not len(small.values):
        return np.zeros(len(left), np.bool_)

    def translate() -> tuple[Dictionary, Array]:
        table = np.array([large.find(word) for word in small.values], np.int64)
        return large, np.where(table < 0, -2, table)

    _, table = small.remember(("codes", id(large)), translate)
    equal: Mask = table[np.maximum(left.data, 0)] == right.data
    return equal


def _kind(cell: Cell) -> str | None:
    """The kind of plain data in a cell, None for anything else."""
    if isinstance(cell, Column):
        return cell.kind if cell.words is None else None
    if not isinstance(cell, Const) or (isinstance(cell.value, Timestamp) and not INT_MIN <= cell.value.ns <= INT_MAX):
        return None
    return NUMERIC.get(type(cell.value))


def _by_arrays(function: Function, cells: Sequence[Cell], size: int) -> Column | None:
    """The array kernel for numbers and bools of these kinds, if there is one."""
    kinds = [_kind(cell) for cell in cells]
    if None in kinds:
        return None
    if function.name in _EQUALITY:
        alike = kinds[0] == kinds[1] or _NUMBERS.issuperset(str(kind) for kind in kinds)
        kernel, result = (_EQUALITY[function.name] if alike else None), "bool"
    else:
        fitting = (o for o in function.overloads if o.array is not None and [param.name for param in o.params] == kinds)
        overload = next(fitting, None)
        kernel, result = (None, "") if overload is None else (overload.array, overload.result.name)
    found = None if kernel is None else kernel(*(_array(cell) for cell in cells))
    if found is None:
        return None
    data, problems = found
    data = np.broadcast_to(data, (size,))
    failures = first_failure(*(cell.failures for cell in cells if isinstance(cell, Column)))
    for mask, error in problems:
        failures = first_failure(failures, failing(np.broadcast_to(mask, (size,)), error))
    return Column(result, data, None, failures)


def _array(cell: Cell) -> Array:
    if isinstance(cell, Column):
        return cell.data
    assert isinstance(cell, Const)
    return np.array(bare(cell.value), dtype=DTYPES[NUMERIC[type(cell.value)]])


def _distinct(scalar: Scalar, function: Function | None, cells: Sequence[Cell], pay: Callable[[int], None]) -> Column:
    """The function once for every combination of values that occurs."""
    columns = [cell for cell in cells if isinstance(cell, Column)]
    size = len(columns[0])
    failures = first_failure(*(column.failures for column in columns))
    if len(columns) == 1:
        constants = _constants(cells)
        words = columns[0].words
        pay(size if words is None else len(words.values))  # also for what is remembered: the same in every evaluation
        return each(columns[0], ("call", function or scalar, constants), _with(scalar, cells))
    coded = [coded_form(column) for column in columns]
    if not all(len(words.values) for _, words in coded):
        return Column("coded", np.full(size, -1, np.int64), Dictionary(()), failures)
    key, width = np.zeros(size, np.int64), 1
    for codes, words in coded:
        width *= len(words.values)
        if width > _WIDEST:
            used, key = np.unique(key, return_inverse=True)
            width = len(used) * len(words.values)
        key = key * len(words.values) + np.maximum(codes, 0)
    if failures is not None:
        key[failures.mask] = -1  # apart from the rows that have the same data and no error
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    pay(len(first))
    found: list[Any] = []
    for row in first.tolist():
        if failures is not None and failures.codes[row]:
            found.append(None)
            continue
        values = iter([words.values[codes[row]] for codes, words in coded])
        found.append(_outcome(scalar, [cell.value if isinstance(cell, Const) else next(values) for cell in cells]))
    return _spread(encode(found), inverse.astype(np.int64), failures)


def choose(condition: Column, first: Cell, second: Cell) -> Column:
    """For every row one of two values; the error of the condition comes first."""
    mask = condition.data
    if isinstance(first, Const) and isinstance(second, Const) and type(first.value) is type(second.value):
        kind = _kind(first) if _kind(second) is not None else None
        if kind is not None:
            return Column(kind, np.where(mask, _array(first), _array(second)), None, condition.failures)
    then, otherwise = as_column(first, len(mask)), as_column(second, len(mask))
    failures = _chosen_failures(mask, then.failures, otherwise.failures)
    if then.kind == otherwise.kind and then.words is None:
        return Column(then.kind, np.where(mask, then.data, otherwise.data), None, failures).failing(condition.failures)
    (a, words), (b, others) = coded_form(then), coded_form(otherwise)
    if words is others:
        return Column("coded", np.where(mask, a, b), words, failures).failing(condition.failures)
    codes, both = merged(words, others)
    count = len(words.values)
    left = codes[np.maximum(a, 0)] if count else a
    right = codes[np.maximum(b, 0) + count] if len(others.values) else b
    return Column("coded", np.where(mask, left, right), both, failures).failing(condition.failures)


def merged(first: Dictionary, second: Dictionary) -> tuple[Codes, Dictionary]:
    """Both dictionaries in one, with the codes of the first's words and then of the second's."""

    def merge() -> tuple[Dictionary, Codes, Dictionary]:
        codes, words = coded_form(_ascoded_form([*first.values, *second.values]))
        return second, codes, words

    _, codes, words = first.remember(("merged", id(second)), merge)
    return codes, words


def _ascoded_form(values: Sequence[Any]) -> Column:
    column = encode(values)
    if column.words is not None:
        return column
    distinct: dict[Hashable, int] = {}
    codes = [distinct.setdefault((type(value), repr(value)), len(distinct)) for value in values]
    words: list[Any] = [None] * len(distinct)
    for value, code in zip(values, codes, strict=True):
        words[code] = value
    return Column("coded", np.array(codes, np.int64), Dictionary(words), None)


def _chosen_failures(mask: Mask, then: Failures | None, otherwise: Failures | None) -> Failures | None:
    a = None if then is None else Failures(np.where(mask, then.codes, 0), then.table)
    b = None if otherwise is None else Failures(np.where(mask, 0, otherwise.codes), otherwise.table)
    return first_failure(a, b)


class Chain:
    """A chain of `&&` or `||` in the making."""

    def __init__(self, dominant: bool, size: int) -> None:
        self.dominant = dominant
        self.decided: Mask = np.zeros(size, np.bool_)
        self.failures: Failures | None = None
        self.final: Failures | None = None
        """errors that nothing absorbs, in rows that no earlier term decided"""
        self.name = "_||_" if dominant else "_&&_"

    def add(self, cell: Cell) -> bool:
        """Takes a term; true when it decides every row."""
        if isinstance(cell, Const):
            value = cell.value
            if value is self.dominant:
                self.decided = np.ones(len(self.decided), np.bool_)
                return self.final is None
            if value is not (not self.dominant):
                error = value if isinstance(value, CelError) else no_overload(self.name, kind_of(value))
                self.fail(failing(np.ones(len(self.decided), np.bool_), error))
            return False
        column = bools(cell, self.name)
        truth = column.data == self.dominant
        self.fail(column.failures)
        self.decided |= truth if column.failures is None else truth & ~column.failures.mask
        return False

    def fail(self, failures: Failures | None) -> None:
        """Takes the errors of a term."""
        self.failures = first_failure(self.failures, failures)
        final = None if failures is None else failures.final()
        if final is not None:
            self.final = first_failure(self.final, Failures(np.where(self.decided, 0, final.codes), final.table))

    def result(self) -> Column:
        """The value of every row."""
        failures = self.failures
        if failures is not None:
            failures = Failures(np.where(self.decided, 0, failures.codes), failures.table)
        failures = first_failure(self.final, failures)
        return Column("bool", self.decided if self.dominant else ~self.decided, None, failures)


__all__ = ["Chain", "as_column", "bools", "call", "choose", "coded_form", "derive", "each", "merged"]
