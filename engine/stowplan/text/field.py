"""Fields of typed values: how a dataclass notes what its annotation cannot say, paths, and what may be wrong with a value.

Rendering follows apimachinery's `field.Error`: `<path>: <Kind>: <value>: <detail>`.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from stowplan.text.diagnostic import Code
from stowplan.text.near import closest

Path: TypeAlias = tuple[str | int, ...]
"""The way to a value: field names and list positions."""

Int32: TypeAlias = Annotated[int, 32]
"""An integer of 32 bits; a plain `int` has 64."""

ZERO_MEANS_DEFAULT: Mapping[str, Any] = {"zero means default": True}
"""Metadata of a field that has its default when absent and also when written as 0, "" or an empty list."""


def within(name: str) -> Mapping[str, Any]:
    """Metadata of an optional field that is written as an object with the single field `name`."""
    return {"within": name}


def written_as(name: str) -> Mapping[str, Any]:
    """Metadata of a field whose written name is not the camel case of its Python name."""
    return {"written as": name}


def show_path(path: Path) -> str:
    """The path as Kubernetes prints it: `profiles[0].plugins.score`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def parse_path(text: str) -> Path:
    """The inverse of `show_path`, for paths whose names hold no dots."""
    parts = re.findall(r"\.?(\w+)|\[(\d+)\]", text)
    return tuple(int(index) if index else name for name, index in parts)


class Kind(enum.Enum):
    """What is wrong with a value; the texts are apimachinery's `field.ErrorType`."""

    INVALID = "Invalid value"
    REQUIRED = "Required value"
    DUPLICATE = "Duplicate value"
    UNSUPPORTED = "Unsupported value"
    FORBIDDEN = "Forbidden"

    @property
    def code(self) -> Code:
        """The diagnostic code of this kind of problem."""
        return Code[self.name]


@dataclass(frozen=True, slots=True)
class Problem:
    """A value that has the right type but must not be: a validation error, before anyone knows where it was written."""

    path: Path
    kind: Kind
    detail: str = ""
    value: Any = None
    notes: tuple[str, ...] = ()
    """remedies, for people; upstream has none"""
    meant: str = ""
    """the text to write there instead, if hardly anything else can have been meant"""

    @property
    def message(self) -> str:
        """The error without its path: `Invalid value: 0: must be greater than 0`."""
        parts = [self.kind.value]
        if self.kind not in (Kind.REQUIRED, Kind.FORBIDDEN):
            parts.append(json.dumps(self.value, ensure_ascii=False, separators=(",", ":")))
        if self.detail:
            parts.append(self.detail)
        return ": ".join(parts)

    def __str__(self) -> str:
        return f"{show_path(self.path)}: {self.message}"

    def under(self, *parent: str | int) -> Problem:
        """The same problem seen from an enclosing value."""
        return Problem((*parent, *self.path), self.kind, self.detail, self.value, self.notes, self.meant)


def unsupported(path: Path, value: str, supported: Iterable[str]) -> Problem:
    """A value that is none of those there are, with the one that was meant if one is close."""
    choices = tuple(supported)
    listed = ", ".join(f'"{choice}"' for choice in choices)
    meant = closest(value, choices) if value else None
    notes = (f'did you mean "{meant}"?',) if meant else ()
    return Problem(path, Kind.UNSUPPORTED, f"supported values: {listed}", value, notes, meant or "")
