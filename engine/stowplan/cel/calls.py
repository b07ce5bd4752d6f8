"""Steps of calls: the kernel looked up by the Python classes of the arguments, errors of arguments first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from stowplan.cel.cost import CHARACTERS, SEARCH, made_cost, parts_cost, pattern_cost, size_cost
from stowplan.cel.errors import CelError, no_overload
from stowplan.cel.folds import Frame, Step
from stowplan.cel.meter import Meter
from stowplan.cel.overloads import Function, Overload
from stowplan.cel.values import Duration, Optional, Timestamp, UInt, equal, kind_of


@lru_cache(maxsize=4096)
def narrowed(name: str, overloads: tuple[Overload, ...], every: tuple[Overload, ...]) -> Function:
    """The function with the overloads that fit a call; of an operator the others come after them.

    Which overload it is matters where values do not tell: the sum of an empty list. Operators go by values alone, as in
    cel-go: a type that the checker had to guess may turn out to be another.
    """
    others = every if name[0] in "_-!@" or name == "size" else ()
    if name in _BY_ELEMENT and len(overloads) < len(every):
        overloads = tuple(map(_guarded, overloads))
    return Function(name, [*overloads, *(overload for overload in others if overload not in overloads)])


def _guarded(overload: Overload) -> Overload:
    """The overload of lists of one type: as in cel-go, a list whose first element is of another type does not fit it."""
    first = overload.params[0] if overload.params else None
    if first is None or first.name != "list" or first.params[0].name not in _SCALARS:
        return overload
    name, wanted, kernel = overload.name, first.params[0].name, overload.kernel

    def guarded(items: Any, *args: Any) -> Any:
        if items and kind_of(items[0]) != wanted:
            raise no_overload(name, "list", *map(kind_of, args))
        return kernel(items, *args)

    return replace(overload, kernel=guarded)


def present(value: Any) -> bool:
    """Whether an optional entry of a literal is there."""
    if not isinstance(value, Optional):
        raise CelError(f"cannot initialize optional entry from non-optional value of type {kind_of(value)}")
    return value.present


def lazily(name: str, left: Step, right: Step) -> Step:
    """`or` and `orValue`: the right side is computed only if the left has no value."""

    def run(frame: Frame) -> Any:
        optional = left(frame)
        if not isinstance(optional, Optional):
            raise no_overload(name, kind_of(optional))
        if optional.present:
            return optional.value if name == "orValue" else optional
        other = right(frame)
        if name == "or" and not isinstance(other, Optional):
            raise no_overload(name, kind_of(other))
        return other

    return run


_EQUALITY = frozenset(("_==_", "_!=_"))
_ORDER = frozenset(("_<_", "_<=_", "_>_", "_>=_"))
PATTERNS = frozenset(("matches", "find", "findAll"))
_BY_ELEMENT = frozenset(("min", "max", "sum", "isSorted"))
_SCALARS = frozenset(("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration"))
_LONG = 500
"""Characters of a text that takes noticeable time to compare."""
_SIMPLE = frozenset((int, float, bool, UInt, type(None), Timestamp, Duration))


def _equality(first: Step, second: Step, *, equals: bool) -> Step:
    """Equality takes any two values, so there is no kernel to look up."""

    def run(frame: Frame) -> bool:
        a, b = first(frame), second(frame)
        cls = type(a)
        if cls is str:
            if len(a) > _LONG:
                frame[0].spend(len(a) // CHARACTERS)
            same = a == b if type(b) is str else equal(a, b)
        else:
            if cls not in _SIMPLE:
                frame[0].spend(parts_cost(a))
            same = equal(a, b)
        return same is equals

    return run


def priced(function: Function, *, literal: bool) -> Callable[[Meter, list[Any]], Any]:
    """The call of a function whose work grows with its arguments; `literal`: its pattern is compiled once and for all."""
    find = function.find
    power = max((overload.grows for overload in function.overloads), default=0)
    searches = function.name in PATTERNS
    compiles, fixed = searches and not literal, SEARCH if searches else 0

    def run(meter: Meter, values: list[Any]) -> Any:
        meter.spend(fixed + size_cost(values, power))
        if compiles and type(values[1]) is str:
            meter.compiling(values[1], pattern_cost(values[1]))
        result = find(*values)(*values)
        meter.spend(made_cost(result))
        return result

    return run


def grows(function: Function) -> bool:
    """Whether the work of a call grows with its arguments."""
    return any(overload.grows for overload in function.overloads)


def _growing(function: Function, args: list[Step], call: Callable[[Meter, list[Any]], Any]) -> Step:
    """The step of a priced call; numbers, which do not grow, go the short way."""
    table, find = function.table, function.find
    if len(args) != 2:
        return lambda frame: call(frame[0], [arg(frame) for arg in args])
    first, second = args

    def run(frame: Frame) -> Any:
        a, b = first(frame), second(frame)
        if type(a) in _SIMPLE and type(b) in _SIMPLE:
            return (table.get((type(a), type(b))) or find(a, b))(a, b)
        return call(frame[0], [a, b])

    return run


def apply(function: Function, args: list[Step], *, literal: bool) -> Step:
    """The call, with the kernel looked up by the Python classes of the arguments; `literal` as for `priced`."""
    table, find = function.table, function.find
    if function.name in _EQUALITY and len(args) == 2:
        return _equality(*args, equals=function.name == "_==_")
    ordered = function.name in _ORDER and len(args) == 2
    if grows(function) and not ordered:
        return _growing(function, args, priced(function, literal=literal))
    if len(args) == 1:
        (only,) = args

        def run_one(frame: Frame) -> Any:
            value = only(frame)
            return (table.get((type(value),)) or find(value))(value)

        return run_one
    if len(args) != 2:

        def run(frame: Frame) -> Any:
            values = [arg(frame) for arg in args]
            return find(*values)(*values)

        return run
    first, second = args

    def run_two(frame: Frame) -> Any:
        a, b = first(frame), second(frame)
        if ordered and type(a) is str and len(a) > _LONG:
            frame[0].spend(len(a) // CHARACTERS)
        return (table.get((type(a), type(b))) or find(a, b))(a, b)

    return run_two
