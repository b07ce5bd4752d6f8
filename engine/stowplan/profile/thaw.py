"""A positioned tree as plain data that may be changed, and back: what was not changed keeps its places."""

from __future__ import annotations

from typing import Any, TypeAlias

from stowplan.profile.yaml_tree import Items, Leaf, Table, Tree, plain
from stowplan.text import Span

Memory: TypeAlias = dict[int, tuple[Any, Tree]]
"""The tree of each mapping and list by its identity, with the thing itself, so that no other takes that identity."""


def thaw(tree: Tree, memory: Memory) -> Any:
    """The tree as new mappings, lists and scalars."""
    if isinstance(tree, Leaf):
        return tree.value
    data: Any
    if isinstance(tree, Items):
        data = [thaw(item, memory) for item in tree.items]
    else:
        data = {name: thaw(item, memory) for name, item in tree.fields.items()}
    memory[id(data)] = data, tree
    return data


def freeze(data: Any, memory: Memory, span: Span | None) -> Tree:
    """The tree of changed data; what is new is placed at `span`, or where its surroundings were."""
    known = memory.get(id(data))
    tree = known[1] if known else None
    span = tree.span if tree else span
    if isinstance(data, list):
        items = tree.items if isinstance(tree, Items) else ()
        return Items(tuple(_child(item, memory, items[i] if i < len(items) else None, span) for i, item in enumerate(data)), span)
    if isinstance(data, dict):
        fields = tree.fields if isinstance(tree, Table) else {}
        keys = tree.keys if isinstance(tree, Table) else {}
        frozen = {name: _child(item, memory, fields.get(name), keys.get(name) or span) for name, item in data.items()}
        return Table(frozen, {name: keys.get(name) or span for name in data}, span)
    return Leaf(data, span)


def _child(data: Any, memory: Memory, before: Tree | None, span: Span | None) -> Tree:
    unchanged = isinstance(before, Leaf) and not isinstance(data, list | dict) and plain(before) == data
    return before if unchanged and before is not None else freeze(data, memory, span)
