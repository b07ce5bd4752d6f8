"""Finds the configurations in a text: plain, in one of several documents, in a List, in a ConfigMap or in anything else.

Whatever the wrapping, places stay those of the text: what surrounds a configuration is read as blanks. Only a configuration
inside a quoted or folded string has places of its own, counted in that string.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from stowplan.profile.versions import GROUP, KUBERNETES, POLICY, STOWPLAN
from stowplan.profile.yaml_reader import parse
from stowplan.profile.yaml_tree import Items, Leaf, Table, Tree
from stowplan.text import Code, Diagnostic, Path, Severity, Source, Span, show_path

_MARKER = re.compile(r"^---(?=[ \t\r]|$)", re.MULTILINE)
_TEMPLATE = re.compile(r"\{\{|\{%")
_COMMENTS = re.compile(r"(?m)(?:^|(?<=\s))#.*$")
_HELM = re.compile(r"\{\{-?\s*(?:\.Values|\.Release|\.Chart|include|toYaml|range|with|if|end|define|template|\$)")
_KINDS = (KUBERNETES[1], STOWPLAN[1])
_LIKE = re.compile(rf"(?m)^\s*[\"']?kind[\"']?\s*:\s*[\"']?(?:{'|'.join(_KINDS)}|{POLICY[1]})\b")
_MENTIONED = re.compile(rf"{'|'.join(_KINDS)}|{re.escape(GROUP)}/|\\b{POLICY[1]}\\b")
_KIND = re.compile(r"(?m)^kind:[ \t]*[\"']?([\w.-]+)")
_METADATA = re.compile(r"(?m)^metadata:[^\n]*")
_NAME = re.compile(r"(?:^|[{,])[ \t]*name:[ \t]*[\"']?([\w.-]+)")
_MOST, _MOST_OTHERS = 100, 20
_MOST_LINES = 200
"""lines of metadata in which a name is looked for"""
_TEXTS = ("data[", "data.", "stringData")
"""where ConfigMaps and Secrets hold files"""


@dataclass(frozen=True, slots=True)
class Found:
    """A configuration in a text. `direct`: kube-scheduler reads it when it is given the text as it is."""

    tree: Tree | None
    diagnostics: tuple[Diagnostic, ...]
    """what was wrong with the text itself; without a tree there is at least one error"""
    where: str = ""
    """which part of the text it is: `data["a.yaml"]`"""
    direct: bool = True

    def unused(self) -> Diagnostic:
        """What to say when another configuration of the text is used."""
        span = _head(self.tree) if isinstance(self.tree, Table) else None
        return Diagnostic(
            Code.WRAPPED, Severity.WARNING, f"{self.where or 'this'} is not used: only the first configuration is", span
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """A document: where it stands, and its number (from 0)."""

    start: int
    end: int
    number: int


def mentioned(text: str) -> bool:
    """Whether a configuration may stand in a text: one that is among others need not even be YAML if not."""
    return _MENTIONED.search(text) is not None


def unwrap(source: Source) -> tuple[list[Found], list[Diagnostic]]:
    """The configurations in a text, and findings about the rest of it. A text without any is one that is wrong itself."""
    parts = list(_documents(source))
    found: list[Found] = []
    others: list[Diagnostic] = []
    for part in parts:
        text = source.text[part.start : part.end]
        if len(parts) > 1 and (not mentioned(text) or len(found) >= _MOST):
            others.append(_other(source, part, text))
            continue
        inside = source.only(part.start, part.end) if len(parts) > 1 else source
        tree, diagnostics = parse(inside)
        if tree is None:
            found.append(Found(None, tuple(_template(inside) or diagnostics), "", part.number == 0))
            continue
        inner = list(islice(_search(tree, inside, part.number, ()), _MOST))
        if inner:
            found += [_with(one, diagnostics) if one.tree is tree else one for one in inner]
        elif len(parts) == 1:
            found.append(Found(tree, tuple(diagnostics)))
        else:
            others.append(_other(source, part, text))
    if not found:
        tree, diagnostics = parse(source)
        return [Found(tree, tuple(diagnostics))], []
    return found, others[:_MOST_OTHERS] + _told(found, len(parts), source)


def _documents(source: Source) -> Iterator[_Part]:
    """The documents of a stream that hold anything; a marker at the start of a line ends whatever came before."""
    markers = list(_MARKER.finditer(source.text))
    starts = [0, *(match.end() for match in markers)]
    ends = [*(match.start() for match in markers), len(source.text)]
    number = 0
    for start, end in zip(starts, ends, strict=True):
        if _COMMENTS.sub("", source.text[start:end]).strip():
            yield _Part(start, end, number)
            number += 1
    if not number:
        yield _Part(0, len(source.text), 0)


def _search(tree: Tree, source: Source, number: int, path: Path) -> Iterator[Found]:
    """Configurations at or below a tree, in the order of the text."""
    if isinstance(tree, Leaf):
        if isinstance(tree.value, str) and path and _LIKE.search(tree.value):
            yield from _embedded(tree, tree.value, source, path)
    elif isinstance(tree, Items):
        for index, item in enumerate(tree.items):
            yield from _search(item, source, number, (*path, index))
    elif _is_configuration(tree, top=not path):
        yield Found(tree, (), _place(number, path), number == 0 and not path)
    else:
        for name, item in tree.fields.items():
            yield from _search(item, source, number, (*path, name))


def _is_configuration(tree: Table, *, top: bool) -> bool:
    kind, version = _text(tree, "kind"), _text(tree, "apiVersion")
    if kind in _KINDS or version.startswith(f"{GROUP}/"):
        return top or (bool(kind and version) and not kind.endswith("Args"))
    if kind == POLICY[1]:
        return "predicates" in tree.fields or "priorities" in tree.fields or "extenders" in tree.fields
    return top and not kind and ("profiles" in tree.fields or not version)


def _text(tree: Table, name: str) -> str:
    leaf = tree.fields.get(name)
    return leaf.value if isinstance(leaf, Leaf) and isinstance(leaf.value, str) else ""


def _embedded(leaf: Leaf, value: str, outer: Source, path: Path) -> Iterator[Found]:
    """The configuration in a string; that of a literal block is read where it stands."""
    where = _place(0, path)
    source = Source(f"{outer.name}:{show_path(path)}", value)
    if leaf.span is not None and leaf.span.text.startswith("|"):
        block = leaf.span
        begin = block.source.text.find("\n", block.start) + 1 or block.end
        source = block.source.only(begin, block.end)
        lines = re.compile(r"^[ ]*---[ \t\r]*$", re.MULTILINE)
        for match in lines.finditer(source.text, begin):
            before = source.text[begin : match.start()].strip()
            if before and _LIKE.search(before):
                source = block.source.only(begin, match.start())
                break
            begin = match.end()
            source = block.source.only(begin, block.end)
    tree, diagnostics = parse(source)
    wrong = (_template(source) if tree is None else []) or diagnostics
    if tree is None or (isinstance(tree, Table) and _is_configuration(tree, top=True)):
        yield Found(tree, tuple(wrong), where, direct=False)


def _with(found: Found, diagnostics: list[Diagnostic]) -> Found:
    return Found(found.tree, (*diagnostics, *found.diagnostics), found.where, found.direct)


def _template(source: Source) -> list[Diagnostic]:
    """What to say of a text that cannot be read because it is a template; nothing if it is none."""
    blank = _COMMENTS.sub(lambda match: " " * len(match[0]), source.text)
    brace = _TEMPLATE.search(blank)
    if brace is None:
        return []
    kind = "Helm" if _HELM.search(blank) else "Jinja" if "{%" in blank else "Helm or Jinja"
    message = f"this is a {kind} template, which is no YAML before it is rendered"
    note = (
        "check what comes out: helm template ... | stowplan validate -" if kind == "Helm" else "render it and check what comes out"
    )
    line = source.text.find("\n", brace.start())
    span = Span(source, brace.start(), line if line >= 0 else len(source.text))
    return [Diagnostic(Code.TEMPLATE, Severity.ERROR, message, span, notes=(note,))]


def _place(number: int, path: Path) -> str:
    if not path:
        return f"document {number + 1}" if number else ""
    return show_path(path) if not any("." in str(p) for p in path) else f'{show_path(path[:-1])}["{path[-1]}"]'


def _head(tree: Table) -> Span | None:
    return tree.keys.get("kind") or tree.span


def _other(source: Source, part: _Part, text: str) -> Diagnostic:
    """Names a document that is something else; it need not even be YAML, so it is not read."""
    kind = _KIND.search(text)
    title = " ".join(part for part in (kind[1] if kind else "", _name(text)) if part) or "an object without a kind"
    start = part.start + (kind.start() if kind else len(text) - len(text.lstrip()))
    span = Span(source, start, start + (4 if kind else 1))
    message = f"document {part.number + 1} is not a scheduler configuration: {title}"
    return Diagnostic(Code.OTHER_OBJECT, Severity.INFO, message, span)


def _name(text: str) -> str:
    """The name in the metadata of an object, "" if it has none; the first line there tells how far its fields are indented."""
    metadata = _METADATA.search(text)
    if metadata is None:
        return ""
    inline = _NAME.search(text, metadata.start() + len("metadata:"), metadata.end())
    if inline is not None:
        return inline[1]
    indent = None
    for line in text[metadata.end() :].split("\n", _MOST_LINES)[1:_MOST_LINES]:
        gap = len(line) - len(line.lstrip(" \t"))
        if not line.strip():
            continue
        if not gap:
            break
        indent = indent or gap
        field = _NAME.match(line) if gap == indent else None
        if field is not None:
            return field[1]
    return ""


def _told(found: list[Found], documents: int, source: Source) -> list[Diagnostic]:
    """What kube-scheduler makes of a text that has its configuration not at the start, or more than one."""
    told = []
    for position, one in enumerate(found):
        span = (_head(one.tree) if isinstance(one.tree, Table) else None) or (one.diagnostics[0].span if one.diagnostics else None)
        if one.where.startswith(_TEXTS):
            continue  # whoever mounts it gets a file of its own
        if not one.direct:
            reason = "only the first document of a file" if documents > 1 else "the configuration alone"
            message = f"kube-scheduler reads {reason}; checked here is {one.where or 'this'}"
            told.append(Diagnostic(Code.WRAPPED, Severity.INFO, message, span or Span(source, 0, 1)))
        elif position == 0 and len(found) > 1 and documents > 1:
            message = "kube-scheduler reads only this, the first document"
            told.append(Diagnostic(Code.MORE_DOCUMENTS, Severity.WARNING, message, span))
    return told
