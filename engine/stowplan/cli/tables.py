"""Tables as values, and the two ways to print one: aligned text for pipes and long tables, rich's on a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

Row = Sequence[str]
GAP = "  "


@dataclass(slots=True)
class Table:
    """Header and rows of cells; `right` holds the places of the columns that are aligned to the right."""

    header: Row
    rows: list[Row] = field(default_factory=list)
    right: frozenset[int] = frozenset()

    def add(self, *cells: object) -> None:
        """Append a row."""
        self.rows.append([printable(str(cell)) for cell in cells])


def printable(text: str) -> str:
    """The text with a stand-in for each character that a terminal would act upon."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def cells(text: str) -> int:
    """How many terminal cells a text takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def aligned(table: Table) -> list[str]:
    """The lines of a table, columns as wide as their widest cell; nothing is cut or wrapped."""
    rows = [table.header, *table.rows]
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    last = len(widths) - 1
    lines = []
    for row in rows:
        padded = [
            " " * (width - cells(cell)) + cell
            if place in table.right
            else cell
            if place == last
            else cell + " " * (width - cells(cell))
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(GAP.join(padded).rstrip())
    return lines


def drawn(table: Table, width: int, colour: bool) -> str:
    """The table as rich draws it for a terminal of this width: cells that are too long are folded."""
    import io

    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    grid = RichTable(box=None, pad_edge=False, padding=(0, len(GAP), 0, 0), header_style="bold", show_header=True)
    for place, name in enumerate(table.header):
        grid.add_column(Text(name), justify="right" if place in table.right else "left", overflow="fold")
    for row in table.rows:
        grid.add_row(*map(Text, row))
    text = io.StringIO()
    console = Console(file=text, width=width, force_terminal=colour, no_color=not colour, highlight=False, legacy_windows=False)
    console.print(grid)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())
