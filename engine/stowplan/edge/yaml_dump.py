"""The objects in one YAML document of a dump.

The items of a list as kubectl prints it are parsed one by one, cut at the dashes of the list's indentation (nothing in an item
stands that far left): a large dump would not fit into memory as one tree. Values are read as Kubernetes reads them: no
dates, no base-60 numbers.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from stowplan.edge.place import BrokenTextError, Place, Sink, Text
from stowplan.text import Span

_ITEMS = re.compile(rb"^items:[ \t]*\r?\n([ ]*)(?=- )", re.MULTILINE)
_NEXT_KEY = re.compile(rb"\n(?=[^\s#\-])")
_ANCHOR = re.compile(rb"[:-] +&[A-Za-z0-9]")  # another item may refer to it; kubectl prints none
_MERGE = "tag:yaml.org,2002:merge"
_MAP, _SEQUENCE, _TEXT = "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:str"
_MOST_TAGS = 10_000
_NOT_OF_KUBERNETES = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value")


def read_yaml(text: Text, start: int, end: int, sink: Sink) -> None:
    """Hand the object or the items of the list between `start` and `end` to `sink`. Raises BrokenTextError."""
    items = _ITEMS.search(text.data, start, end)
    if items is None or _ANCHOR.search(text.data, start, end):
        _whole(text, start, end, sink)
        return
    following = _NEXT_KEY.search(text.data, items.end(), end)
    stop = following.start() + 1 if following else end
    head = text.data[start : items.start()] + b"\n" + text.data[stop:end]
    if not _is_list(_load_or_none(head)):
        _whole(text, start, end, sink)
        return
    _items(text, items.start(1), stop, items[1], sink)


def _items(text: Text, at: int, stop: int, indentation: bytes, sink: Sink) -> None:
    dash = b"\n" + indentation + b"- "
    while at < stop:
        cut = text.data.find(dash, at, stop)
        end = cut + 1 if cut >= 0 else stop
        for index, item in enumerate(_load(text, at, end)):
            sink(item, Place(text, at, end, f"[{index}]"))
        at = end


def _whole(text: Text, start: int, end: int, sink: Sink) -> None:
    found = _load(text, start, end)
    if isinstance(found, list):
        for index, item in enumerate(found):
            sink(item, Place(text, start, end, f"[{index}]"))
    elif _is_list(found):
        for index, item in enumerate(found.get("items") or ()):
            kindless = isinstance(item, dict) and "kind" not in item and found["kind"] != "List"
            named = {"kind": found["kind"].removesuffix("List"), **item} if kindless else item
            sink(named, Place(text, start, end, f"items[{index}]"))
    elif found is not None:
        sink(found, Place(text, start, end))


def _is_list(found: Any) -> bool:
    return isinstance(found, dict) and isinstance(found.get("kind"), str) and found["kind"].endswith("List")


def _load_or_none(data: bytes) -> Any:
    import yaml

    try:
        return yaml.load(data, Loader=_loader())  # noqa: S506 - a safe loader with fewer types
    except (yaml.YAMLError, ValueError):
        return None


def _load(text: Text, start: int, end: int) -> Any:
    import yaml

    try:
        return yaml.load(text.data[start:end], Loader=_loader())  # noqa: S506 - as above
    except yaml.MarkedYAMLError as error:
        excerpt = text.excerpt(start, end)
        mark = error.problem_mark or error.context_mark
        at = min(mark.index, max(0, len(excerpt.text) - 1)) if mark else 0
        raise BrokenTextError(f"broken YAML: {error.problem or error.context}", Span(excerpt, at, at + 1)) from None
    except yaml.reader.ReaderError as error:
        at = error.position if isinstance(error.position, int) else 0
        raise BrokenTextError(f"broken YAML: {error.reason}", text.point(start + at)) from None
    except RecursionError:
        raise BrokenTextError("broken YAML: nested too deeply", text.point(start)) from None
    except ValueError as error:
        raise BrokenTextError(f"broken YAML: {error}", text.point(start)) from None


@cache
def _loader() -> Any:
    """PyYAML's safe loader, in C where there is one, without the types of YAML 1.1 that Kubernetes does not know.

    It remembers what a plain scalar is and builds the common nodes itself, which makes it twice as fast.
    """
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    resolvers = {
        first: [(tag, _without_base_60(tag, pattern)) for tag, pattern in pairs if tag not in _NOT_OF_KUBERNETES]
        for first, pairs in base.yaml_implicit_resolvers.items()
    }

    class KubernetesLoader(base):  # type: ignore[misc]
        yaml_implicit_resolvers = resolvers

        def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
            if kind is yaml.MappingNode:
                return _MAP
            if kind is yaml.SequenceNode:
                return _SEQUENCE
            if not implicit[0]:
                return _TEXT
            return _remembered(value) or _remember(value, super().resolve(kind, value, implicit))

        def construct_document(self, node: Any) -> Any:
            return _Builder(self).build(node)

    return KubernetesLoader


_TAGS: dict[str, str] = {}
_remembered = _TAGS.get


def _remember(value: str, tag: str) -> str:
    if len(_TAGS) < _MOST_TAGS:
        _TAGS[value] = tag
    return tag


class _Builder:
    """Values of one tree of nodes; what is not plain is left to the loader."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.built: dict[int, Any] = {}
        """collections by node: an alias is the same node again"""

    def build(self, node: Any) -> Any:
        if node.tag == _TEXT:
            return node.value
        if node.tag not in (_MAP, _SEQUENCE):
            return self.loader.construct_object(node, deep=True)
        found = self.built.get(id(node))
        if found is None:
            found = self.built[id(node)] = self._sequence(node) if node.tag == _SEQUENCE else self._map(node)
        return found

    def _sequence(self, node: Any) -> list[Any]:
        return [self.build(item) for item in node.value]

    def _map(self, node: Any) -> Any:
        found = {}
        for key, value in node.value:
            if key.tag == _MERGE or not isinstance(key.value, str):
                return self.loader.construct_object(node, deep=True)
            found[key.value] = self.build(value)
        return found


def _without_base_60(tag: str, pattern: re.Pattern[str]) -> re.Pattern[str]:
    if tag.endswith((":int", ":float")):
        return re.compile(rf"(?!.*:)(?:{pattern.pattern})", re.VERBOSE)
    return pattern
