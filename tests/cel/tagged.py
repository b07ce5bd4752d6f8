"""Values of CEL in the single-tag form of the test data (`{"int": "5"}`), both ways."""

import base64
import json
import math

from stowplan.cel.library.named_format import NamedFormat
from stowplan.cel.library.network import Address, Network
from stowplan.cel.library.quantity import Quantity
from stowplan.cel.library.semver import Semver
from stowplan.cel.library.url import Url
from stowplan.cel.values import Duration, Optional, Timestamp, TypeValue, UInt, as_key, from_key, kind_of

_NANO = 10**9
_TEXTS = {Quantity: "quantity", Address: "ip", Network: "cidr", Semver: "semver", Url: "url"}


def decode(tagged):
    """The value of a tagged form."""
    ((tag, body),) = tagged.items()
    if tag in ("timestamp", "duration"):
        return (Timestamp if tag == "timestamp" else Duration)(int(body[0]) * _NANO + int(body[1]))
    if tag == "list":
        return [decode(item) for item in body]
    if tag == "map":
        return {as_key(decode(key)): decode(value) for key, value in body}
    simple = {"int": int, "uint": UInt, "double": float, "bytes": base64.b64decode, "type": TypeValue}
    return simple.get(tag, lambda value: value)(body)


def encode(value):  # noqa: PLR0911 - a line a type
    """The tagged form of a value; maps are ordered by the text of their keys."""
    kind = kind_of(value)
    if kind == "null_type":
        return {"null": None}
    if kind in ("int", "uint"):
        return {kind: str(int(value))}
    if kind == "double":
        return {"double": _double(value)}
    if kind == "bytes":
        return {"bytes": base64.b64encode(value).decode()}
    if kind == "list":
        return {"list": [encode(item) for item in value]}
    if kind == "map":
        return {"map": sorted(([encode(from_key(k)), encode(v)] for k, v in value.items()), key=lambda e: json.dumps(e[0]))}
    if isinstance(value, Optional):
        return {"optional": encode(value.value) if value.present else None}
    return _special(value, kind)


def _special(value, kind):
    if isinstance(value, (Timestamp, Duration)):
        seconds, nano = divmod(value.ns, _NANO)
        if kind == "duration" and value.ns < 0 and nano:
            seconds, nano = seconds + 1, nano - _NANO
        return {kind: [str(seconds), nano]}
    if kind == "type":
        return {"type": value.name}
    if isinstance(value, NamedFormat):
        return {"format": value.name}
    return {_TEXTS.get(type(value), kind): str(value) if type(value) in _TEXTS else value}


def _double(value):
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(float(value))


def normal(tagged):
    """An expected form with doubles as text and maps in order, to be compared with `encode`."""
    if tagged is None:
        return None
    ((tag, body),) = tagged.items()
    if tag == "double":
        return {tag: _double(float(body))}
    if tag == "list":
        return {tag: [normal(item) for item in body]}
    if tag == "map":
        return {tag: sorted(([normal(k), normal(v)] for k, v in body), key=lambda e: json.dumps(e[0]))}
    if tag == "optional":
        return {tag: normal(body)}
    return tagged
