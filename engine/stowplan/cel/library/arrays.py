"""Array kernels: the same functions as the scalar ones beside them, for NumPy arrays of numbers and bools.

Each gives the data and the errors as (rows, error) pairs; the data means nothing in those rows. NumPy wraps int64 and
floors divisions, CEL reports overflow and truncates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from stowplan.cel.errors import CelError
from stowplan.cel.values import INT_MAX, INT_MIN

Array: TypeAlias = npt.NDArray[Any]
Problems: TypeAlias = tuple[tuple[Array, CelError], ...]
Result: TypeAlias = tuple[Array, Problems]

_OVERFLOW = CelError("integer overflow")
_DIVISION = CelError("division by zero")
_MODULUS = CelError("modulus by zero")
_DURATION = CelError("duration overflow")
_UNORDERED = CelError("NaN values cannot be ordered")


def _problems(*pairs: tuple[Array, CelError]) -> Problems:
    return tuple((mask, error) for mask, error in pairs if mask.any())


def int_add(a: Array, b: Array) -> Result:
    """Sum."""
    with np.errstate(over="ignore"):
        total = a + b
    return total, _problems((((a ^ total) & (b ^ total)) < 0, _OVERFLOW))


def int_subtract(a: Array, b: Array) -> Result:
    """Difference."""
    with np.errstate(over="ignore"):
        rest = a - b
    return rest, _problems((((a ^ b) & (a ^ rest)) < 0, _OVERFLOW))


def int_multiply(a: Array, b: Array) -> Result:
    """Product; where the factors are small enough no row needs a look."""
    with np.errstate(over="ignore"):
        product = a * b
    if _largest(a) * _largest(b) <= INT_MAX:
        return product, ()
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        back = product // np.where(a == 0, 1, a)
    wrong = (a != 0) & ((back != b) | ((a == -1) & (b == INT_MIN)))
    return product, _problems((wrong, _OVERFLOW))


def _largest(values: Array) -> int:
    return max(abs(int(values.max(initial=0))), abs(int(values.min(initial=0))))


def _quotient(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Truncated quotient, the rows divided by zero, the rows that overflow."""
    zero = b == 0
    over = (a == INT_MIN) & (b == -1)
    safe = np.where(zero | over, 1, b)
    floor = a // safe
    floor += (a % safe != 0) & ((a < 0) != (safe < 0))
    return floor, zero, over


def int_divide(a: Array, b: Array) -> Result:
    """Quotient toward zero."""
    quotient, zero, over = _quotient(a, b)
    return quotient, _problems((zero, _DIVISION), (over, _OVERFLOW))


def int_modulo(a: Array, b: Array) -> Result:
    """Remainder with the sign of the dividend."""
    quotient, zero, over = _quotient(a, b)
    with np.errstate(over="ignore"):
        rest = a - quotient * b
    return rest, _problems((zero, _MODULUS), (over, _OVERFLOW))


def duration_add(a: Array, b: Array) -> Result:
    """Sum of durations."""
    total, problems = int_add(a, b)
    return total, tuple((mask, _DURATION) for mask, _ in problems)


def duration_subtract(a: Array, b: Array) -> Result:
    """Difference of durations, or the time between moments."""
    rest, problems = int_subtract(a, b)
    return rest, tuple((mask, _DURATION) for mask, _ in problems)


def later(a: Array, b: Array) -> Result | None:
    """A moment and a duration; None where the sum is a moment that 64 bits of nanoseconds do not hold."""
    total, problems = int_add(a, b)
    return None if problems else (total, ())


def earlier(a: Array, b: Array) -> Result | None:
    """A moment less a duration; None as above."""
    rest, problems = int_subtract(a, b)
    return None if problems else (rest, ())


def int_negate(a: Array) -> Result:
    """Negation."""
    with np.errstate(over="ignore"):
        return -a, _problems((a == INT_MIN, _OVERFLOW))


def _plain(function: Callable[..., Array]) -> Callable[..., Result]:
    def kernel(*args: Array) -> Result:
        with np.errstate(all="ignore"):
            return function(*args), ()

    return kernel


double_add = _plain(np.add)
double_subtract = _plain(np.subtract)
double_multiply = _plain(np.multiply)
double_divide = _plain(np.divide)
double_negate = _plain(np.negative)
negate = _plain(np.logical_not)
floor = _plain(np.floor)
ceil = _plain(np.ceil)
trunc = _plain(np.trunc)
to_double = _plain(lambda a: a.astype(np.float64))


def double_to_int(a: Array) -> Result:
    """Rounded toward zero."""
    with np.errstate(invalid="ignore"):
        wrong = ~((a > -(2.0**63)) & (a < 2.0**63))
    return np.where(wrong, 0.0, a).astype(np.int64), _problems((wrong, _OVERFLOW))


_ORDERS: dict[str, Callable[..., Array]] = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


def _numbers(a: Array, b: Array) -> tuple[Array, Array]:
    """Both as doubles if one is: an int beside a double is rounded, as everywhere in CEL."""
    if a.dtype != b.dtype:
        return a.astype(np.float64), b.astype(np.float64)
    return a, b


def ordered(operator: str) -> Callable[..., Result]:
    """The kernel of an order."""
    test = _ORDERS[operator]

    def kernel(a: Array, b: Array) -> Result:
        a, b = _numbers(a, b)
        with np.errstate(invalid="ignore"):
            data = test(a, b)
        if a.dtype != np.float64:
            return data, ()
        return data, _problems((np.isnan(a) | np.isnan(b), _UNORDERED))

    return kernel


def same(a: Array, b: Array) -> Result:
    """Equality of numbers, or of bools."""
    a, b = _numbers(a, b)
    return a == b, ()


def different(a: Array, b: Array) -> Result:
    """Inequality of numbers, or of bools."""
    a, b = _numbers(a, b)
    return a != b, ()
