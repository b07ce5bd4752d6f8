"""What evaluation costs in Kubernetes' units."""

from __future__ import annotations

from stowplan.cel.tree import Bind, Call, Choice, Const, Fold, ListOf, Logic, MapOf, Message, Node, Select

MAKE: dict[type[Node], int] = {ListOf: 10, MapOf: 30, Message: 40}
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
    if isinstance(node, Call) and node.function == "_[_]":
        own = 1
    return own + sum(map(steps, node.children()))


def loop_units(fold: Fold) -> int:
    """Units of one step of a loop besides what its body costs."""
    return _LOOP.get(fold.kind, 13)


def work(fold: Fold) -> int:
    """Units of one step of a loop."""
    units = loop_units(fold) + steps(fold.body)
    return units if fold.where is None else units + steps(fold.where)
