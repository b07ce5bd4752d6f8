"""A tree of mappings, lists and scalars that knows where each of them was written.

`yaml_reader.parse` makes it from YAML or JSON text, `from_plain` from Python values (without positions).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from stowplan.profile.scalars import Scalar, as_json, key_text
from stowplan.text import Code, Diagnostic, Edit, Kind, Path, Problem, Severity, Span, show_path


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A scalar."""

    value: Scalar
    span: Span | None


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """A list."""

    items: tuple[Tree, ...]
    span: Span | None


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A mapping; `keys` says where each name was written."""

    fields: Mapping[str, Tree]
    keys: Mapping[str, Span | None]
    span: Span | None

    def without(self, *names: str) -> Table:
        """The same mapping without some fields."""
        return Table({name: tree for name, tree in self.fields.items() if name not in names}, self.keys, self.span)


Tree: TypeAlias = Leaf | Items | Table


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """Where a decoded value comes from: the whole tree and the path in it."""

    tree: Tree
    path: Path = ()

    def under(self, *path: str | int) -> Origin:
        """The origin of a part of the value."""
        return Origin(self.tree, (*self.path, *path))

    @property
    def span(self) -> Span | None:
        """The place to point at: the value, or its key if it spans lines, or what should have contained it."""
        tree, span = self.tree, self.tree.span
        for part in self.path:
            found = _child(tree, part)
            if found is None:
                break
            key = tree.keys[str(part)] if isinstance(tree, Table) else None
            single = isinstance(found, Leaf) and found.value is not None
            tree, span = found, found.span if single or key is None else key
        return span

    def diagnostic(self, code: Code, message: str, severity: Severity = Severity.ERROR, *notes: str) -> Diagnostic:
        """A finding about this value."""
        return Diagnostic(code, severity, message, self.span, show_path(self.path), notes)

    def problem(self, problem: Problem, severity: Severity = Severity.ERROR) -> Diagnostic:
        """A validation error somewhere under this value."""
        place = self.under(*problem.path)
        finding = place.diagnostic(problem.kind.code, problem.message, severity, *problem.notes)
        # a value that exists may be wrong only beside others, any of which may be the one to change
        wrong = problem.kind is Kind.UNSUPPORTED or at(place.tree, place.path) is None
        edits = place.writing(problem.meant) if problem.meant and wrong else ()
        return dataclasses.replace(finding, edits=edits) if edits else finding

    def writing(self, text: str) -> tuple[Edit, ...]:
        """The edit that makes a scalar of this value: in place of one, or as a new field above the others of a mapping."""
        name, holder, written = self.path[-1], at(self.tree, self.path[:-1]), at(self.tree, self.path)
        if written is not None:
            return (Edit(written.span, _like(text, written.span.text)),) if isinstance(written, Leaf) and written.span else ()
        first = next(iter(holder.keys.items()), None) if isinstance(holder, Table) else None
        if first is None or first[1] is None or first[1].text.strip("\"'") != first[0] or not holder or not holder.span:
            return ()
        if holder.span.text[:1] != "{":
            return _line_above(first[1], f"{name}: {text}")
        place = Span(first[1].source, first[1].start, first[1].start)
        return (Edit(place, f"{_like(str(name), first[1].text)}: {_like(text, first[1].text)}, "),)


def _like(text: str, written: str) -> str:
    """A text in the quotes of another."""
    quote = written[0] if written[:1] in ("'", '"') else ""
    return f"{quote}{text}{quote}"


def _line_above(key: Span, field: str) -> tuple[Edit, ...]:
    """The edit that writes a field in a line of its own, above a key in block style and the comments that belong to it."""
    text = key.source.text
    start = text.rfind("\n", 0, key.start) + 1
    gap = text[start : key.start]
    if gap.strip(" ") or not start:
        return ()
    end = "\r\n" if text[:start].endswith("\r\n") else "\n"
    while (above := text.rfind("\n", 0, start - 1) + 1) and text[above:start].startswith(f"{gap}#"):
        start = above
    return (Edit(Span(key.source, start, start), f"{gap}{field}{end}"),)


def _child(tree: Tree, part: str | int) -> Tree | None:
    if isinstance(tree, Table):
        return tree.fields.get(str(part))
    if isinstance(tree, Items) and isinstance(part, int) and part < len(tree.items):
        return tree.items[part]
    return None


def at(tree: Tree, path: Path) -> Tree | None:
    """What stands at a path of a tree; None if nothing does."""
    found: Tree | None = tree
    for part in path:
        found = _child(found, part) if found is not None else None
    return found


def plain(tree: Tree) -> Any:
    """The tree as Python values."""
    if isinstance(tree, Leaf):
        return tree.value
    if isinstance(tree, Items):
        return [plain(item) for item in tree.items]
    return {name: plain(item) for name, item in tree.fields.items()}


def from_plain(value: Any) -> Tree:
    """A tree without positions from Python values. Raises TypeError for what JSON cannot hold."""
    if isinstance(value, Mapping):
        fields = {key_text(name): from_plain(item) for name, item in value.items()}
        return Table(fields, dict.fromkeys(fields), None)
    if isinstance(value, list | tuple):
        return Items(tuple(from_plain(item) for item in value), None)
    if isinstance(value, float):
        return Leaf(as_json(value), None)
    if value is None or isinstance(value, bool | int | str):
        return Leaf(value, None)
    raise TypeError(f"a configuration cannot hold a {type(value).__name__}")
