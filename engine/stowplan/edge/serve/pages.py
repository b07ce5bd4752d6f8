"""Pages as values: what is asked and what is answered, without the server that carries them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
BAD = 400
LARGEST = 1_000_000
"""The largest `limit`: more than there is of anything."""
_SHOWN = 80
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
"""Of an object (`IsDNS1123Subdomain`); a label is one too."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for a page. `parts`: what stands for the names in the page's path; `query`: all values of each
    parameter; `local`: asked from this host itself.
    """

    parts: Mapping[str, str]
    query: Mapping[str, tuple[str, ...]]
    accept: str
    local: bool


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a request."""

    body: bytes
    content_type: str = TEXT
    status: int = 200


@dataclass(frozen=True, slots=True)
class Page:
    """What is shown under a path (`/decisions/{namespace}/{pod}`). A `private` page names things of the cluster.

    Private pages are shown to this host alone, which is where `kubectl port-forward` asks from. `takes`: the names of its
    parameters where others are refused; None where they are ignored.
    """

    path: str
    answer: Callable[[Asked], Reply]
    private: bool = True
    takes: tuple[str, ...] | None = None


def as_json(value: Any, status: int = 200) -> Reply:
    """A value of JSON types or dataclasses as a page, indented: people read these pages."""
    return Reply(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n", JSON, status)


def refused(why: str) -> Reply:
    """The answer to a request that makes no sense."""
    return Reply(f"{why}\n".encode(), status=BAD)


def quoted(text: str) -> str:
    """What somebody has written, in ASCII, on one line, and not too long."""
    return json.dumps(text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ...")


def limit_of(asked: Asked, default: int) -> int | Reply:
    """The number that `limit` asks for, or what is wrong with it."""
    values = asked.query.get("limit", ())
    if not values:
        return default
    (value, *more), digits = values, len(str(LARGEST))
    if more:
        return refused("limit is given more than once")
    found = int(value) if value.isascii() and value.isdigit() and len(value) <= digits else LARGEST + 1
    return found if found <= LARGEST else refused(f"limit is {quoted(value)} and must be a whole number from 0 to {LARGEST}")


def names_of(asked: Asked, parameter: str, *, keys: bool = False) -> tuple[str, ...] | Reply:
    """Names of objects, with `keys` also NAMESPACE/NAME, that a parameter asks for; or what is wrong with them."""
    values = asked.query.get(parameter, ())
    for value in values:
        parts = value.split("/")
        if len(parts) > 1 + keys or not all(_NAME.fullmatch(part) for part in parts):
            what = "NAME or NAMESPACE/NAME" if keys else "the name of an object"
            return refused(f"{parameter} is {quoted(value)} and must be {what}")
    return values
