"""Arithmetic, order and equality: the operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from stowplan.cel import limits
from stowplan.cel.errors import CelError
from stowplan.cel.library import arrays
from stowplan.cel.overloads import Overload, declare
from stowplan.cel.values import UInt, check_int, check_uint, compare, equal


def _divide(left: int, right: int) -> int:
    """Truncates toward zero, as CEL and Go do; Python floors."""
    if not right:
        raise CelError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _int_divide(left: int, right: int) -> int:
    return check_int(_divide(left, right))


def _int_modulo(left: int, right: int) -> int:
    if not right:
        raise CelError("modulus by zero")
    check_int(_divide(left, right))  # the least int by -1 overflows here too
    return left - right * _divide(left, right)


def _uint_divide(left: int, right: int) -> UInt:
    return check_uint(_divide(left, right))


def _uint_modulo(left: int, right: int) -> UInt:
    if not right:
        raise CelError("modulus by zero")
    return UInt(int(left) % int(right))


def _double_divide(left: float, right: float) -> float:
    if right == 0:
        if left == 0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1.0, right)
    return left / right


def _times(left: float, right: float) -> float:
    return left * right


def join_strings(left: Any, right: Any) -> Any:
    """Concatenation of strings or bytes, up to the limit of strings."""
    if len(left) + len(right) > limits.STRING:
        raise CelError(f"a string of more than {limits.STRING} characters", absorbable=False)
    return left + right


def join_lists(left: Any, right: Any) -> list[Any]:
    """Concatenation of lists, up to the limit of lists."""
    if len(left) + len(right) > limits.LIST:
        raise CelError(f"a list of more than {limits.LIST} elements", absorbable=False)
    return [*left, *right]


# In the order of cel-go: the first overload decides the type of what has none, such as `[].map(x, x + x)`.
ARITHMETIC = (
    declare("_+_(bytes, bytes) -> bytes", join_strings, "concatenation", grows=1),
    declare("_+_(double, double) -> double", lambda a, b: a + b, "sum", array=arrays.double_add),
    declare("_+_(int, int) -> int", lambda a, b: check_int(a + b), "sum; overflow is an error", array=arrays.int_add),
    declare("_+_(list(A), list(A)) -> list(A)", join_lists, "concatenation", grows=1),
    declare("_+_(string, string) -> string", join_strings, "concatenation", grows=1),
    declare("_+_(uint, uint) -> uint", lambda a, b: check_uint(int(a) + int(b)), "sum; overflow is an error"),
    declare("_-_(double, double) -> double", lambda a, b: a - b, "difference", array=arrays.double_subtract),
    declare("_-_(int, int) -> int", lambda a, b: check_int(a - b), "difference; overflow is an error", array=arrays.int_subtract),
    declare("_-_(uint, uint) -> uint", lambda a, b: check_uint(int(a) - int(b)), "difference; below zero is an error"),
    declare("_*_(double, double) -> double", _times, "product", array=arrays.double_multiply),
    declare("_*_(int, int) -> int", lambda a, b: check_int(a * b), "product; overflow is an error", array=arrays.int_multiply),
    declare("_*_(uint, uint) -> uint", lambda a, b: check_uint(int(a) * int(b)), "product; overflow is an error"),
    declare("_/_(double, double) -> double", _double_divide, "quotient; by zero it is infinite", array=arrays.double_divide),
    declare("_/_(int, int) -> int", _int_divide, "quotient, rounded toward zero", array=arrays.int_divide),
    declare("_/_(uint, uint) -> uint", _uint_divide, "quotient, rounded down"),
    declare("_%_(int, int) -> int", _int_modulo, "remainder, with the sign of the dividend", array=arrays.int_modulo),
    declare("_%_(uint, uint) -> uint", _uint_modulo, "remainder"),
    declare("-_(double) -> double", lambda a: -a, "negation", array=arrays.double_negate),
    declare("-_(int) -> int", lambda a: check_int(-a), "negation; overflow is an error", array=arrays.int_negate),
    declare("!_(bool) -> bool", lambda a: not a, "not", array=arrays.negate),
)


def _order(operator: str, test: Callable[[int], bool]) -> list[Overload]:
    def kernel(left: Any, right: Any) -> bool:
        return test(compare(left, right))

    same = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
    numbers = ("int", "uint", "double")
    pairs = [(kind, kind) for kind in same] + [(a, b) for a in numbers for b in numbers if a != b]
    vector = {(kind, kind) for kind in ("int", "double", "timestamp", "duration")} | {("int", "double"), ("double", "int")}
    return [
        declare(
            f"_{operator}_({a}, {b}) -> bool",
            kernel,
            "order; numbers of different types by value, NaN has none",
            array=arrays.ordered(operator) if (a, b) in vector else None,
        )
        for a, b in pairs
    ]


ORDER = (
    *_order("<", lambda sign: sign < 0),
    *_order("<=", lambda sign: sign <= 0),
    *_order(">", lambda sign: sign > 0),
    *_order(">=", lambda sign: sign >= 0),
)
EQUALITY = (
    declare("_==_(A, A) -> bool", equal, "equality; numbers by value, other types are never equal", array=arrays.same, grows=1),
    declare("_!=_(A, A) -> bool", lambda a, b: not equal(a, b), "inequality", array=arrays.different, grows=1),
)
OPERATORS = (*ARITHMETIC, *ORDER, *EQUALITY)
