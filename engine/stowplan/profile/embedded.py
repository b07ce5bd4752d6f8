"""From a place in the value of a YAML scalar to the place where it was written.

Folding and indentation only touch white space, so the other characters of the value stand in the text in the same order;
what escapes of a double-quoted scalar stand for is found by reading them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stowplan.text import Span

_PROPERTIES = re.compile(r"(?:[!&][^\s]*[ \t]+)*")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.|\n))", re.DOTALL)
_BLANKS = frozenset(" \t\n\r0abtnvfreNLP_")
"""what follows the backslash of an escape that stands for white space or a control character"""


def part_of(scalar: Span, value: str, start: int, end: int) -> Span:
    """The characters that became `value[start:end]`, at least one of them; a stretch over lines ends with its first line.

    `scalar` is what was written, quotes and block header included.
    """
    places = _places(scalar.text, value)
    first = places[min(start, len(places) - 1)]
    last = places[min(max(end - 1, start), len(places) - 1)]
    line_end = scalar.text.find("\n", first)
    stop = last + 1 if line_end < 0 else min(last + 1, max(line_end, first + 1))
    return Span(scalar.source, scalar.start + first, scalar.start + max(stop, first + 1))


def _places(raw: str, value: str) -> list[int]:
    """For each character of the value, and for its end, where in the raw text it was written."""
    written = _visible(raw)
    places: list[int] = []
    at = -1
    for character in value:
        if character.isspace():
            blank = at + 1 < len(raw) and raw[at + 1].isspace()
            at = at + 1 if blank or not places else at
            places.append(max(at, 0))
            continue
        at = next((place for place, visible in written if visible == character), at)
        places.append(at)
    places.append(min(at + 1, max(len(raw) - 1, 0)))
    return places


def _visible(raw: str) -> Iterator[tuple[int, str]]:
    """The characters of a raw scalar that are not white space, with their places."""
    properties = _PROPERTIES.match(raw)
    begin = properties.end() if properties else 0
    style = raw[begin : begin + 1]
    if style in ("|", ">"):
        begin = raw.find("\n", begin) + 1 or len(raw)
        yield from ((i, raw[i]) for i in range(begin, len(raw)) if not raw[i].isspace())
    elif style == '"':
        yield from _double_quoted(raw, begin + 1)
    elif style == "'":
        i = begin + 1
        while i < len(raw) - 1:
            if not raw[i].isspace():
                yield i, raw[i]
            i += 2 if raw[i : i + 2] == "''" else 1
    else:
        yield from ((i, raw[i]) for i in range(begin, len(raw)) if not raw[i].isspace())


def _double_quoted(raw: str, at: int) -> Iterator[tuple[int, str]]:
    while at < len(raw) - 1:
        escape = _ESCAPE.match(raw, at)
        if escape is None:
            if not raw[at].isspace():
                yield at, raw[at]
            at += 1
            continue
        code = escape[1] or escape[2] or escape[3]
        if code:
            character = chr(int(code, 16))
            if not character.isspace():
                yield at, character
        elif escape[4] not in _BLANKS:
            yield at, escape[4]
        at = escape.end()
