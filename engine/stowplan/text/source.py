"""A text with a name, and a stretch of it."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class Source:
    """A text and the name under which messages speak of it (usually the file name)."""

    name: str
    text: str = field(repr=False)

    @cached_property
    def _starts(self) -> list[int]:
        """Offset of the first character of every line."""
        starts = [0]
        position = self.text.find("\n")
        while position >= 0:
            starts.append(position + 1)
            position = self.text.find("\n", position + 1)
        return starts

    def locate(self, offset: int) -> tuple[int, int]:
        """Line and column of a character offset, both counted from 1; columns count characters, not bytes."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of line `number` (from 1) without its line end."""
        start = self._starts[number - 1]
        end = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def only(self, start: int, end: int) -> Source:
        """The same text with blanks outside of `start` to `end`: a part of it to be read alone, its places unchanged."""
        return Source(self.name, _VISIBLE.sub(" ", self.text[:start]) + self.text[start:end])


_VISIBLE = re.compile(r"[^\n]")


@dataclass(frozen=True, slots=True, repr=False)
class Span:
    """The characters `start` to `end` (excluded) of a source; line and column are found when asked for."""

    source: Source
    start: int
    end: int

    def __repr__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"

    @property
    def line(self) -> int:
        """Line of the first character, from 1."""
        return self.source.locate(self.start)[0]

    @property
    def column(self) -> int:
        """Column of the first character, from 1."""
        return self.source.locate(self.start)[1]

    @property
    def text(self) -> str:
        """The characters themselves."""
        return self.source.text[self.start : self.end]
