"""`resource.Quantity` in CEL: exact amounts that remember how they were written.

Upstream: ParseQuantity, CanonicalizeBytes and int64Amount of k8s.io/apimachinery/pkg/api/resource. Whether a quantity
"is an integer" depends there on how it is held: a 64-bit value with a decimal scale when the text is short enough,
else a decimal, which never counts as one. `value` and `scale` are that first form; None when upstream holds a decimal.
Amounts are kept in nano units, as upstream rounds to them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from stowplan.cel import kinds
from stowplan.cel.errors import CelError
from stowplan.cel.kinds import Type
from stowplan.cel.overloads import declare
from stowplan.cel.values import INT_MAX, INT_MIN

_SHAPE = re.compile(r"([+-]?)(\d*)(\.?)(\d*)([eEinumkKMGTP]*[-+]?\d*)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SUFFIX = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BITS = {bits: suffix for suffix, bits in _BINARY.items()}
_EXPONENT = re.compile(r"[eE]([+-]?\d{1,9})", re.ASCII)
_NANO = 10**9
_DIGITS = 18  # decimal digits that surely fit 64 bits
_LONGEST = 512


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An amount in nano units with its family of suffixes; `text` only when upstream would print it as it was read."""

    cel_type: ClassVar[Type] = kinds.QUANTITY
    nano: int
    family: str
    value: int | None = None
    scale: int = 0
    text: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nano == other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __str__(self) -> str:
        return self.text or _canonical(self)


def _wrong() -> CelError:
    return CelError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")


def parse_quantity(text: str) -> Quantity:
    """The quantity, or CelError."""
    match = _SHAPE.fullmatch(text)
    if match is None or not text or len(text) > _LONGEST:
        raise _wrong()
    sign, digits, _, decimals, suffix = match.groups()
    digits = digits.lstrip("0") or ("0" if suffix or decimals or match[3] else "")
    if not digits:
        return Quantity(0, "DecimalSI", 0, 0)
    family, bits, power = _family(suffix)
    value = _short(digits, decimals, bits, power)
    if value is not None:
        scale = power - len(decimals)
        number = -value if sign == "-" else value
        kept = _kept(digits + decimals, bits, scale, value)
        if scale <= _LONGEST:
            return Quantity(number * 10 ** (scale + 9), family, number, scale, text if kept else "")
    return _long(sign, digits + decimals, len(decimals), (family, bits, power))


def _family(suffix: str) -> tuple[str, int | None, int]:
    """Family of suffixes, number of bits (None if decimal) and power of ten."""
    if suffix in _BINARY:
        return "BinarySI", _BINARY[suffix], 0
    if suffix in _DECIMAL:
        return "DecimalSI", None, _DECIMAL[suffix]
    match = _EXPONENT.fullmatch(suffix)
    if match is None:
        raise CelError("unable to parse quantity's suffix")
    return "DecimalExponent", None, int(match[1])


def _short(digits: str, decimals: str, bits: int | None, power: int) -> int | None:
    """The 64-bit value of upstream's first form, None where it takes the second."""
    count = len(digits) + len(decimals)
    if bits is None:
        fits = count <= _DIGITS and power - len(decimals) >= -9
    else:
        fits = not decimals and 14 - len(digits) - bits * 3 // 10 >= 0
    if not fits:
        return None
    value = int(digits + decimals) << (bits or 0)
    return value if value <= INT_MAX else None


def _kept(shifted: str, bits: int | None, scale: int, value: int) -> bool:
    """Whether upstream takes the text for canonical and prints it again."""
    if bits is not None:
        return bool((value >> bits) & 7)
    return scale % 3 == 0 and not shifted.endswith("000") and shifted[0] != "0"


def _long(sign: str, shifted: str, decimals: int, unit: tuple[str, int | None, int]) -> Quantity:
    """A quantity held as a decimal: rounded up to nano units, binary ones capped."""
    family, bits, power = unit
    number = int(shifted) << (bits or 0)
    exponent = power - decimals + 9
    if exponent > _LONGEST:
        raise CelError("the quantity is too large")
    nano = number * 10**exponent if exponent >= 0 else -(-number // 10 ** min(-exponent, _LONGEST + len(shifted)))
    if bits is not None:
        nano = min(nano, INT_MAX * _NANO)
        if 0 < nano < _NANO:
            family = "DecimalSI"
    return Quantity(-nano if sign == "-" else nano, family)


def _canonical(quantity: Quantity) -> str:
    """Upstream's shortest text without loss."""
    nano, family = quantity.nano, quantity.family
    if nano == 0:
        return "0"
    if family == "BinarySI" and (abs(nano) < 1024 * _NANO or nano % _NANO):
        family = "DecimalSI"
    if family == "BinarySI":
        number, bits = nano // _NANO, 0
        while number % 1024 == 0 and bits < 60:
            number, bits = number // 1024, bits + 10
        return f"{number}{_BITS.get(bits, '')}"
    number, power = nano, -9
    while number % 1000 == 0 and (power < 18 or family != "DecimalSI"):
        number, power = number // 1000, power + 3
    if family == "DecimalSI":
        return f"{number}{_SUFFIX[power]}"
    return f"{number}e{power}" if power else str(number)


def _sum(left: Quantity, right: Quantity, sign: int) -> Quantity:
    family = right.family if left.nano == 0 else left.family
    nano = left.nano + sign * right.nano
    if left.value is None or right.value is None:
        return Quantity(nano, family)
    if right.value == 0:
        value, scale = left.value, left.scale
    elif left.value == 0:
        value, scale = sign * right.value, right.scale
    else:
        scale = min(left.scale, right.scale)
        a, b = left.value * 10 ** (left.scale - scale), right.value * 10 ** (right.scale - scale)
        value = a + sign * b
        if not all(INT_MIN <= number <= INT_MAX for number in (a, b, value)):
            return Quantity(nano, family)
    return Quantity(nano, family, value, scale)


def whole(value: int) -> Quantity:
    """The quantity of that many units, in the family upstream gives to plain integers."""
    return Quantity(value * _NANO, "DecimalExponent", value, 0)


def _integer(quantity: Quantity) -> int | None:
    if quantity.value is None or quantity.scale < 0:
        return None
    value = quantity.value * 10**quantity.scale
    return value if INT_MIN <= value <= INT_MAX else None


def _as_integer(quantity: Quantity) -> int:
    value = _integer(quantity)
    if value is None:
        raise CelError("cannot convert value to integer")
    return value


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except CelError:
        return False
    return True


def _compare(left: Quantity, right: Quantity) -> int:
    return (left.nano > right.nano) - (left.nano < right.nano)


def _approximate(quantity: Quantity) -> float:
    try:
        return quantity.nano / _NANO
    except OverflowError:
        return float("inf") if quantity.nano > 0 else float("-inf")


def _sign(quantity: Quantity) -> int:
    return (quantity.nano > 0) - (quantity.nano < 0)


def _with_int(sign: int) -> Any:
    return lambda left, right: _sum(left, whole(right), sign)


_Q = "kubernetes.Quantity"
QUANTITY = (
    declare(f"quantity(string) -> {_Q}", parse_quantity, "the amount, such as 1.5Gi or 250m"),
    declare("isQuantity(string) -> bool", _is_quantity, "whether the text is a quantity"),
    declare(f"sign({_Q}) -> int", _sign, "-1, 0 or 1"),
    declare(f"{_Q}.isInteger() -> bool", lambda q: _integer(q) is not None, "whether asInteger() has a value"),
    declare(f"{_Q}.asInteger() -> int", _as_integer, "the amount as an integer; an error if it is none"),
    declare(f"{_Q}.asApproximateFloat() -> double", _approximate, "the nearest double"),
    declare(f"{_Q}.add({_Q}) -> {_Q}", lambda a, b: _sum(a, b, 1), "sum"),
    declare(f"{_Q}.add(int) -> {_Q}", _with_int(1), "sum"),
    declare(f"{_Q}.sub({_Q}) -> {_Q}", lambda a, b: _sum(a, b, -1), "difference"),
    declare(f"{_Q}.sub(int) -> {_Q}", _with_int(-1), "difference"),
    declare(f"{_Q}.isGreaterThan({_Q}) -> bool", lambda a, b: a.nano > b.nano, "whether it is more"),
    declare(f"{_Q}.isLessThan({_Q}) -> bool", lambda a, b: a.nano < b.nano, "whether it is less"),
    declare(f"{_Q}.compareTo({_Q}) -> int", _compare, "-1, 0 or 1"),
)
