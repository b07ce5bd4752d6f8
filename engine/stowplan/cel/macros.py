"""Calls that are not calls: `has`, the comprehensions, `optMap`, `cel.bind`, `sortBy`, `math.greatest`.

A call whose name and number of arguments fit is turned into the node that says what it means. Which macros an
environment knows is decided by the checker, as only it knows the environment.
"""

from __future__ import annotations

from stowplan.cel.limits import RefusedError
from stowplan.cel.tree import Bind, Call, Fold, Ident, ListOf, Node, OptMap, Select

_ONE = {"all": (2, 2), "exists": (2, 2), "exists_one": (2, 2), "filter": (2, 2), "map": (2, 3), "sortBy": (2, 2)}
_TWO = {
    "all": (3, 3),
    "exists": (3, 3),
    "exists_one": (3, 3),
    "existsOne": (3, 3),
    "transformList": (3, 4),
    "transformMap": (3, 4),
    "transformMapEntry": (3, 4),
}


def expand(call: Call) -> Node:
    """The node the call stands for: itself if it is no macro; RefusedError for a macro used wrongly."""
    if call.target is None:
        return _has(call) if call.function == "has" and len(call.args) == 1 else call
    if isinstance(call.target, Ident) and call.target.name in ("cel", "math") and not call.target.absolute:
        return _namespaced(call, call.target.name)
    if call.function in ("optMap", "optFlatMap") and len(call.args) == 2:
        (name,) = _names(call, 1)
        return OptMap(call.start, call.end, call.target, name, call.args[1], call.function == "optFlatMap")
    return _fold(call, call.target)


def _fold(call: Call, target: Node) -> Node:
    count = len(call.args)
    least, most = _ONE.get(call.function, (9, 0))
    if least <= count <= most:
        names = _names(call, 1)
    else:
        least, most = _TWO.get(call.function, (9, 0))
        if not least <= count <= most:
            return call
        names = _names(call, 2)
    parts = call.args[len(names) :]
    where = parts[0] if len(parts) == 2 else None
    kind = "exists_one" if call.function == "existsOne" else call.function
    return Fold(call.start, call.end, kind, target, names, where, parts[-1])


def _names(call: Call, count: int) -> tuple[str, ...]:
    names: list[str] = []
    for arg in call.args[:count]:
        if not isinstance(arg, Ident) or arg.absolute:
            raise RefusedError("argument must be a simple name", arg.start, arg.end)
        if arg.name in names:
            raise RefusedError(f"'{arg.name}' names both the key and the value", arg.start, arg.end)
        names.append(arg.name)
    return tuple(names)


def _has(call: Call) -> Node:
    (arg,) = call.args
    if not isinstance(arg, Select) or arg.optional or arg.test:
        if isinstance(arg, Select) and arg.optional:
            raise RefusedError("has() takes a plain selection: write has(a.b) without the question mark", arg.start, arg.end)
        raise RefusedError("invalid argument to has() macro: it takes a selection such as has(a.b)", arg.start, arg.end)
    return Select(call.start, call.end, arg.operand, arg.field, test=True)


def _namespaced(call: Call, namespace: str) -> Node:
    if namespace == "cel":
        if call.function == "bind" and len(call.args) == 3:
            (name,) = _names(call, 1)
            return Bind(call.start, call.end, name, call.args[1], call.args[2])
        return call
    if call.function in ("greatest", "least"):
        if not call.args:
            raise RefusedError(f"math.{call.function}() requires at least one argument", call.start, call.end)
        if len(call.args) > 2:  # more than two are compared as a list
            items = ListOf(call.args[0].start, call.args[-1].end, call.args, frozenset())
            return Call(call.start, call.end, call.function, call.target, (items,), call.at)
    return call
