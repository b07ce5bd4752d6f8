"""The types of CEL: what the checker deduces, what overloads are declared with, and how types are written.

A type is a name and parameters. A struct is a type with declared fields (an API object); a name in angle brackets is a
type parameter. Texts are cel-go's: `map(string, list(int))`, `optional_type(dyn)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Type:
    """A type; equal when name and parameters are equal."""

    name: str
    params: tuple[Type, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.params))})" if self.params else self.name

    @property
    def is_param(self) -> bool:
        """Whether this is a type parameter or a variable of the checker."""
        return self.name[0] == "<"


@dataclass(frozen=True, slots=True)
class Struct(Type):
    """A type with named fields, all of them optional in a value."""

    fields: Mapping[str, Type] = field(default_factory=dict, compare=False, repr=False)


NULL = Type("null_type")
BOOL = Type("bool")
INT = Type("int")
UINT = Type("uint")
DOUBLE = Type("double")
STRING = Type("string")
BYTES = Type("bytes")
TIMESTAMP = Type("timestamp")
DURATION = Type("duration")
DYN = Type("dyn")
ERROR = Type("!error!")
QUANTITY = Type("kubernetes.Quantity")
URL = Type("kubernetes.URL")
SEMVER = Type("kubernetes.Semver")
FORMAT = Type("kubernetes.NamedFormat")
IP = Type("net.IP")
CIDR = Type("net.CIDR")

PRIMITIVE = {t.name: t for t in (NULL, BOOL, INT, UINT, DOUBLE, STRING, BYTES, TIMESTAMP, DURATION, DYN)}
PRIMITIVE |= {"google.protobuf.Timestamp": TIMESTAMP, "google.protobuf.Duration": DURATION, "null": NULL}
OPAQUE = {t.name: t for t in (QUANTITY, URL, SEMVER, FORMAT, IP, CIDR)}


def list_of(element: Type) -> Type:
    """The type of lists of `element`."""
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """The type of maps from `key` to `value`."""
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    """The type of an optional `value`."""
    return Type("optional_type", (value,))


def type_of(value: Type) -> Type:
    """The type of the type value `value`."""
    return Type("type", (value,))


def is_dyn(kind: Type) -> bool:
    """Whether nothing is known about values of this type."""
    return kind is DYN or kind is ERROR or kind.name in ("dyn", "!error!", "any")


@lru_cache(maxsize=4096)
def parse_type(text: str) -> Type:
    """The type written as cel-go prints it; a single capital letter or `<A>` is a type parameter."""
    text = text.strip()
    head, paren, rest = text.partition("(")
    if paren:
        return Type(head, tuple(parse_type(part) for part in split_types(rest[:-1])))
    if len(text) == 1 and text.isupper():
        return Type(f"<{text}>")
    if text in ("list", "optional_type"):
        return Type(text, (DYN,))
    if text == "map":
        return map_of(DYN, DYN)
    return PRIMITIVE.get(text) or Type(text)


def split_types(text: str) -> list[str]:
    """The parts between the commas that are not inside parentheses."""
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [part for part in [*parts, text[start:]] if part.strip()]
