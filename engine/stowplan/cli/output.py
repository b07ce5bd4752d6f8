"""Standard output: lines, tables and documents, with colours and folding only on a terminal."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from stowplan.cli.tables import Table, aligned, cells, drawn, printable

NARROWEST = 20
"""Columns that wrapped text gets at least."""
DRAWN_ROWS = 500
"""Longer tables are aligned without rich, which takes a millisecond for a few rows."""


class Page:
    """Collects what goes to standard output and writes it at once."""

    def __init__(self) -> None:
        self.terminal = sys.stdout.isatty()
        self.width = columns() if self.terminal else None
        """columns of the terminal; None: no limit"""
        self._colour = self.terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._lines: list[str] = []

    def line(self, text: str = "", **style: Any) -> None:
        """A line of its own, in click's styles (`bold`, `fg`) where colours are welcome; wrapped if it is too long."""
        for shown in wrapped(printable(text), self.width):
            self._lines.append(click.style(shown, **style) if style and self._colour else shown)

    def heading(self, text: str) -> None:
        """An empty line, and a line that names what follows."""
        if self._lines:
            self.line()
        self.line(text, bold=True)

    def table(self, table: Table) -> None:
        """A table; on a terminal it fits the width."""
        lines = aligned(table) if self.width is None or len(table.rows) <= DRAWN_ROWS else []
        if self.width is None or len(table.rows) > DRAWN_ROWS:
            self._lines += lines or aligned(table)
        elif max(map(cells, lines)) <= self.width and not self._colour:
            self._lines += lines
        else:
            self._lines.append(drawn(table, self.width, self._colour))

    def write(self) -> None:
        """Print all of it."""
        click.echo("\n".join(self._lines), color=self._colour)


def wrapped(text: str, width: int | None) -> list[str]:
    """The lines of a sentence on a terminal, broken between words and indented below its start; words are never cut."""
    if width is None or cells(text) <= width:
        return [text]
    import textwrap

    start = text[: len(text) - len(text.lstrip())]
    return textwrap.wrap(
        text.strip(),
        max(width, len(start) + NARROWEST),
        initial_indent=start,
        subsequent_indent=f"{start}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def columns() -> int:
    """Width of the terminal."""
    import shutil

    return shutil.get_terminal_size().columns


def document(content: Any, form: str) -> None:
    """Print JSON or YAML; members keep their order."""
    unicode = (sys.stdout.encoding or "utf-8").lower().replace("-", "").startswith("utf")  # else escapes of the format itself
    if form == "json":
        import json

        import msgspec

        # the standard encoder takes seconds for what a large simulation tells, but only it escapes for other encodings
        text = msgspec.json.format(msgspec.json.encode(content), indent=2).decode() if unicode else json.dumps(content, indent=2)
        sys.stdout.write(f"{text}\n")
        return
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's signature
            return True

    yaml.dump(content, sys.stdout, Dumper=Dumper, sort_keys=False, allow_unicode=unicode, width=10_000)
