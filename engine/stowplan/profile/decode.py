"""A positioned tree becomes a frozen dataclass; annotations and defaults of the dataclass are all there is to say.

As strict as kube-scheduler: unknown fields, wrong types and numbers out of range are errors, names are case-sensitive,
null is the same as absent. Everything wrong is reported, and the value is built all the same, with defaults in place of
what could not be read, so that later checks can find more.

Understood annotations: bool, int (64 bits), `Int32`, float, str, bytes (base64), timedelta (`1m30s`), dataclasses,
`tuple[X, ...]`, `Mapping[str, str]`, `X | None`, `Tree` (kept as it is) and `Origin` (filled in, not read).
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import math
import re
import types
import typing
from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from stowplan.profile.yaml_tree import Items, Leaf, Origin, Table, Tree
from stowplan.text import ZERO_MEANS_DEFAULT, Code, Diagnostic, Edit, Path, Severity, Span, closest, show_path

T = TypeVar("T")

_NAMES = {bool: "true or false", int: "an integer", float: "a number", str: "a string", bytes: "base64 text"}
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_LONGEST = 2**63 - 1
_MOST_FINDINGS = 2000
_FEW = 16
"""fields that are listed where none of them is like the unknown one"""
_MOST_GUESSES = 100
"""findings after which nobody wants suggestions; they take a while"""


def decode(cls: type[T], origin: Origin, tree: Tree | None) -> tuple[T, list[Diagnostic]]:
    """The value written as `tree`, which is found at `origin`; None means that nothing was written."""
    decoder = _Decoder(origin)
    value = decoder.struct(cls, tree, origin.path) if tree is not None else cls()
    return value, decoder.diagnostics


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    """One field of a dataclass: its Python name, what it holds and how it is written."""

    name: str
    kind: Any
    metadata: Mapping[str, Any]

    @property
    def aside(self) -> bool:
        """Whether it is an object that few files have: unless it is there, nobody meant to write into it."""
        return "only policy" in self.metadata and typing.get_origin(_required(self.kind)) is not tuple


@functools.cache
def fields_of(cls: type[Any]) -> dict[str, _Field]:
    """The fields of a dataclass by written name; a field that holds an Origin is not written."""
    hints = typing.get_type_hints(cls, include_extras=True)
    found = {}
    for field in dataclasses.fields(cls):
        if Origin not in typing.get_args(hints[field.name]):
            written = field.metadata.get("written as") or camel(field.name)
            found[written] = _Field(field.name, hints[field.name], field.metadata)
    return found


def camel(name: str) -> str:
    """`topology_key` -> `topologyKey`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


class _Decoder:
    def __init__(self, origin: Origin) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._root = origin.tree

    def struct(self, cls: type[T], tree: Tree, path: Path) -> T:
        known = fields_of(typing.cast("Any", cls))
        values: dict[str, Any] = {}
        if not isinstance(tree, Table):
            if not _is_null(tree):
                self._wrong(tree, path, "a mapping", *_entry_hint(tree, known))
            return cls()
        for name, child in tree.fields.items():
            field = known.get(name)
            if field is None:
                self._unknown(cls, tree, name, path)
            elif not _is_null(child) or _never_null(field):
                value = self._field(field, child, (*path, name))
                if value or field.metadata != ZERO_MEANS_DEFAULT:
                    values[field.name] = value
        if "origin" in typing.cast("Any", cls).__dataclass_fields__:
            values["origin"] = Origin(self._root, path)
        return cls(**{name: value for name, value in values.items() if value is not _BROKEN})

    def _field(self, field: _Field, tree: Tree, path: Path) -> Any:
        inner = field.metadata.get("within")
        if inner is None:
            return self._value(field.kind, tree, path)
        if not isinstance(tree, Table):
            return self._wrong(tree, path, "a mapping")
        for name in tree.fields:
            if name != inner:
                self._unknown_name(tree, name, path, [inner])
        written = tree.fields.get(inner)
        return () if written is None or _is_null(written) else self._value(field.kind, written, (*path, inner))

    def _value(self, kind: Any, tree: Tree, path: Path) -> Any:
        """The value, or `_BROKEN` after a report."""
        kind = _required(kind)
        origin = typing.get_origin(kind)
        if origin is tuple:
            return self._list(typing.get_args(kind)[0], tree, path)
        if origin is Mapping:
            return self._strings(tree, path)
        if dataclasses.is_dataclass(kind):
            return self.struct(typing.cast("type[Any]", kind), tree, path)
        return tree if Leaf in typing.get_args(kind) else self._scalar(kind, tree, path)

    def _list(self, kind: Any, tree: Tree, path: Path) -> Any:
        if not isinstance(tree, Items):
            return self._wrong(tree, path, "a list")
        values = []
        for index, item in enumerate(tree.items):
            value = _zero(kind) if _is_null(item) else self._value(kind, item, (*path, index))
            values.append(_zero(kind) if value is _BROKEN else value)
        return tuple(values)

    def _strings(self, tree: Tree, path: Path) -> Any:
        if not isinstance(tree, Table):
            return self._wrong(tree, path, "a mapping")
        found = {name: self._scalar(str, item, (*path, name)) for name, item in tree.fields.items()}
        return {name: text for name, text in found.items() if text is not _BROKEN}

    def _scalar(self, kind: Any, tree: Tree, path: Path) -> Any:
        kind, bits = typing.get_args(kind) or (kind, 64)
        if kind is int:
            return self._integer(tree, path, bits)
        if kind is timedelta:
            return self._duration(tree, path)
        value: Any = tree.value if isinstance(tree, Leaf) else None
        if kind is float:
            value = _as_float(value)
        elif kind is bytes:
            value = _as_bytes(value)
        if isinstance(value, kind):
            return value
        return self._wrong(tree, path, _NAMES[kind], *(_quote_hint(kind, tree) or _unquote_hint(kind, tree)))

    def _integer(self, tree: Tree, path: Path, bits: int) -> Any:
        if not isinstance(tree, Leaf) or isinstance(tree.value, bool) or not isinstance(tree.value, int):
            return self._wrong(tree, path, _NAMES[int], *_unquote_hint(int, tree))
        if not -(2 ** (bits - 1)) <= tree.value < 2 ** (bits - 1):
            return self._wrong(tree, path, f"an integer of {bits} bits")
        return tree.value

    def _duration(self, tree: Tree, path: Path) -> Any:
        if isinstance(tree, Leaf) and isinstance(tree.value, str):
            value = parse_duration(tree.value)
            if value is not None:
                return value
        return self._wrong(tree, path, 'a duration such as "1m30s"')

    def _wrong(self, tree: Tree, path: Path, expected: str, *notes: str) -> Any:
        message = f"expected {expected}, got {_describe(tree)}"
        finding = Origin(self._root, path).diagnostic(Code.WRONG_TYPE, message, Severity.ERROR, *notes)
        self._report(dataclasses.replace(finding, edits=_quoting(tree, notes)))
        return _BROKEN

    def _report(self, finding: Diagnostic) -> None:
        if len(self.diagnostics) < _MOST_FINDINGS:
            self.diagnostics.append(finding)

    def _unknown(self, cls: type, tree: Table, name: str, path: Path) -> None:
        known = fields_of(cls)
        inner = (outer for outer, field in known.items() if name in _inner_names(field.kind))
        owners = [_place_of(tree, outer) for outer in inner if outer in tree.fields or not known[outer].aside]
        if owners:
            message = f'unknown field "{show_path((*path, name))}"'
            note, edits = f"it belongs under {owners[0]}: indent it", indent(tree, name, owners[0].partition("[")[0])
            span = tree.keys.get(name)
            self._report(Diagnostic(Code.UNKNOWN_FIELD, Severity.ERROR, message, span, "", (note,), edits))
        else:
            self._unknown_name(tree, name, path, known, [outer for outer, field in known.items() if field.aside])

    def _unknown_name(self, tree: Table, name: str, path: Path, known: Iterable[str], rare: Collection[str] = ()) -> None:
        """`rare` are known as well, and not listed."""
        meant = closest(name, known) if len(self.diagnostics) < _MOST_GUESSES else None
        names = sorted(set(known).difference(rare))
        remedies = (f'did you mean "{meant}"?',) if meant else (f"fields here: {', '.join(names)}",) if len(names) <= _FEW else ()
        message = f'unknown field "{show_path((*path, name))}"'
        span = tree.keys.get(name)
        self._report(
            Diagnostic(Code.UNKNOWN_FIELD, Severity.ERROR, message, span, "", remedies, self._rename(tree, name, meant, span))
        )

    @staticmethod
    def _rename(tree: Table, name: str, meant: str | None, span: Span | None) -> tuple[Edit, ...]:
        """The edit that corrects a key; none if the right one is there too, or the key stands elsewhere (a merge)."""
        if meant is None or span is None or meant in tree.fields or span.text.strip("\"'") != name:
            return ()
        return (Edit(span, span.text.replace(name, meant)),)


_BROKEN: Any = object()


def parse_duration(text: str) -> timedelta | None:
    """A Go duration (`time.ParseDuration`) to the microsecond; None if it is none."""
    sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
    if rest == "0":
        return timedelta()
    nanoseconds, position = 0, 0
    while position < len(rest):
        part = _DURATION_PART.match(rest, position)
        if part is None:
            return None
        whole, _, fraction = part[1].partition(".")
        unit = _UNITS[part[2]]
        nanoseconds += int(whole or 0) * unit + int(fraction or 0) * unit // 10 ** len(fraction)
        position = part.end()
    if position == 0 or nanoseconds > _LONGEST:
        return None
    return sign * timedelta(microseconds=nanoseconds / 1000)


def _never_null(field: _Field) -> bool:
    """Go reads null into a duration as if it were empty text, unless the field is a pointer."""
    return field.kind is timedelta and field.metadata == ZERO_MEANS_DEFAULT


def _is_null(tree: Tree) -> bool:
    return isinstance(tree, Leaf) and tree.value is None


def _required(kind: Any) -> Any:
    """`X | None` -> X; every other annotation is left alone."""
    if typing.get_origin(kind) not in (types.UnionType, typing.Union):
        return kind
    members = [member for member in typing.get_args(kind) if member is not types.NoneType]
    return members[0] if len(members) == 1 else kind


def _as_float(value: Any) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if number else None


def _as_bytes(value: Any) -> bytes | None:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else None
    except ValueError:
        return None


def _zero(kind: Any) -> Any:
    """What Go leaves in a list for null."""
    if typing.get_origin(kind) is typing.Annotated:
        return 0
    return () if typing.get_origin(kind) is tuple else kind()


def _describe(tree: Tree) -> str:
    if isinstance(tree, Items):
        return "a list"
    if isinstance(tree, Table):
        return "a mapping"
    if tree.value is None:
        return "null"
    if isinstance(tree.value, bool):
        return "true" if tree.value else "false"
    return f'the string "{tree.value}"' if isinstance(tree.value, str) else f"the number {tree.value}"


def _entry_hint(tree: Tree, known: Mapping[str, _Field]) -> list[str]:
    named = isinstance(tree, Leaf) and isinstance(tree.value, str) and "name" in known
    return [f'write "name: {tree.value}"'] if named and isinstance(tree, Leaf) else []


def _quote_hint(kind: Any, tree: Tree) -> list[str]:
    if kind is not str or not isinstance(tree, Leaf):
        return []
    raw = tree.span.text if tree.span else ""
    taken = isinstance(tree.value, bool) and raw.lower() not in ("true", "false", "")
    return [f"YAML takes {raw} for {_describe(tree)}: quote it" if taken else "quote it"]


def _unquote_hint(kind: Any, tree: Tree) -> list[str]:
    text = tree.value if isinstance(tree, Leaf) and isinstance(tree.value, str) else ""
    if kind is bool:
        return [f"write {text.lower()} without quotes"] if text.lower() in ("true", "false", "yes", "no") else []
    return [f"write {text} without quotes"] if re.fullmatch(r"-?[0-9]+(?:\.[0-9]+)?", text) else []


def _place_of(tree: Table, outer: str) -> str:
    """A field as a place to indent under: of a list the last item."""
    written = tree.fields.get(outer)
    return f"{outer}[{len(written.items) - 1}]" if isinstance(written, Items) and written.items else outer


def _quoting(tree: Tree, notes: Iterable[str]) -> tuple[Edit, ...]:
    """The edit that does what a note about quotes says."""
    span = tree.span if isinstance(tree, Leaf) else None
    for note in notes if span is not None else ():
        assert span is not None
        if note.endswith("quote it"):
            return (Edit(span, f'"{span.text}"'),)
        if note.endswith("without quotes") and span.text[:1] in ("'", '"'):
            return (Edit(span, note.split()[1]),)
        if note.startswith('write "name: '):
            return (Edit(span, f"name: {span.text}"),)
    return ()


def indent(tree: Table, name: str, outer: str) -> tuple[Edit, ...]:
    """The edits that put a field under the one before it, if that is the right one and takes fields or can be made to."""
    names = list(tree.fields)
    span, value = tree.keys.get(name), tree.fields[name]
    before = names[names.index(name) - 1] if names.index(name) else None
    if before != outer or span is None or value.span is None or value.span.source is not span.source:
        return ()
    text, start = span.source.text, span.start
    line = text.rfind("\n", 0, start) + 1
    if text[line:start].strip(" "):
        return ()
    holder = tree.fields[outer]
    inner = holder.items[-1] if isinstance(holder, Items) and holder.items else holder
    keys = [key for key in inner.keys.values() if key] if isinstance(inner, Table) else []
    column = keys[0].column - 1 if keys else start - line + 2
    if column <= start - line or not (isinstance(inner, Table) or _is_null(inner)):
        return ()
    gap, edits, end = " " * (column - (start - line)), [], value.span.end
    while 0 <= line < max(end, start + 1):
        edits.append(Edit(Span(span.source, line, line), gap))
        line = text.find("\n", line) + 1 or -1
    return tuple(edits)


def _inner_names(kind: Any) -> Iterable[str]:
    """Field names of the dataclass that a field holds, alone or in a list, if it holds one."""
    candidates = (kind, *typing.get_args(kind))
    for candidate in candidates:
        if isinstance(candidate, type) and dataclasses.is_dataclass(candidate) and candidate not in (Leaf, Items, Table):
            yield from fields_of(candidate)
