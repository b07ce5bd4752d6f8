"""Where an object stands in a dump that is too large to keep: an excerpt whose lines are those of the whole input.

Nothing here runs unless something is wrong, so it may be slow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from stowplan.text import Code, Diagnostic, Severity, Source, Span

_AROUND = 240


@dataclass(frozen=True)
class Excerpt(Source):
    """A part of an input; `lines` lie before it, and `columns` characters before it on its first line."""

    lines: int = 0
    columns: int = 0

    def locate(self, offset: int) -> tuple[int, int]:
        """Line and column in the whole input, from 1."""
        line, column = super().locate(offset)
        return line + self.lines, column + (self.columns if line == 1 else 0)

    def line(self, number: int) -> str:
        """Line `number` of the whole input, as far as the excerpt has it; what stands before it is blank."""
        own = number - self.lines
        return (" " * self.columns if own == 1 else "") + super().line(own)


class Text(NamedTuple):
    """Bytes of an input called `name`; from offset `head` on they stand `shift` lines further down than it seems."""

    name: str
    data: bytes
    head: int = 0
    shift: int = 0
    columns: int = 0
    """characters before the first byte on its line"""

    def lines(self, offset: int) -> int:
        """How many lines of the input end before a byte."""
        return self.data.count(b"\n", 0, offset) + (self.shift if offset >= self.head else 0)

    def excerpt(self, start: int, end: int) -> Excerpt:
        """The bytes from `start` to `end` as text."""
        line = self.data.rfind(b"\n", 0, start) + 1
        columns = len(_decode(self.data[line:start])) + (0 if line else self.columns)
        return Excerpt(self.name, _decode(self.data[start:end]), self.lines(start), columns)

    def point(self, offset: int) -> Span:
        """The character at a byte offset; at the end of the text, the last one that is not blank."""
        if not self.data[offset : offset + 1].strip():
            offset = max(0, len(self.data[:offset].rstrip()) - 1)
        start = max(self.data.rfind(b"\n", 0, offset) + 1, offset - _AROUND)
        end = self.data.find(b"\n", offset)
        end = min(end if end >= 0 else len(self.data), offset + _AROUND)
        at = len(_decode(self.data[start:offset]))
        return Span(self.excerpt(start, end), at, at + 1)


class Place(NamedTuple):
    """An object in a text; `path` leads to it when the bytes from `start` to `end` hold more than the object."""

    text: Text
    start: int
    end: int
    path: str = ""

    def span(self, path: str = "") -> Span:
        """The value at `path` in the object, or what comes nearest to it; the object's first line if nothing does."""
        excerpt = self.text.excerpt(self.start, self.end)
        return _find(excerpt, f"{self.path}.{path}".strip(".")) or Span(excerpt, 0, _first_line(excerpt.text, 0))


Object: TypeAlias = bytes | Mapping[str, Any]
"""One API object: JSON text, or what YAML gave."""

Sink: TypeAlias = Callable[[Object, Place], None]
"""Takes an object; lets `msgspec.DecodeError` through if the bytes are no JSON."""


class BrokenTextError(ValueError):
    """The text is not what it should be; the rest of the input cannot be read."""

    def __init__(self, message: str, span: Span | None, *notes: str) -> None:
        super().__init__(message)
        self.diagnostic = Diagnostic(Code.SYNTAX, Severity.ERROR, message, span, notes=notes)


def _decode(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


def _first_line(text: str, start: int) -> int:
    end = text.find("\n", start)
    return end if end >= 0 else len(text)


def _find(excerpt: Excerpt, path: str) -> Span | None:
    """Walk down the composed tree; JSON is read as YAML, which it nearly is. None if it cannot be composed."""
    import yaml

    try:
        node: Any = yaml.compose(excerpt.text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError):
        return None
    if node is None:
        return None
    mark = node
    while path:
        found = _step(node, path)
        if found is None:
            break
        key, node, path = found
        mark = node if isinstance(node, yaml.ScalarNode) or key is None else key
    start: int = mark.start_mark.index
    return Span(excerpt, start, max(start + 1, min(mark.end_mark.index, _first_line(excerpt.text, start))))


def _step(node: Any, path: str) -> tuple[Any, Any, str] | None:
    """Key node, value node and the rest of the path; keys may contain dots, so the longest one that fits wins."""
    import yaml

    if isinstance(node, yaml.SequenceNode):
        index = re.match(r"\[(\d+)\]", path)
        if index is None or int(index[1]) >= len(node.value):
            return None
        return None, node.value[int(index[1])], path[index.end() :]
    if not isinstance(node, yaml.MappingNode):
        return None
    for key, value in sorted(node.value, key=lambda pair: -len(str(pair[0].value))):
        for written in (str(key.value), f"[{key.value}]"):
            rest = path.removeprefix(".")
            if rest == written or rest.startswith((written + ".", written + "[")):
                return key, value, rest[len(written) :]
    return None
