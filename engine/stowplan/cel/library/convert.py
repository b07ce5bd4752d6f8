"""Conversions between types, `size`, `type`, `dyn`, and access to lists and maps."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

from stowplan.cel.errors import CelError, no_key
from stowplan.cel.library import arrays
from stowplan.cel.overloads import declare
from stowplan.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    UInt,
    check_int,
    equal,
    find_key,
    from_key,
    kind_of,
    lookup_key,
    type_value,
)

_DECIMAL = re.compile(r"[+-]?[0-9]+", re.ASCII)
_FLOAT = re.compile(r"[+-]?(?:inf|infinity|nan|[0-9_]*\.?[0-9_]*(?:e[+-]?[0-9_]+)?)", re.ASCII | re.IGNORECASE)
_HEX = re.compile(r"[+-]?0x[0-9a-f_]*\.?[0-9a-f_]*p[+-]?[0-9]+", re.ASCII | re.IGNORECASE)
_LARGE = 6  # powers of ten from which Go writes an exponent
_TRUE, _FALSE = frozenset(("1", "t", "T", "true", "TRUE", "True")), frozenset(("0", "f", "F", "false", "FALSE", "False"))


def _impossible(value: Any, to: str) -> CelError:
    return CelError(f"type conversion error from '{kind_of(value)}' to '{to}'")


def _string_to_int(text: str) -> int:
    if not _DECIMAL.fullmatch(text) or len(text) > 400:
        raise _impossible(text, "int")
    value = int(text)
    if not INT_MIN <= value <= INT_MAX:
        raise _impossible(text, "int")
    return value


def _string_to_uint(text: str) -> UInt:
    if not text.isascii() or not text.isdigit() or len(text) > 400 or int(text) > UINT_MAX:
        raise _impossible(text, "uint")
    return UInt(text)


def _double_to_int(value: float) -> int:
    if not -(2.0**63) < value < 2.0**63:  # both ends are refused, as cel-go does; NaN too
        raise CelError("integer overflow")
    return int(value)


def _double_to_uint(value: float) -> UInt:
    if math.isnan(value) or value < 0 or value >= 2.0**64:
        raise CelError("unsigned integer overflow")
    return UInt(int(value))


def _int_to_uint(value: int) -> UInt:
    if value < 0:
        raise CelError("unsigned integer overflow")
    return UInt(value)


def _string_to_double(text: str) -> float:
    try:
        if _HEX.fullmatch(text):
            value = float.fromhex(text.replace("_", ""))
        elif _FLOAT.fullmatch(text) and text:
            value = float(text)
            if math.isinf(value) and "i" not in text.lower():
                raise _impossible(text, "double")
        else:
            raise _impossible(text, "double")
    except (ValueError, OverflowError):
        raise _impossible(text, "double") from None
    return value


def _string_to_bool(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _impossible(text, "bool")


def show_double(value: float) -> str:  # noqa: PLR0911 - the forms of a number
    """The shortest text of a double as Go's `strconv.FormatFloat(v, 'g', -1, 64)` writes it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    point = len(digits) + int(exponent)  # where the decimal point stands, counted from the first digit
    lead = "-" if sign else ""
    if text == "0":
        return f"{lead}0"
    stripped = "".join(map(str, digits)).lstrip("0")
    point -= len(digits) - len(stripped)
    text = stripped.rstrip("0")
    power = point - 1
    if power < -4 or power >= _LARGE:
        rest = f".{text[1:]}" if len(text) > 1 else ""
        return f"{lead}{text[0]}{rest}e{'-' if power < 0 else '+'}{abs(power):02d}"
    if point <= 0:
        return f"{lead}0.{'0' * -point}{text}"
    if point >= len(text):
        return f"{lead}{text}{'0' * (point - len(text))}"
    return f"{lead}{text[:point]}.{text[point:]}"


def bytes_to_string(value: bytes) -> str:
    """The UTF-8 text of the bytes."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None


def _same(value: Any) -> Any:
    return value


def _show_bool(value: bool) -> str:
    return "true" if value else "false"


CONVERSIONS = (
    declare("int(int) -> int", _same, "the same"),
    declare("int(uint) -> int", lambda v: check_int(int(v)), "the same number; overflow is an error"),
    declare("int(double) -> int", _double_to_int, "rounded toward zero; overflow is an error", array=arrays.double_to_int),
    declare("int(string) -> int", _string_to_int, "the decimal number"),
    declare("int(timestamp) -> int", lambda v: v.ns // 10**9, "seconds since 1970"),
    declare("int(duration) -> int", lambda v: v.ns, "nanoseconds"),
    declare("uint(uint) -> uint", _same, "the same"),
    declare("uint(int) -> uint", _int_to_uint, "the same number; below zero is an error"),
    declare("uint(double) -> uint", _double_to_uint, "rounded toward zero; overflow is an error"),
    declare("uint(string) -> uint", _string_to_uint, "the decimal number"),
    declare("double(double) -> double", _same, "the same"),
    declare("double(int) -> double", float, "the nearest double", array=arrays.to_double),
    declare("double(uint) -> double", float, "the nearest double"),
    declare("double(string) -> double", _string_to_double, "the number"),
    declare("string(string) -> string", _same, "the same"),
    declare("string(int) -> string", str, "decimal"),
    declare("string(uint) -> string", lambda v: str(int(v)), "decimal"),
    declare("string(double) -> string", show_double, "the shortest text"),
    declare("string(bool) -> string", _show_bool, "true or false"),
    declare("string(bytes) -> string", bytes_to_string, "read as UTF-8"),
    declare("bytes(bytes) -> bytes", _same, "the same"),
    declare("bytes(string) -> bytes", lambda v: v.encode("utf-8", "surrogatepass"), "UTF-8"),
    declare("bool(bool) -> bool", _same, "the same"),
    declare("bool(string) -> bool", _string_to_bool, "1, t, true, True, TRUE or 0, f, false, False, FALSE"),
    declare("dyn(A) -> dyn", _same, "the same value, its type unknown to the checker"),
    declare("type(A) -> type(A)", type_value, "the type of the value"),
)
SIZES = tuple(
    declare(form, len, what)
    for kind, what in (
        ("bytes", "number of bytes"),
        ("list(A)", "number of elements"),
        ("map(A, B)", "number of entries"),
        ("string", "number of code points"),
    )
    for form in (f"size({kind}) -> int", f"{kind}.size() -> int")
)


def _in_list(value: Any, items: Any) -> bool:
    return any(equal(item, value) for item in items)


def _in_map(key: Any, mapping: Any) -> bool:
    return find_key(mapping, key) is not None


def as_index(index: Any) -> int:
    """The position a number stands for; doubles count when they are whole."""
    if type(index) is float:
        if not index.is_integer():
            raise CelError(f"unsupported index value {show_double(index)} in list")
        return int(index)
    if type(index) is int or type(index) is UInt:
        return int(index)
    raise CelError(f"unsupported index type '{kind_of(index)}' in list")


def element(items: Any, index: Any) -> Any:
    """`items[index]`."""
    position = as_index(index)
    if not 0 <= position < len(items):
        raise CelError(f"index out of bounds: {position}")
    return items[position]


def value_at(mapping: Any, key: Any) -> Any:
    """`mapping[key]`."""
    found = lookup_key(mapping, key)
    if found is None:
        raise no_key(key if type(key) is not bool else str(key).lower())
    return mapping[found]


def keys(mapping: Any) -> list[Any]:
    """The keys of a map as values."""
    return [from_key(key) for key in mapping]


ACCESS = (
    declare("@in(A, list(A)) -> bool", _in_list, "whether the list holds the value", grows=1),
    declare("@in(A, map(A, B)) -> bool", _in_map, "whether the map has the key"),
    declare("_[_](list(A), int) -> A", element, "the element; out of range is an error"),
    declare("_[_](map(A, B), A) -> B", value_at, "the value of the key; a missing key is an error"),
)
STANDARD = (*CONVERSIONS, *SIZES, *ACCESS)
