"""Pages as values: what is asked and what is answered, without the server that carries them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"


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

    Private pages are shown to this host alone, which is where `kubectl port-forward` asks from.
    """

    path: str
    answer: Callable[[Asked], Reply]
    private: bool = True


def as_json(value: Any, status: int = 200) -> Reply:
    """A value of JSON types or dataclasses as a page, indented: people read these pages."""
    return Reply(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n", JSON, status)
