"""Steps of calls: the kernel looked up by the Python classes of the arguments, errors of arguments first."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from stowplan.cel.errors import CelError, no_overload
from stowplan.cel.folds import Frame, Step, size_cost
from stowplan.cel.overloads import Function, Overload
from stowplan.cel.values import Optional, equal, kind_of


@lru_cache(maxsize=4096)
def narrowed(name: str, overloads: tuple[Overload, ...], every: tuple[Overload, ...]) -> Function:
    """The function with the overloads that fit a call; of an operator the others come after them.

    Which overload it is matters where values do not tell: the sum of an empty list. Operators go by values alone, as in
    cel-go: a type that the checker had to guess may turn out to be another.
    """
    others = every if name[0] in "_-!@" or name == "size" else ()
    return Function(name, [*overloads, *(overload for overload in others if overload not in overloads)])


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


def _equality(first: Step, second: Step, *, equals: bool) -> Step:
    """Equality takes any two values, so there is no kernel to look up."""

    def run(frame: Frame) -> bool:
        a, b = first(frame), second(frame)
        same = a == b if type(a) is str and type(b) is str else equal(a, b)
        return same is equals

    return run


def apply(function: Function, args: list[Step]) -> Step:
    """The call, with the kernel looked up by the Python classes of the arguments."""
    table, find = function.table, function.find
    metered = max((overload.grows for overload in function.overloads), default=0)
    if metered or len(args) not in (1, 2):

        def run(frame: Frame) -> Any:
            values = [arg(frame) for arg in args]
            if not metered:
                return find(*values)(*values)
            frame[0].spend(size_cost(values, metered))
            result = find(*values)(*values)
            frame[0].spend(size_cost((result,), 1))
            return result

        return run
    if len(args) == 1:
        (only,) = args

        def run_one(frame: Frame) -> Any:
            value = only(frame)
            return (table.get((type(value),)) or find(value))(value)

        return run_one
    first, second = args
    if function.name in _EQUALITY:
        return _equality(first, second, equals=function.name == "_==_")

    def run_two(frame: Frame) -> Any:
        a, b = first(frame), second(frame)
        return (table.get((type(a), type(b))) or find(a, b))(a, b)

    return run_two
