"""How far apart the scores of a rule can be, as far as its expression says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from stowplan.cel.tree import Call, Choice, Const, Node
from stowplan.plugins.cel_rule import expressions_of
from stowplan.plugins.plugin import Plugin

Range: TypeAlias = tuple[float, float]


def spread_of(plugin: Plugin) -> float | None:
    """The difference between the highest and the lowest score that a rule can give; None if the expression does not tell."""
    expressions = expressions_of(plugin)
    found = None if expressions is None else _range(expressions.value.checked.root)
    return None if found is None else found[1] - found[0]


def _range(node: Node) -> Range | None:
    """Lowest and highest value of a number made of constants and conditions."""
    if isinstance(node, Const):
        number = isinstance(node.value, int | float) and not isinstance(node.value, bool)
        return (float(node.value), float(node.value)) if number else None
    parts: tuple[Node, ...]
    if isinstance(node, Choice):
        parts, combine = (node.then, node.otherwise), _either
    elif isinstance(node, Call) and node.target is None and node.function in _CALLS:
        parts, combine = node.args, _CALLS[node.function]
    else:
        return None
    ranges = [_range(part) for part in parts]
    known = [part for part in ranges if part is not None]
    return combine(*known) if len(known) == len(ranges) else None


def _either(a: Range, b: Range) -> Range:
    return min(a[0], b[0]), max(a[1], b[1])


def _product(a: Range, b: Range) -> Range:
    products = [x * y for x in a for y in b]
    return min(products), max(products)


_CALLS: Mapping[str, Callable[..., Range]] = {
    "double": lambda a: a,
    "int": lambda a: a,
    "-_": lambda a: (-a[1], -a[0]),
    "_+_": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "_-_": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "_*_": _product,
}
