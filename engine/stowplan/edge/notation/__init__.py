"""A notation for small clusters: one line a node, a pod or what else is there.

    node a cpu=4 mem=8Gi zone=z1 taint=team=x:NoSchedule
    pod web/api-{1..3} cpu=500m labels=app=x spread=zone:max=1

A line is a kind, a name and words in any order; `#` starts a comment. `{1..3}` in the name stands for a line each. A word is a
flag or `key=value`; a value with details is `head:detail=value;detail=value`. Lines become API objects, with nothing
filled in that was not written. Every fault is found and told with its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from stowplan.edge.notation.values import Object, WordError
from stowplan.edge.notation.words import KINDS
from stowplan.text import Code, Diagnostic, Severity, Source, Span, render_all

_WORD = re.compile(r"\S+")
_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")


class NotationError(ValueError):
    """The text is no cluster; `diagnostics` says all that is wrong with it."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(render_all(self.diagnostics))


class _Word(NamedTuple):
    text: str
    span: Span


def read_notation(source: Source | str) -> list[Object]:
    """The API objects that the lines of a text describe. Raises NotationError."""
    source = source if isinstance(source, Source) else Source("<cluster>", source)
    objects: list[Object] = []
    faults: list[Diagnostic] = []
    for words in _lines(source):
        try:
            objects += _objects(words, faults)
        except WordError as fault:
            faults.append(_diagnostic(str(fault), words[0].span))
    if faults:
        raise NotationError(faults)
    return objects


def _lines(source: Source) -> Iterator[list[_Word]]:
    """The words of every line that has some."""
    start = 0
    for line in source.text.splitlines(keepends=True):
        words = []
        for found in _WORD.finditer(line):
            if found.group().startswith("#"):
                break
            words.append(_Word(found.group(), Span(source, start + found.start(), start + found.end())))
        start += len(line)
        if words:
            yield words


def _diagnostic(message: str, span: Span) -> Diagnostic:
    return Diagnostic(Code.SYNTAX, Severity.ERROR, message, span)


def _objects(words: list[_Word], faults: list[Diagnostic]) -> Iterator[Object]:
    """The objects of one line; the first one with a fault ends it."""
    kind = KINDS.get(words[0].text)
    if kind is None:
        raise WordError(f"there is no kind {words[0].text}; kinds are {', '.join(KINDS)}")
    if len(words) < 2:
        raise WordError(f"the {words[0].text} has no name")
    for name in _names(words[1].text):
        item = kind.blank(name)
        for word in words[2:]:
            try:
                kind.take(item, word.text)
            except WordError as fault:
                faults.append(_diagnostic(str(fault), word.span))
        yield item
        if faults:
            return


def _names(text: str) -> Iterator[str]:
    found = _RANGE.search(text)
    if found is None:
        yield text
        return
    first, last = int(found[1]), int(found[2])
    if last < first:
        raise WordError(f"the range {found.group()} is empty")
    for number in range(first, last + 1):
        # leading zeros keep their width, so that names sort as numbers do
        yield from _names(f"{text[: found.start()]}{number:0{len(found[1])}}{text[found.end() :]}")
