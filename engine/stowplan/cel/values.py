"""Values of CEL as Python values, and the two relations every type has: equality and order.

null None, bool bool, int int, uint `UInt`, double float, string str, bytes bytes, list list or tuple, map dict (keys as
`as_key` makes them) or any Mapping with string keys, timestamp and duration nanoseconds in their own classes, types
`TypeValue`, optional values `Optional`. Kubernetes' types are classes with a `cel_type`. Nothing else is a value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import eq
from typing import Any, ClassVar

from stowplan.cel import kinds, limits
from stowplan.cel.errors import CelError, no_overload
from stowplan.cel.kinds import Type

INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1


class UInt(int):
    """An unsigned integer; never equal to an int in Python's sense, so that maps keep both as keys."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is UInt and int.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(("u", int(self)))


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """Nanoseconds since 1970-01-01T00:00:00Z."""

    cel_type: ClassVar[Type] = kinds.TIMESTAMP
    ns: int


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """Nanoseconds."""

    cel_type: ClassVar[Type] = kinds.DURATION
    ns: int


@dataclass(frozen=True, slots=True)
class TypeValue:
    """The result of `type(x)`: the name of a type without parameters."""

    cel_type: ClassVar[Type] = kinds.type_of(kinds.DYN)
    name: str


@dataclass(frozen=True, slots=True)
class Optional:
    """A value or none (`present` false)."""

    cel_type: ClassVar[Type] = kinds.optional_of(kinds.DYN)
    present: bool
    value: Any = None


NONE = Optional(present=False)


@dataclass(frozen=True, slots=True)
class _Key:
    """A map key that Python would take for another one: true for 1, 1.0 for 1."""

    kind: str
    value: Any


class Defaulting(dict[Any, Any]):
    """A map in which every string key has a value, an empty map where none was put; `in` still tells them apart."""

    __slots__ = ()

    def __missing__(self, key: Any) -> Any:
        return {}


_PLAIN: dict[type, str] = {
    type(None): "null_type", bool: "bool", int: "int", UInt: "uint", float: "double", str: "string", bytes: "bytes",
    list: "list", tuple: "list", dict: "map", Defaulting: "map",
}  # fmt: skip


def kind_of(value: Any) -> str:
    """The name of the value's type, without parameters."""
    cls = type(value)
    known = _PLAIN.get(cls)
    if known is None:
        declared = getattr(cls, "cel_type", None)
        if isinstance(declared, Type):
            known = declared.name
        elif issubclass(cls, Mapping):
            known = "map"
        else:
            raise CelError(f"unsupported value of {cls.__name__}")
        _PLAIN[cls] = known
    return known


def type_value(value: Any) -> TypeValue:
    """What `type()` gives."""
    kind = kind_of(value)
    return TypeValue({"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}.get(kind, kind))


def as_key(value: Any) -> Any:
    """The form in which a value stands as a key in a dict."""
    cls = type(value)
    if cls is str or cls is int or cls is UInt:
        return value
    if cls is bool or cls is float or value is None:
        return _Key(kind_of(value), value)
    raise CelError(f"unsupported key type: {kind_of(value)}")


def from_key(key: Any) -> Any:
    """The value that stands as this key in a dict."""
    return key.value if type(key) is _Key else key


def find_key(mapping: Mapping[Any, Any], value: Any) -> Any:
    """The form under which the mapping holds the key, numbers found by value; None if it does not."""
    cls = type(value)
    if cls is str:
        return value if value in mapping else None
    if cls is bool or value is None:
        key = _Key(kind_of(value), value)
        return key if key in mapping else None
    if cls is not int and cls is not UInt and cls is not float:
        return None
    return next((key for key in _same_number(value) if key in mapping), None)


def lookup_key(mapping: Mapping[Any, Any], value: Any) -> Any:
    """As find_key, for access: a defaulting map has every string key."""
    if type(mapping) is Defaulting and type(value) is str:
        return value
    return find_key(mapping, value)


def _same_number(value: Any) -> Iterator[Any]:
    """The forms of a number as a key, its own first."""
    yield as_key(value)
    if type(value) is float and not value.is_integer():
        return
    whole = int(value)
    if INT_MIN <= whole <= INT_MAX:
        yield whole
    if 0 <= whole <= UINT_MAX:
        yield UInt(whole)
    if abs(whole) <= UINT_MAX:
        yield _Key("double", float(whole))


_NUMBERS = frozenset((int, UInt, float))
_CONTAINERS = frozenset(("list", "map", "optional_type"))


def equal(left: Any, right: Any) -> bool:
    """`==`: numbers by value across types, other types never equal to each other.

    Kubernetes' types refuse to be compared with another type. An int beside a double is rounded to a double, as
    cel-go does.
    """
    a, b = type(left), type(right)
    if a is b and a is not list and a is not dict and a is not float and a is not tuple and a is not Optional:
        return bool(left == right)
    if a in _NUMBERS and b in _NUMBERS:
        if a is float or b is float:
            return float(left) == float(right)
        return int(left) == int(right)
    kind, other = kind_of(left), kind_of(right)
    if kind != other:
        if kind in kinds.OPAQUE:
            raise no_overload("_==_", kind, other)
        return False
    if kind in _CONTAINERS:
        check_parts(left)
        return _same_parts(left, right, kind)
    return bool(left == right)


_LEAVES = frozenset((str, int, float, bool, bytes, type(None), UInt, Timestamp, Duration))
_VIEW = 10  # parts that a member counts for which is computed when it is looked at


def check_parts(value: Any, most: int = limits.PARTS) -> int:
    """How many parts a nested value has; refuses one with too many or too deep ones, before anything walks it."""
    count, depth, level = 0, 0, [value]
    while level:
        depth += 1
        below: list[Any] = []
        for item in level:
            cls = type(item)
            if cls is list or cls is tuple:
                count += len(item)
            elif cls is dict:
                count += len(item)
                item = item.values()  # noqa: PLW2901 - what is below it
            elif cls is Optional:
                item = (item.value,)  # noqa: PLW2901
            elif isinstance(item, Mapping):
                count += len(item) * _VIEW
                item = item.values()  # noqa: PLW2901
            else:
                continue
            if count > most or depth > limits.LEVELS:
                what = f"more than {most} parts" if count > most else f"more than {limits.LEVELS} levels"
                raise CelError(f"a value of {what}", absorbable=False)
            if not _LEAVES.issuperset(map(type, item)):
                below += [part for part in item if type(part) not in _LEAVES]
        level = below
    return count


def _same(left: Any, right: Any) -> bool:
    """Equality of parts: as `equal`, the size being known."""
    kind = kind_of(left)
    if kind in _CONTAINERS and kind == kind_of(right):
        return _same_parts(left, right, kind)
    return equal(left, right)


_EXACT = frozenset((str, int, bool, bytes, Timestamp, Duration))
"""types whose values are the same exactly where Python says so"""


def _same_elements(left: Any, right: Any) -> bool:
    kinds = {*map(type, left), *map(type, right)}
    if len(kinds) == 1 and not _EXACT.isdisjoint(kinds):
        return all(map(eq, left, right))
    return all(map(_same, left, right))


def _same_parts(left: Any, right: Any, kind: str) -> bool:
    if kind == "list":
        return len(left) == len(right) and _same_elements(left, right)
    if kind == "optional_type":
        return left.present == right.present and (not left.present or _same(left.value, right.value))
    if len(left) != len(right):
        return False
    for key, value in left.items():
        found = find_key(right, from_key(key))
        if found is None or not _same(value, right[found]):
            return False
    return True


_ORDERED = frozenset(("bool", "string", "bytes", "timestamp", "duration"))


def compare(left: Any, right: Any) -> int:
    """-1, 0 or 1; numbers across types; CelError for what has no order and for NaN."""
    a, b = type(left), type(right)
    if a in _NUMBERS and b in _NUMBERS:
        if a is float or b is float:
            left, right = float(left), float(right)
            if math.isnan(left) or math.isnan(right):
                raise CelError("NaN values cannot be ordered")
        else:
            left, right = int(left), int(right)
        return int(left > right) - int(left < right)
    kind = kind_of(left)
    if kind not in _ORDERED or kind != kind_of(right):
        raise no_overload("_<_", kind, kind_of(right))
    return int(left > right) - int(left < right)


def check_int(value: int) -> int:
    """The value, or integer overflow."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise CelError("integer overflow")


def check_uint(value: int) -> UInt:
    """The value as uint, or unsigned integer overflow."""
    if 0 <= value <= UINT_MAX:
        return UInt(value)
    raise CelError("unsigned integer overflow")
