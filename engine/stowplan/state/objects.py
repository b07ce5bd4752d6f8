"""Columns over what only the raw object of a node holds: any field, on demand.

A value is the JSON text of the field; where the node lacks it, how many names of its path lead to something. A node event
that changes nothing but such a field counts as a change only if its column is in use: heartbeats do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from stowplan.objects import Node
from stowplan.state.columns import Coded, CodedStorage, Column, Reach

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(order="sorted").encode


class RawStorage(CodedStorage[bytes | int]):
    """A dictionary-encoded part of the raw objects."""

    def differs(self, row: int, node: Node) -> bool:
        return self.values[int(self.codes[row])] != self._derive(node)


@lru_cache(maxsize=8)
def whole(raw: bytes) -> Any:
    """A raw object as Python values, to be read only; the last few are kept, as several columns ask for one node."""
    return _decode(raw) if raw else {}


def part(raw: bytes, path: tuple[str, ...]) -> bytes | int:
    """The JSON text of one field of a raw object; if it is absent or null, how many names of the path are there."""
    found = whole(raw)
    for depth, name in enumerate(path):
        found = found.get(name) if isinstance(found, Mapping) else None
        if found is None:
            return depth
    return _encode(found)


def is_ready(raw: bytes) -> bool:
    """Whether the node's Ready condition is True."""
    conditions = (whole(raw).get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)


def _column(key: tuple[str, ...], derive: Callable[[Node], bytes | int]) -> Column[Coded[bytes | int]]:
    return Column("raw object", Reach.NODE, lambda store: RawStorage(store, derive), key)


@lru_cache(maxsize=1024)
def raw_field(path: tuple[str, ...]) -> Column[Coded[bytes | int]]:
    """A field of the raw object, such as `("status", "conditions")`."""
    return _column(path, lambda node: part(node.raw, path))


READY = _column(("ready",), lambda node: int(is_ready(node.raw)))
"""1 where the Ready condition is True, else 0."""
