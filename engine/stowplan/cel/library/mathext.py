"""The math library of cel-spec; Kubernetes' environment does not have it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from stowplan.cel.errors import CelError, no_overload
from stowplan.cel.library import arrays
from stowplan.cel.overloads import Overload, declare
from stowplan.cel.values import INT_MIN, UINT_MAX, UInt, check_int, compare, kind_of

_NUMBERS = ("int", "uint", "double")


def _pick(name: str, sign: int) -> Callable[..., Any]:
    def kernel(*args: Any) -> Any:
        items: Sequence[Any] = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
        if not items:
            raise CelError(f"math.{name}(list) argument must not be empty")
        for item in items:
            if kind_of(item) not in _NUMBERS:
                raise no_overload(f"math.{name}", kind_of(item))
        best = items[0]
        for item in items[1:]:
            if compare(item, best) == sign:
                best = item
        return best

    return kernel


def _extremes(name: str, sign: int, doc: str) -> list[Overload]:
    kernel = _pick(name, sign)
    found = [declare(f"math.{name}({a}) -> {a}", kernel, doc) for a in _NUMBERS]
    found += [declare(f"math.{name}({a}, {b}) -> {a if a == b else 'dyn'}", kernel, doc) for a in _NUMBERS for b in _NUMBERS]
    found += [declare(f"math.{name}(list({a})) -> {a}", kernel, doc) for a in _NUMBERS]
    return [*found, declare(f"math.{name}(list(dyn)) -> dyn", kernel, doc)]


def _round(value: float) -> float:
    """Half away from zero."""
    if not math.isfinite(value):
        return value
    whole = float(math.trunc(value))
    return math.copysign(whole + math.copysign(1.0, value) if abs(value - whole) >= 0.5 else whole, value)


def _finite(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda value: math.copysign(float(function(value)), value) if math.isfinite(value) else value


def _abs_int(value: int) -> int:
    if value == INT_MIN:
        raise CelError("integer overflow")
    return abs(value)


def _sign(value: Any) -> Any:
    if type(value) is float:
        return math.nan if math.isnan(value) else float((value > 0) - (value < 0))
    sign = (int(value) > 0) - (int(value) < 0)
    return UInt(sign) if type(value) is UInt else sign


def _signed(value: int) -> int:
    """The low 64 bits as a signed number."""
    value &= UINT_MAX
    return value - 2**64 if value >= 2**63 else value


def _shift(left: bool) -> Callable[[Any, int], Any]:
    def kernel(value: Any, by: int) -> Any:
        if by < 0:
            raise CelError(f"math.bitShift{'Left' if left else 'Right'}() negative offset: {by}")
        bits = int(value) & UINT_MAX
        shifted = 0 if by >= 64 else (bits << by) & UINT_MAX if left else bits >> by
        return UInt(shifted) if type(value) is UInt else _signed(shifted)

    return kernel


def _bits(name: str, function: Callable[[int, int], int]) -> list[Overload]:
    return [
        declare(f"math.{name}(int, int) -> int", lambda a, b: _signed(function(a, b)), "bit by bit"),
        declare(f"math.{name}(uint, uint) -> uint", lambda a, b: UInt(function(int(a), int(b))), "bit by bit"),
    ]


def _sqrt(value: Any) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


MATH = (
    *_extremes("greatest", 1, "the greatest argument or element"),
    *_extremes("least", -1, "the least argument or element"),
    declare("math.ceil(double) -> double", _finite(math.ceil), "the whole number not below", array=arrays.ceil),
    declare("math.floor(double) -> double", _finite(math.floor), "the whole number not above", array=arrays.floor),
    declare("math.trunc(double) -> double", _finite(math.trunc), "the whole number toward zero", array=arrays.trunc),
    declare("math.round(double) -> double", _round, "the nearest whole number, halves away from zero"),
    declare("math.isNaN(double) -> bool", math.isnan, "whether it is no number"),
    declare("math.isInf(double) -> bool", math.isinf, "whether it is infinite"),
    declare("math.isFinite(double) -> bool", math.isfinite, "whether it is neither infinite nor NaN"),
    declare("math.abs(int) -> int", _abs_int, "without its sign"),
    declare("math.abs(uint) -> uint", lambda v: v, "the same"),
    declare("math.abs(double) -> double", math.fabs, "without its sign"),
    *(declare(f"math.sign({a}) -> {a}", _sign, "-1, 0 or 1") for a in _NUMBERS),
    *(declare(f"math.sqrt({a}) -> double", _sqrt, "the square root") for a in _NUMBERS),
    *_bits("bitAnd", lambda a, b: a & b),
    *_bits("bitOr", lambda a, b: a | b),
    *_bits("bitXor", lambda a, b: a ^ b),
    declare("math.bitNot(int) -> int", lambda v: check_int(~v), "every bit turned over"),
    declare("math.bitNot(uint) -> uint", lambda v: UInt(UINT_MAX - int(v)), "every bit turned over"),
    *(declare(f"math.bitShiftLeft({a}, int) -> {a}", _shift(left=True), "bits moved up") for a in ("int", "uint")),
    *(declare(f"math.bitShiftRight({a}, int) -> {a}", _shift(left=False), "bits moved down") for a in ("int", "uint")),
)
