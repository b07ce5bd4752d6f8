"""The syntax tree: one kind of node a construct, macros included as what they mean rather than as loops.

Nodes are compared by identity; what later steps find out about them (types, references) hangs off the nodes in dicts,
so the tree itself never changes. `start` and `end` are character offsets in the expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, eq=False)
class Node:
    """A stretch of the expression."""

    start: int
    end: int

    def children(self) -> tuple[Node, ...]:
        """The direct parts, in the order they are written."""
        return ()


@dataclass(slots=True, eq=False)
class Const(Node):
    """A literal."""

    value: Any


@dataclass(slots=True, eq=False)
class Ident(Node):
    """A name; `absolute` when written with a leading dot."""

    name: str
    absolute: bool = False


@dataclass(slots=True, eq=False)
class Select(Node):
    """`operand.field`, `operand.?field` (optional) or `has(operand.field)` (test)."""

    operand: Node
    field: str
    optional: bool = False
    test: bool = False

    def children(self) -> tuple[Node, ...]:
        return (self.operand,)


@dataclass(slots=True, eq=False)
class Call(Node):
    """`function(args)`, `target.function(args)`, or an operator under its CEL name (`_+_`)."""

    function: str
    target: Node | None
    args: tuple[Node, ...]
    at: int = -1  # where messages about the call point: the operator, or the parenthesis

    def children(self) -> tuple[Node, ...]:
        return self.args if self.target is None else (self.target, *self.args)


@dataclass(slots=True, eq=False)
class Logic(Node):
    """A chain of `&&` (`dominant` false) or `||` (true): any dominant term decides, whatever fails beside it."""

    terms: tuple[Node, ...]
    dominant: bool

    def children(self) -> tuple[Node, ...]:
        return self.terms


@dataclass(slots=True, eq=False)
class Choice(Node):
    """`condition ? then : otherwise`."""

    condition: Node
    then: Node
    otherwise: Node

    def children(self) -> tuple[Node, ...]:
        return (self.condition, self.then, self.otherwise)


@dataclass(slots=True, eq=False)
class ListOf(Node):
    """`[a, ?b]`; `optional` holds the indices written with a question mark."""

    items: tuple[Node, ...]
    optional: frozenset[int]

    def children(self) -> tuple[Node, ...]:
        return self.items


@dataclass(slots=True, eq=False)
class MapOf(Node):
    """`{k: v, ?k: v}`."""

    entries: tuple[tuple[Node, Node], ...]
    optional: frozenset[int]

    def children(self) -> tuple[Node, ...]:
        return tuple(part for entry in self.entries for part in entry)


@dataclass(slots=True, eq=False)
class Message(Node):
    """`Name{field: value}`."""

    name: str
    entries: tuple[tuple[str, Node], ...]

    def children(self) -> tuple[Node, ...]:
        return tuple(value for _, value in self.entries)


@dataclass(slots=True, eq=False)
class Fold(Node):
    """A macro that walks a list or map: `kind` is all, exists, exists_one, filter, map, transformList, transformMap,
    transformMapEntry or sortBy; one name (the element or key) or two (index or key, and value).
    """

    kind: str
    source: Node
    names: tuple[str, ...]
    where: Node | None
    body: Node

    def children(self) -> tuple[Node, ...]:
        return (self.source, self.body) if self.where is None else (self.source, self.where, self.body)


@dataclass(slots=True, eq=False)
class Bind(Node):
    """`cel.bind(name, value, body)`."""

    name: str
    value: Node
    body: Node

    def children(self) -> tuple[Node, ...]:
        return (self.value, self.body)


@dataclass(slots=True, eq=False)
class OptMap(Node):
    """`source.optMap(name, body)`, or optFlatMap (`flat`)."""

    source: Node
    name: str
    body: Node
    flat: bool

    def children(self) -> tuple[Node, ...]:
        return (self.source, self.body)


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, parents first."""
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(reversed(node.children()))


def qualified(node: Node) -> str | None:
    """`a.b.c` of a chain of plain selections on a name (with its leading dot), else None."""
    parts: list[str] = []
    while isinstance(node, Select):
        if node.optional or node.test:
            return None
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    return "." * node.absolute + ".".join([node.name, *reversed(parts)])
