"""What evaluation costs in Kubernetes' units."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from stowplan.cel import limits
from stowplan.cel.tree import Bind, Call, Choice, Const, Fold, ListOf, Logic, MapOf, Message, Node, OptMap, Select
from stowplan.cel.values import check_parts

PATTERN, PATTERN_CHARACTER, PATTERN_MOST = 500, 20, 100_000
"""Units of compiling a regular expression that is no literal, more for each of its characters, and where memory ends it."""
_REPEATED = re.compile(r"\{\d{0,9},?(\d{0,9})|\\[pP]", re.ASCII)
SEARCH = 40
"""Units of looking for a pattern in a text, besides those for its length."""
CHARACTERS = 10
"""Characters that cost a unit to walk."""
NESTED = 16
"""Units of a part of a nested value."""
_PLAIN = frozenset((str, bytes, int, float, bool, type(None)))
MAKE: dict[type[Node], int] = {ListOf: 10, MapOf: 30, Message: 40, OptMap: 35}
_DEAR = {
    **dict.fromkeys(("url", "isURL"), 220),
    **dict.fromkeys(("quantity", "isQuantity", "ip", "isIP", "isCanonical", "cidr", "isCIDR", "containsIP", "containsCIDR"), 45),
    **dict.fromkeys(("semver", "isSemver", "duration", "find", "findAll", "format"), 35),
    **dict.fromkeys(("add", "sub"), 20),
    "isSorted": 40,
    "validate": 15,
    **dict.fromkeys(("string", "replace", "quote", "encode", "decode", "timestamp"), 8),
}
"""Units of functions that take longer than others, however short their arguments."""
_IN_ZONE = 35
"""Of `getHours(zone)` and the like."""
_LOOP = {"all": 3, "exists": 4, "exists_one": 4, "filter": 13, "map": 13, "transformList": 13}


def steps(node: Node) -> int:
    """Units of one evaluation of the node outside of loops: the dearer branch, each operation once."""
    if isinstance(node, Const):
        return 0
    if isinstance(node, Choice):
        return steps(node.condition) + max(steps(node.then), steps(node.otherwise))
    if isinstance(node, Fold):
        return steps(node.source) + 1
    own = MAKE.get(type(node), 1)
    if isinstance(node, (Logic, Bind)) or (isinstance(node, Select) and node.test):
        own = 0
    if isinstance(node, Call) and not all(isinstance(child, Const) for child in node.children()):  # else it is done already
        own += dear(node.function, len(node.args))
    return own + sum(map(steps, node.children()))


def dear(function: str, args: int) -> int:
    """Units of a call besides the usual one: functions that parse texts, or look into the history of a time zone."""
    if args and function.startswith("get"):
        return _IN_ZONE
    return _DEAR.get(function.rpartition(".")[2], 0)


def loop_units(fold: Fold) -> int:
    """Units of one step of a loop besides what its body costs."""
    return _LOOP.get(fold.kind, 13)


def work(fold: Fold) -> int:
    """Units of one step of a loop."""
    units = loop_units(fold) + steps(fold.body)
    return units if fold.where is None else units + steps(fold.where)


def size_cost(values: Sequence[Any], power: int) -> int:
    """What walking the values costs; with power 2, looking at every pair of their parts."""
    units = 1
    for value in values:
        cls = type(value)
        if cls is str or cls is bytes:
            units += len(value) // CHARACTERS
        elif cls not in _PLAIN:
            units += parts_cost(value)
    return units if power == 1 else units + units * units // 4


def parts_cost(value: Any) -> int:
    """A unit for every element of a plain list and ten characters of it, more for the list and every part of what is nested."""
    if type(value) is list:
        kinds = set(map(type, value))
        if _PLAIN.issuperset(kinds):
            texts = sum(map(len, value)) if kinds == {str} else sum(len(item) for item in value if type(item) is str)
            return NESTED + len(value) + texts // CHARACTERS
    return NESTED * check_parts(value, limits.LIST)


def made_cost(value: Any) -> int:
    """Units of a value that was just made: its characters or elements, whatever those hold."""
    cls = type(value)
    if cls is str or cls is bytes:
        return 1 + len(value) // CHARACTERS
    return NESTED + len(value) if cls in (list, tuple, dict) else 1


def pattern_cost(pattern: str) -> int:
    """Units of compiling a pattern: repetitions and Unicode classes are written short and compiled long."""
    if len(pattern) > limits.PATTERN:
        return PATTERN
    units = PATTERN + PATTERN_CHARACTER * len(pattern)
    for found in _REPEATED.finditer(pattern):
        units = min(PATTERN_MOST, units * (10 if found[0][0] == "\\" else max(1, int(found[1] or found[0].strip("{,") or 1))))
    return units
