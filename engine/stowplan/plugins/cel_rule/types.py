"""Types of the variables of a rule: Kubernetes' objects, and short views of the facts that built-in plugins use.

`read` turns the JSON of an object into values of its declared type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from stowplan.cel.kinds import BOOL, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, Struct, Type, list_of, map_of
from stowplan.cel.library.moments import parse_timestamp
from stowplan.plugins.cel_rule.api import OBJECTS

_SIMPLE = {
    "string": STRING,
    "quantity": STRING,
    "bytes": STRING,
    "int": INT,
    "bool": BOOL,
    "double": DOUBLE,
    "time": TIMESTAMP,
    "any": DYN,
}
_FIELD = re.compile(r"(\w+)=(\S+)")

TEXTS = map_of(STRING, STRING)
AMOUNTS = map_of(STRING, DOUBLE)
OWNER = Struct("Owner", fields={"kind": STRING, "name": STRING, "apiVersion": STRING, "uid": STRING})
IMAGE = Struct("Image", fields={"name": STRING, "size": DOUBLE})
SEATED = Struct(
    "SeatedPod",
    fields={
        "name": STRING,
        "namespace": STRING,
        "labels": TEXTS,
        "priority": INT,
        "requests": AMOUNTS,
        "owner": OWNER,
        "age": DURATION,
    },
)
"""a pod that sits on a node"""
DOMAIN = Struct("Domain", fields={"value": STRING, "nodes": INT, "allocatable": AMOUNTS, "requested": AMOUNTS, "free": AMOUNTS})


@cache
def _objects() -> dict[str, Struct]:
    """All structs by name, each of them knowing the others."""
    fields: dict[str, dict[str, Type]] = {}
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n(?=\w)", OBJECTS.strip())]
    for paragraph in paragraphs:
        fields[paragraph.partition(":")[0]] = {}
    structs = {name: Struct(name, fields=own) for name, own in fields.items()}
    for paragraph in paragraphs:
        name, _, body = paragraph.partition(":")
        fields[name].update({field: _type(kind, structs) for field, kind in _FIELD.findall(body)})
    return structs


def _type(written: str, structs: Mapping[str, Struct]) -> Type:
    if written[0] == "[":
        return list_of(_type(written[1:-1], structs))
    if written[0] == "{":
        return map_of(STRING, _type(written[1:-1], structs))
    return _SIMPLE.get(written) or structs[written]


@cache
def pod_type() -> Struct:
    """The pending pod: v1 Pod and its short views."""
    short = {
        "name": STRING,
        "namespace": STRING,
        "labels": TEXTS,
        "annotations": TEXTS,
        "requests": AMOUNTS,
        "priority": INT,
        "owner": OWNER,
        "age": DURATION,
    }
    return Struct("Pod", fields={**_objects()["Pod"].fields, **short})


@cache
def node_type() -> Struct:
    """A node: v1 Node and its short views."""
    short = {
        "name": STRING,
        "labels": TEXTS,
        "annotations": TEXTS,
        "allocatable": AMOUNTS,
        "requested": AMOUNTS,
        "free": AMOUNTS,
        "pods": list_of(SEATED),
        "taints": list_of(_objects()["Taint"]),
        "unschedulable": BOOL,
        "images": list_of(IMAGE),
        "age": DURATION,
        "ready": BOOL,
    }
    return Struct("Node", fields={**_objects()["Node"].fields, **short})


@cache
def namespace_type() -> Struct:
    """The namespace of the pod: v1 Namespace and its short views."""
    short = {"name": STRING, "labels": TEXTS, "annotations": TEXTS}
    return Struct("Namespace", fields={**_objects()["Namespace"].fields, **short})


def object_type(kind: str) -> Struct:
    """The plain v1 object of a kind."""
    return _objects()[kind]


def read(value: Any, kind: Type) -> Any:
    """JSON as values of the type; null members count as absent, fields that the type does not know are left out."""
    if isinstance(value, Mapping):
        if isinstance(kind, Struct):
            kinds = kind.fields
            return {name: read(item, kinds[name]) for name, item in value.items() if item is not None and name in kinds}
        inner = kind.params[1] if kind.name == "map" else DYN
        return {name: read(item, inner) for name, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [read(item, kind.params[0] if kind.name == "list" else DYN) for item in value]
    if kind is TIMESTAMP and isinstance(value, str):
        return parse_timestamp(value)
    if kind is STRING and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)  # a quantity written as a number
    return float(value) if kind is DOUBLE and isinstance(value, int) else value


def type_of_params(value: Any) -> Type:
    """The type of a parameter as it was written; lists and maps of one kind of thing are typed, others hold anything."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return INT
    if isinstance(value, float):
        return DOUBLE
    if isinstance(value, str):
        return STRING
    if isinstance(value, Mapping):
        return map_of(STRING, _common(value.values()))
    return list_of(_common(value)) if isinstance(value, list | tuple) else DYN


def _common(values: Any) -> Type:
    kinds = {type_of_params(value) for value in values}
    return kinds.pop() if len(kinds) == 1 else DYN
