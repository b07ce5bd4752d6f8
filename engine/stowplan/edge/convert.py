"""Rewrites a text so that its configurations are of another version; comments, order and all else in it stay."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from stowplan.profile import Table, Tree, plain
from stowplan.profile.migrate import Change, Data, migrate, to_policy
from stowplan.profile.unwrap import Found, mentioned, unwrap
from stowplan.profile.versions import KUBERNETES, STOWPLAN
from stowplan.profile.yaml_tree import Origin
from stowplan.text import Code, Diagnostic, Path, Severity, Source, Span

TARGETS = {"v1": KUBERNETES, "policy": STOWPLAN}
_MARKER = re.compile(r"^---(?=[ \t\r]|$)[^\n]*\n?", re.MULTILINE)
_INDENTED_LIST = re.compile(r"^( *)[^\s#-][^\n]*:[ \t]*\n(?:\s*#[^\n]*\n)*(\1 +)- ", re.MULTILINE)

_Step: TypeAlias = Callable[[Data], list[Change]]


@dataclass(frozen=True, slots=True)
class Told:
    """A change and the line of the old text that it is about; None where that stands in a quoted string."""

    line: int | None
    text: str
    lost: bool


@dataclass(frozen=True, slots=True)
class Converted:
    """The new text and what was done; `errors` tell of documents that cannot be read and were left as they are.

    rest   whether something else was converted, or was as wanted already
    """

    text: str
    told: tuple[Told, ...]
    errors: tuple[Diagnostic, ...] = ()
    rest: bool = True


def convert(source: Source, target: str) -> Converted:
    """The text with every configuration in it converted to a target of `TARGETS`, as far as its documents can be read."""
    pieces: list[str] = []
    told: list[Told] = []
    errors: list[Diagnostic] = []
    read = 0
    for document, marker in _documents(source.text):
        text = source.text[document.start : document.stop]
        whole = len(text) + len(marker) == len(source.text)
        if whole or mentioned(text):
            converted = _converted(source if whole else source.only(document.start, document.stop), text, target)
            text = converted.text
            told += converted.told
            errors += converted.errors
            read += not converted.errors
        pieces += (text, marker)
    return Converted("".join(pieces), tuple(told), tuple(errors), rest=read > 0)


def _documents(text: str) -> Iterator[tuple[range, str]]:
    """Where each document stands, and the mark that ends it."""
    position = 0
    for marker in _MARKER.finditer(text):
        yield range(position, marker.start()), marker[0]
        position = marker.end()
    yield range(position, len(text)), ""


def _converted(source: Source, text: str, target: str) -> Converted:
    """A document, of which `source` knows the places; all of it or nothing."""
    found, _ = unwrap(source)
    errors = [finding for one in found for finding in one.diagnostics if finding.is_error]
    if errors:
        return Converted(text, (), tuple(errors))
    if not any(_wanted(one) for one in found):
        return Converted(text, ())
    told: list[Told] = []
    steps = [_step(one.tree, target, told, source.name) for one in found if isinstance(one.tree, Table)]
    from ruamel.yaml.error import YAMLError

    try:
        return Converted(_document(text, steps), tuple(told))
    except YAMLError as error:  # it reads YAML 1.2, and so not everything that is read elsewhere
        message = f"cannot be rewritten: {str(error).splitlines()[0]}"
        place = len(source.text) - len(source.text.lstrip())
        return Converted(text, (), (Diagnostic(Code.SYNTAX, Severity.ERROR, message, Span(source, place, place + 1)),))


def _wanted(one: Found) -> bool:
    """Is it a configuration? A document that only speaks of one is taken for one where there is no other."""
    tree = one.tree
    if not isinstance(tree, Table):
        return False
    return bool(one.where) or _is_configuration({name: plain(field) for name, field in tree.fields.items()})


def _step(tree: Tree, target: str, told: list[Told], name: str) -> _Step:
    """What to do to the data of a configuration, noting the lines of its tree."""

    def step(data: Data) -> list[Change]:
        changes = migrate(data) if data.get("apiVersion") != STOWPLAN[0] else []
        changes += to_policy(data) if target == "policy" else []
        told.extend(Told(_line(tree, change.path, name), change.text, change.lost) for change in changes)
        return changes

    return step


def _line(tree: Tree, path: Path, name: str) -> int | None:
    span = Origin(tree, path).span
    return span.line if span is not None and span.source.name == name else None


def _document(text: str, steps: list[_Step]) -> str:
    """A document with its configurations converted, each by the next of the steps; others are left alone, to the letter."""
    if not steps or not _mentions(text):
        return text
    if text.lstrip().startswith("{"):
        data = json.loads(text)
        before = json.dumps(data)
        data = _walk(data, steps, ())
        return text if json.dumps(data) == before else json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    yaml = _yaml(text)
    data = yaml.load(text)
    before = _dumped(yaml, data)
    data = _walk(data, steps, ())
    after = _dumped(yaml, data)
    return text if after == before else after


def _mentions(text: str) -> bool:
    return "KubeSchedulerConfiguration" in text or STOWPLAN[1] in text or "Policy" in text


def _walk(data: Any, steps: list[_Step], path: Path) -> Any:
    """Convert configurations at or below a value; the value itself, or what takes its place."""
    if isinstance(data, str):
        return _text(data, steps) if path and _mentions(data) and "kind" in data else data
    if isinstance(data, list):
        for index, item in enumerate(data):
            data[index] = _walk(item, steps, (*path, index))
    elif isinstance(data, dict):
        if steps and _is_configuration(data):
            steps.pop(0)(data)
            return data
        for name, item in data.items():
            data[name] = _walk(item, steps, (*path, name))
    return data


def _is_configuration(data: dict[str, Any]) -> bool:
    kind = data.get("kind")
    if kind == "Policy":
        return any(name in data for name in ("predicates", "priorities", "extenders"))
    return kind in (KUBERNETES[1], STOWPLAN[1])


def _text(text: str, steps: list[_Step]) -> str:
    """A configuration in a string, in the style that the string has."""
    if not steps:
        return text
    converted = _document(str(text), steps)
    style = type(text)
    return converted if style is str else style(converted)


def _yaml(text: str) -> Any:
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 100_000
    yaml.brace_single_entry_mapping_in_flow_sequence = True  # `[name: X]` is YAML, and nobody writes it
    if _INDENTED_LIST.search(text):
        yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def _dumped(yaml: Any, data: Any) -> str:
    stream = io.StringIO()
    yaml.dump(data, stream)
    return stream.getvalue()
