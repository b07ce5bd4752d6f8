"""Diagnostics for people and for programs."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

from stowplan.text.diagnostic import Diagnostic
from stowplan.text.source import Span

_WIDEST = 160


def render(diagnostic: Diagnostic) -> str:
    """`file:line:col: error[STW101]: message`, then the line with a caret under the place, then the notes."""
    head = f"{diagnostic.severity.value}[{diagnostic.code.value}]: {_shown(_sentence(diagnostic))}"
    lines = [head]
    if diagnostic.span is not None:
        span = diagnostic.span
        lines[0] = f"{span.source.name}:{span.line}:{span.column}: {head}"
        lines += _snippet(span)
    for note in diagnostic.notes:
        first, *more = note.split("\n")
        lines += [f"  note: {_shown(first)}", *(f"    {_shown(line)}" for line in more)]
    return "\n".join(lines)


def render_all(diagnostics: Iterable[Diagnostic]) -> str:
    """Every diagnostic, one after the other, in the order given."""
    return "\n".join(render(diagnostic) for diagnostic in diagnostics)


def to_json(diagnostic: Diagnostic) -> dict[str, Any]:
    """A JSON object; `file`, `line` and `column` (from 1) are null when nothing was written."""
    span = diagnostic.span
    return {
        "code": diagnostic.code.value,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "path": diagnostic.path,
        "file": span.source.name if span else None,
        "line": span.line if span else None,
        "column": span.column if span else None,
        "notes": list(diagnostic.notes),
    }


def _sentence(diagnostic: Diagnostic) -> str:
    return f"{diagnostic.path}: {diagnostic.message}" if diagnostic.path else diagnostic.message


def _snippet(span: Span) -> list[str]:
    """The source line and the caret; a very long line (minified JSON) is cut around the place."""
    text, start = span.source.line(span.line), span.column - 1
    if not text.strip():
        return []
    length = max(1, min(span.end - span.start, len(text) - start))
    first = max(0, start - _WIDEST // 2) if len(text) > _WIDEST else 0
    shown = _shown(text[first : first + _WIDEST])
    gap = "".join(" " * _cells(character) for character in shown[: start - first])
    marks = "^" * sum(_cells(character) for character in shown[start - first : start - first + length])
    number = str(span.line)
    return [f"  {number} | {shown}", f"  {' ' * len(number)} | {gap}{marks or '^'}"]


def _shown(text: str) -> str:
    """The text with a stand-in for each character that a terminal would act upon or refuse."""
    return "".join(c if c.isprintable() else " " if c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _cells(character: str) -> int:
    """How many terminal cells a character takes."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
