"""The objects in one YAML document of a dump.

The items of a list as kubectl prints it are parsed one by one, cut at the dashes of the list's indentation (nothing in an item
stands that far left): a large dump would not fit into memory as one tree. Values are read as Kubernetes reads them: no
dates, no base-60 numbers.
"""

from __future__ import annotations

import re
from functools import cache
from math import isfinite
from typing import Any

from stowplan.edge.place import BrokenTextError, Place, Sink, Text
from stowplan.text import Span

_ITEMS = re.compile(rb"^items:[ \t]*\r?\n([ ]*)(?=- )", re.MULTILINE)
_NEXT_KEY = re.compile(rb"\n(?=[^\s#\-])")
_ANCHOR = re.compile(rb"[:-] +&[A-Za-z0-9]")  # another item may refer to it; kubectl prints none
_MERGE = "tag:yaml.org,2002:merge"
_MAP, _SEQUENCE, _TEXT = "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:str"
_SCALARS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "binary"))
_MOST_TAGS = 10_000
_MOST_EXPANDED, _MOST_TIMES = 10_000_000, 10
"""characters that aliases may stand for, whatever the size of a text, and how often the text itself"""
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
        return _value(data)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None


def _load(text: Text, start: int, end: int) -> Any:
    import yaml

    try:
        return _value(text.data[start:end])
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


def _value(data: bytes) -> Any:
    """The value of the only document. Raises YAMLError."""
    loader = _loader()(data)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if b"&" in data and b"*" in data:
            _Expansion(_MOST_EXPANDED + _MOST_TIMES * len(data)).size(node)
        return _Builder(loader).build(node)
    finally:
        loader.dispose()


@cache
def _loader() -> Any:
    """PyYAML's safe loader, in C where there is one, without the types of YAML 1.1 that Kubernetes does not know.

    It remembers what a plain scalar is, which makes it faster.
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

    return KubernetesLoader


_TAGS: dict[str, str] = {}
_remembered = _TAGS.get


def _remember(value: str, tag: str) -> str:
    if len(_TAGS) < _MOST_TAGS:
        _TAGS[value] = tag
    return tag


class _Expansion:
    """Characters of a tree of nodes with every alias written out, as it is once an object becomes JSON."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.sizes: dict[int, int | None] = {}
        """by node; None while it is being counted"""

    def size(self, node: Any) -> int:
        """Raises YAMLError at the innermost node that is too large or holds itself."""
        if isinstance(node.value, str):
            return len(node.value) + 1
        key = id(node)
        if key in self.sizes:
            found = self.sizes[key]
            if found is None:
                raise _broken(node, "this holds itself: an alias in it refers to it")
            return found
        self.sizes[key] = None
        total = 1
        for item in node.value:
            total += self.size(item[0]) + self.size(item[1]) if isinstance(item, tuple) else self.size(item)
        if total > self.most:
            raise _broken(node, f"with its aliases written out this has more than {self.most} characters")
        self.sizes[key] = total
        return total


class _Builder:
    """Values of one tree of nodes; only those that JSON has, as Kubernetes reads YAML as JSON."""

    def __init__(self, loader: Any) -> None:
        import yaml

        self.loader = loader
        self.built: dict[int, Any] = {}
        """collections by node: an alias is the same node again"""
        self._scalar_node, self._map_node = yaml.ScalarNode, yaml.MappingNode

    def build(self, node: Any) -> Any:
        """Raises YAMLError at the innermost node that has no value."""
        kind = type(node)
        if kind is self._scalar_node:
            return node.value if node.tag == _TEXT else self._scalar(node)
        found = self.built.get(id(node))
        if found is None:
            is_map = kind is self._map_node
            if node.tag != (_MAP if is_map else _SEQUENCE):
                raise _broken(node, f"a {'mapping' if is_map else 'list'} cannot have the tag {_short(node.tag)}")
            found = self.built[id(node)] = self._map(node) if is_map else [self.build(item) for item in node.value]
        return found

    def _map(self, node: Any) -> Any:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key.value, str):
                raise _broken(key, "a key must be a scalar")
            if key.tag == _MERGE:
                self._merge(merged, value)
            else:
                found[key.value] = self.build(value)
        return merged | found if merged else found

    def _merge(self, merged: dict[str, Any], node: Any) -> None:
        """The first mapping of a list wins, as with every reader of YAML 1.1."""
        value = self.build(node)
        for mapping in reversed(value) if isinstance(value, list) else (value,):
            if not isinstance(mapping, dict):
                raise _broken(node, "<< takes a mapping or a list of mappings")
            merged.update(mapping)

    def _scalar(self, node: Any) -> Any:
        if node.tag == _MERGE:
            return node.value
        if node.tag not in _SCALARS:
            raise _broken(node, f"Kubernetes has no values with the tag {_short(node.tag)}")
        try:
            value = self.loader.construct_object(node)
            if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
                value = float(value)  # as Go's reader does
        except Exception as error:  # PyYAML takes the text to be what its tag says and lets everything through
            shown = f"{node.value:.40}"
            raise _broken(node, f'"{shown}" cannot be read as {_short(node.tag)}') from error
        if isinstance(value, float) and not isfinite(value):
            raise _broken(node, f"{node.value:.40} is not a number that JSON has")
        return value


def _short(tag: str) -> str:
    return tag.replace("tag:yaml.org,2002:", "!!", 1)


def _broken(node: Any, message: str) -> Exception:
    import yaml

    return yaml.MarkedYAMLError(problem=message, problem_mark=node.start_mark)


def _without_base_60(tag: str, pattern: re.Pattern[str]) -> re.Pattern[str]:
    if tag.endswith((":int", ":float")):
        return re.compile(rf"(?!.*:)(?:{pattern.pattern})", re.VERBOSE)
    return pattern
