"""YAML or JSON text becomes a positioned tree, read as strictly as kube-scheduler does.

One document, a key only once, also when a merge key brings it; what is too deep or too large for a configuration is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import yaml

from stowplan.profile.scalars import key_text, resolve
from stowplan.profile.yaml_tree import Items, Leaf, Table, Tree
from stowplan.text import Code, Diagnostic, Severity, Source, Span

_DEEPEST = 200
_MOST_NODES = 60_000


def parse(source: Source) -> tuple[Tree | None, list[Diagnostic]]:
    """The first document of a YAML or JSON text. Text that cannot be read gives no tree and one error at its place."""
    source = Source(source.name, source.text.removeprefix("\ufeff"))
    builder = _Builder(source)
    try:
        if source.text.lstrip()[:1] == "{":
            json.loads(source.text)  # kube-scheduler reads such a text as JSON and nothing else
            # tabs are legal between JSON tokens and never inside them; YAML dislikes them
            return builder.document(source.text.replace("\t", " ")), builder.diagnostics
        return builder.document(source.text), builder.diagnostics
    except _RefusedError as refused:
        return None, [*builder.diagnostics, refused.diagnostic]
    except (yaml.YAMLError, json.JSONDecodeError, UnicodeEncodeError, RecursionError) as error:
        return None, [_unreadable(error, source)]


def _unreadable(error: Exception, source: Source) -> Diagnostic:
    """What a parser complains about, at the place it complains about."""
    if isinstance(error, json.JSONDecodeError):
        return _syntax(f"a text that starts with {{ is read as JSON: {error.msg}", source, error.pos)
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        sentence = ", ".join(part for part in (error.context, error.problem) if part)
        place = mark.index if mark else 0
        return _syntax(sentence or "not YAML", source, place, *_syntax_notes(source, place, sentence))
    if isinstance(error, yaml.reader.ReaderError):
        before = source.text.encode(errors="replace")[: error.position]
        return _syntax(f"not YAML: {error.reason}", source, len(before.decode(errors="ignore")))
    if isinstance(error, UnicodeEncodeError):
        return _syntax("not YAML: half of a surrogate pair", source, error.start)
    return _syntax(f"nested more than {_DEEPEST} levels deep", source, 0)


def _syntax(message: str, source: Source, offset: int, *notes: str) -> Diagnostic:
    # libyaml reports the end of a text behind its last line, where there is nothing to show
    offset = min(offset, len(source.text.rstrip()))
    return Diagnostic(Code.SYNTAX, Severity.ERROR, message, Span(source, offset, offset + 1), "", notes)


def _syntax_notes(source: Source, offset: int, sentence: str) -> list[str]:
    """What libyaml's message means, where experience tells."""
    line = source.line(source.locate(min(offset, len(source.text)))[0])
    if "\t" in line[: len(line) - len(line.lstrip())] or source.text[offset : offset + 1] == "\t":
        return ["a tab: YAML is indented with spaces only"]
    if "mapping values are not allowed" in sentence:
        return ["a second `: ` in one value, or a line that is indented too far"]
    if "did not find expected key" in sentence or "did not find expected '-'" in sentence:
        return ["this line is indented like nothing above it"]
    return []


class _RefusedError(Exception):
    """Stops reading a document that has no meaning as a tree."""

    def __init__(self, code: Code, message: str, span: Span) -> None:
        super().__init__(message)
        self.diagnostic = Diagnostic(code, Severity.ERROR, message, span)


class _Builder:
    """Turns the events of libyaml into a tree; aliases share the tree of their anchor."""

    def __init__(self, source: Source) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._source = source
        self._events: Iterator[Any] = iter(())
        self._anchors: dict[str, tuple[Tree, int] | None] = {}
        self._nodes = 0
        self._depth = 0

    def document(self, text: str) -> Tree:
        self._events = iter(yaml.parse(text, Loader=yaml.CSafeLoader))
        next(self._events)
        first = next(self._events)
        if isinstance(first, yaml.StreamEndEvent):
            return Leaf(None, Span(self._source, 0, 0))
        tree = self._node(next(self._events))
        next(self._events)
        self._look_further()
        return tree

    def _look_further(self) -> None:
        """Says so if there are further documents; nobody reads them, so they may be broken."""
        try:
            following = next(self._events)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = min(mark.index if mark else 0, len(self._source.text.rstrip()))
            message = "from here on nothing is read: this line belongs to nothing above it"
            span = Span(self._source, place, place + 1)
            self.diagnostics.append(Diagnostic(Code.MORE_DOCUMENTS, Severity.WARNING, message, span))
            return
        except yaml.YAMLError:
            return
        if isinstance(following, yaml.DocumentStartEvent):
            message = "only the first document of a file is read, this one is not"
            span = self._span(following)
            self.diagnostics.append(Diagnostic(Code.MORE_DOCUMENTS, Severity.WARNING, message, span))

    def _span(self, event: Any) -> Span:
        return self._between(event, event)

    def _between(self, first: Any, last: Any) -> Span:
        return Span(self._source, first.start_mark.index, last.end_mark.index)

    def _node(self, event: Any) -> Tree:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        self._count(1, event)
        before = self._nodes
        if event.anchor:
            self._anchors[event.anchor] = None
        tree = self._collection(event) if not isinstance(event, yaml.ScalarEvent) else self._leaf(event)
        if event.anchor:
            self._anchors[event.anchor] = tree, self._nodes - before + 1
        return tree

    def _collection(self, event: Any) -> Tree:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _RefusedError(Code.SYNTAX, f"nested more than {_DEEPEST} levels deep", self._span(event))
        tree = self._table(event) if isinstance(event, yaml.MappingStartEvent) else self._items(event)
        self._depth -= 1
        return tree

    def _count(self, nodes: int, event: Any) -> None:
        self._nodes += nodes
        if self._nodes > _MOST_NODES:
            raise _RefusedError(Code.BAD_ALIAS, "more values than a configuration can have, aliases written out", self._span(event))

    def _alias(self, event: Any) -> Tree:
        if event.anchor not in self._anchors:
            raise _RefusedError(Code.BAD_ALIAS, f"no anchor &{event.anchor} was written before", self._span(event))
        anchored = self._anchors[event.anchor]
        if anchored is None:
            raise _RefusedError(Code.BAD_ALIAS, f"the anchor &{event.anchor} contains itself", self._span(event))
        tree, nodes = anchored
        self._count(nodes, event)
        return tree

    def _leaf(self, event: Any) -> Leaf:
        try:
            return Leaf(resolve(event.value, event.tag, event.implicit[0]), self._span(event))
        except ValueError as error:
            raise _RefusedError(Code.SYNTAX, str(error), self._span(event)) from None

    def _items(self, start: Any) -> Items:
        items = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event))
        return Items(tuple(items), self._between(start, event))

    def _table(self, start: Any) -> Table:
        fields: dict[str, Tree] = {}
        keys: dict[str, Span | None] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            span = self._span(event)
            key = self._node(event)
            value = self._node(next(self._events))
            if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]:
                for name, merged in self._merged(value, span):
                    self._add(fields, keys, name, merged, span)
            elif isinstance(key, Leaf):
                self._add(fields, keys, key_text(key.value), value, span)
            else:
                raise _RefusedError(Code.SYNTAX, "a key must be a scalar", span)
        return Table(fields, keys, self._between(start, event))

    def _merged(self, value: Tree, span: Span) -> Iterator[tuple[str, Tree]]:
        for tree in value.items if isinstance(value, Items) else (value,):
            if not isinstance(tree, Table):
                raise _RefusedError(Code.SYNTAX, "<< takes a mapping or a list of mappings", span)
            yield from tree.fields.items()

    def _add(self, fields: dict[str, Tree], keys: dict[str, Span | None], name: str, value: Tree, span: Span) -> None:
        if name in fields:
            first = keys[name]
            merged = "<<" in (span.text, first.text if first else "")
            notes = [f"first written in line {first.line}"] if first else []
            if merged:
                notes.append("kube-scheduler does not let a key override one that << brings")
            message = f'key "{name}" already set in map'
            self.diagnostics.append(Diagnostic(Code.DUPLICATE_KEY, Severity.ERROR, message, span, "", tuple(notes)))
        fields[name] = value
        keys[name] = span
