"""The values of the cluster notation: texts to parts of API objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from stowplan.objects import QuantityError
from stowplan.objects import parse as parse_quantity

Object = dict[str, Any]

TOPOLOGY = {
    "zone": "topology.kubernetes.io/zone",
    "region": "topology.kubernetes.io/region",
    "host": "kubernetes.io/hostname",
}
"""Short names of label keys, understood wherever a label key is written."""
RESOURCES = {"cpu": "cpu", "mem": "memory", "storage": "ephemeral-storage", "pods": "pods"}
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_EXPRESSION = re.compile(r"(!?)([^!=<>|]+)(?:(!=|=|<|>)(.*))?")


class WordError(ValueError):
    """What is wrong with one word."""


def label_key(text: str) -> str:
    return TOPOLOGY.get(text, text)


def quantity(text: str) -> str:
    try:
        parse_quantity(text)
    except QuantityError as error:
        raise WordError(str(error)) from None
    return text


def number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise WordError(f"{text or 'nothing'} is not a whole number") from None


def one_of(text: str, known: Iterable[str]) -> str:
    if text not in known:
        raise WordError(f"{text or 'nothing'} is none of {', '.join(known)}")
    return text


def pairs(text: str) -> dict[str, str]:
    """`a=b,c=d`"""
    found = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals:
            raise WordError(f"{part or 'nothing'} is not key=value")
        found[label_key(key)] = value
    return found


def selector(text: str) -> Object:
    return {"matchLabels": pairs(text)}


def details_of(text: str, known: Mapping[str, Callable[[str], Any]]) -> tuple[str, dict[str, Any]]:
    """`head:detail=value;detail=value` with the values read; a detail without a value is a flag."""
    head, _, rest = text.partition(":")
    found = {}
    for part in filter(None, rest.split(";")):
        key, _, value = part.partition("=")
        if key not in known:
            raise WordError(f"there is no detail {key} here; details are {', '.join(known)}")
        found[key] = known[key](value)
    return head, found


def amounts(text: str) -> tuple[str, dict[str, str]]:
    """`name:cpu=1;mem=1Gi`: a head and amounts by resource name."""
    head, _, rest = text.partition(":")
    found = {}
    for part in filter(None, rest.split(";")):
        key, _, value = part.partition("=")
        found[RESOURCES.get(key, key)] = quantity(value)
    return head, found


def expression(text: str) -> Object:
    """`key`, `!key`, `key=a|b`, `key!=a|b`, `key>3` or `key<3` as a requirement on labels."""
    match = _EXPRESSION.fullmatch(text)
    if match is None or (match[1] and match[3]):
        raise WordError(f"{text or 'nothing'} is none of key, !key, key=a|b, key!=a|b, key>3, key<3")
    key = label_key(match[2])
    if not match[3]:
        return {"key": key, "operator": "DoesNotExist" if match[1] else "Exists"}
    return {"key": key, "operator": _OPERATORS[match[3]], "values": match[4].split("|")}


_OPERATORS = {"=": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}


def inside(item: Object, *path: str) -> Object:
    for member in path:
        item = item.setdefault(member, {})
    return item


def labels(item: Object) -> Object:
    return inside(item, "metadata", "labels")
