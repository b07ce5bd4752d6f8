"""The message literals Kubernetes' environment knows: protobuf's well-known types, which are plain values in CEL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stowplan.cel import kinds
from stowplan.cel.errors import CelError
from stowplan.cel.kinds import DYN, INT, STRING, Type, list_of, map_of
from stowplan.cel.library.moments import SECOND, duration_of, timestamp_at
from stowplan.cel.values import UInt

_WRAPPERS: dict[str, tuple[Type, Any]] = {
    "Int64Value": (INT, 0),
    "Int32Value": (INT, 0),
    "UInt64Value": (kinds.UINT, UInt(0)),
    "UInt32Value": (kinds.UINT, UInt(0)),
    "DoubleValue": (kinds.DOUBLE, 0.0),
    "FloatValue": (kinds.DOUBLE, 0.0),
    "BoolValue": (kinds.BOOL, False),
    "StringValue": (STRING, ""),
    "BytesValue": (kinds.BYTES, b""),
}
_P = "google.protobuf."
_TIME = {"seconds": INT, "nanos": INT}
MESSAGES: dict[str, tuple[Type, Mapping[str, Type]]] = {
    f"{_P}Timestamp": (kinds.TIMESTAMP, _TIME),
    f"{_P}Duration": (kinds.DURATION, _TIME),
    f"{_P}Struct": (map_of(STRING, DYN), {"fields": map_of(STRING, DYN)}),
    f"{_P}ListValue": (list_of(DYN), {"values": list_of(DYN)}),
    f"{_P}Value": (DYN, {"number_value": kinds.DOUBLE, "string_value": STRING, "bool_value": kinds.BOOL}),
    **{_P + name: (kind, {"value": kind}) for name, (kind, _) in _WRAPPERS.items()},
}


def build(name: str, fields: Mapping[str, Any]) -> Any:
    """The value of a message literal with these fields."""
    short = name.removeprefix(_P)
    if short in _WRAPPERS:
        value = fields.get("value", _WRAPPERS[short][1])
        if short.endswith("32Value") and not -(2**31) <= value < 2 ** (32 if short[0] == "U" else 31):
            raise CelError("range error")
        return value
    if short == "Struct":
        return fields.get("fields", {})
    if short == "ListValue":
        return fields.get("values", [])
    if short == "Value":
        return next(iter(fields.values()), None)
    ns = fields.get("seconds", 0) * SECOND + fields.get("nanos", 0)
    return timestamp_at(ns) if short == "Timestamp" else duration_of(ns)
