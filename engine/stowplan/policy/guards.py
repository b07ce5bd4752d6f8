"""Reads of keys and members that may be missing, and the questions that expressions ask before they rely on a key.

A place is a path such as ("pod", "labels", "app") or ("pod", "owner"), also one that starts with a name that a macro gives.
What a condition says of places is used where the condition is known to hold: beside it in a conjunction, in the branch of a
conditional, and in what a rule does after its `when`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import TypeAlias

from stowplan.cel.check import Checked
from stowplan.cel.kinds import STRING
from stowplan.cel.tree import Call, Choice, Const, Fold, Ident, ListOf, Logic, MapOf, Node, Select, walk
from stowplan.plugins.cel_rule.presence import may_lack

Place: TypeAlias = tuple[str, ...]
Places: TypeAlias = frozenset[Place]
Variables: TypeAlias = Mapping[str, Checked]

NONE: Places = frozenset()
_STRICT = (Call, Const, Ident, ListOf, MapOf, Select)
"""nodes that have no value if one of their parts has none"""
_LAZY = ("or", "orValue")
_GIVEN = ("params", "variables")
"""roots whose members are written in the policy"""
_SHORT: Mapping[Place, str] = {("metadata", "labels"): "labels", ("metadata", "annotations"): "annotations"}


def unguarded(checked: Checked, given: Places, variables: Variables) -> Iterator[tuple[Checked, Node, Place]]:
    """The first read of each key or member that may be missing, also in the variables that the expression uses.

    `given` are places that are known to be there. Each read comes with the expression that it stands in.
    """
    told: set[Place] = set()
    seen: set[tuple[int, Places]] = set()
    todo: list[tuple[Checked, Node, Places]] = [(checked, checked.root, given)]
    while todo:
        where, node, known = todo.pop()
        place = _read(where, node)
        if place is not None and _optional(where, node, place) and _short(place) not in known | told:
            told |= _one(place)  # what leads to it is not told apart
            yield where, node, place
        variable = _variable(where, node, variables)
        if variable is not None and (id(variable), known) not in seen:
            seen.add((id(variable), known))
            todo.append((variable, variable.root, known))
        elif variable is None:
            todo += reversed([(where, part, known | more) for part, more in _parts(where, node, variables)])


def ensured(checked: Checked, variables: Variables) -> Places:
    """Places that are there whenever the expression is true: those it asks about, and those it cannot do without."""
    return _implied(checked, checked.root, True, variables) | _needed(checked, checked.root)


def _needed(checked: Checked, node: Node) -> Places:
    """Places without which the node has no value, or is not true."""
    if isinstance(node, Logic):
        found = [_needed(checked, term) for term in node.terms]
        return reduce(frozenset.intersection if node.dominant else frozenset.union, found)
    if isinstance(node, Choice):
        return _needed(checked, node.condition) | (_needed(checked, node.then) & _needed(checked, node.otherwise))
    if not all(isinstance(inner, _STRICT) and getattr(inner, "function", "") not in _LAZY for inner in walk(node)):
        return NONE
    reads = (_read(checked, inner) for inner in walk(node))
    return frozenset(_short(place) for place in reads if place is not None)


def _parts(checked: Checked, node: Node, variables: Variables) -> Iterator[tuple[Node, Places]]:
    """The direct parts of a node, with what is known where each of them is evaluated or matters."""
    if isinstance(node, Choice):
        yield node.condition, NONE
        yield node.then, _implied(checked, node.condition, True, variables)
        yield node.otherwise, _implied(checked, node.condition, False, variables)
    elif isinstance(node, Logic):
        # whatever fails beside a term that decides does not matter, so the order is of no importance
        says = [_implied(checked, term, not node.dominant, variables) for term in node.terms]
        for index, term in enumerate(node.terms):
            yield term, reduce(frozenset.union, (*says[:index], *says[index + 1 :]), NONE)
    elif isinstance(node, Fold):
        filtered = _filtered(checked, node, variables)
        yield node.source, NONE
        if node.where is not None:
            yield node.where, filtered
            filtered |= _implied(checked, node.where, True, variables)
        yield node.body, filtered
    else:
        yield from ((part, NONE) for part in node.children())


def _filtered(checked: Checked, node: Fold, variables: Variables) -> Places:
    """What a filter says of the elements that a macro walks: `pods.filter(p, has(p.owner)).map(q, q.owner.name)`."""
    source = node.source
    if not isinstance(source, Fold) or source.kind != "filter" or len(node.names) > 1 or len(source.names) > 1:
        return NONE
    known = _implied(checked, source.body, True, variables) | _filtered(checked, source, variables)
    return frozenset((node.names[0], *place[1:]) for place in known if place[0] == source.names[0])


def _implied(checked: Checked, node: Node, truth: bool, variables: Variables) -> Places:
    """Places that are there if the condition is true, or (`truth` false) if it is false."""
    if isinstance(node, Logic):
        found = [_implied(checked, term, truth, variables) for term in node.terms]
        return reduce(frozenset.intersection if node.dominant == truth else frozenset.union, found)
    if isinstance(node, Select):
        variable = _variable(checked, node, variables)
        if variable is not None:
            return _implied(variable, variable.root, truth, {})  # one step: chains may branch
        return _one(_path(checked, node) if node.test and truth else None)
    return _of_call(checked, node, truth, variables) if isinstance(node, Call) else NONE


def _of_call(checked: Checked, node: Call, truth: bool, variables: Variables) -> Places:
    """The same for `!x`, `==`, `!=`, `in` and `hasValue()`."""
    if node.function == "!_":
        return _implied(checked, node.args[0], not truth, variables)
    if node.function in ("_==_", "_!=_"):
        return _compared(checked, node, truth == (node.function == "_==_"), variables)
    if node.function == "@in" and truth:
        return _one(_member(checked, node)) | _chosen(checked, node, variables)
    return _one(_looked_up(checked, node.target) if node.function == "hasValue" and truth and node.target is not None else None)


def _compared(checked: Checked, node: Call, equal: bool, variables: Variables) -> Places:
    """`x.orValue("") != ""` and `x.orValue("") == "a"` both need x."""
    for side, other in (node.args, node.args[::-1]):
        place, default = _defaulted(checked, side, variables)
        if place is not None and isinstance(other, Const) and (other.value == default) != equal:
            return frozenset((place,))
    return NONE


def _chosen(checked: Checked, node: Call, variables: Variables) -> Places:
    """`x.orValue("") in ["a", "b"]`."""
    place, default = _defaulted(checked, node.args[0], variables)
    listed = node.args[1]
    if place is None or not isinstance(listed, ListOf) or not all(isinstance(item, Const) for item in listed.items):
        return NONE
    return NONE if any(isinstance(item, Const) and item.value == default for item in listed.items) else frozenset((place,))


def _defaulted(checked: Checked, node: Node, variables: Variables) -> tuple[Place | None, object]:
    """The place and the default of `place[?key].orValue(default)`, perhaps behind a variable."""
    variable = _variable(checked, node, variables)
    if variable is not None:
        return _defaulted(variable, variable.root, {})
    if isinstance(node, Call) and node.function == "orValue" and node.target is not None and isinstance(node.args[0], Const):
        place = _looked_up(checked, node.target)
        return None if place is None else _short(place), node.args[0].value
    return None, None


def _variable(checked: Checked, node: Node, variables: Variables) -> Checked | None:
    path = _path(checked, node) if isinstance(node, Select) and not node.test else None
    return variables.get(path[1]) if path is not None and len(path) == 2 and path[0] == "variables" else None


def _looked_up(checked: Checked, node: Node) -> Place | None:
    """The place of `map[?key]` and `map.?key`."""
    asks = (isinstance(node, Select) and node.optional) or (isinstance(node, Call) and node.function == "_[?_]")
    return _path(checked, node) if asks else None


def _member(checked: Checked, node: Call) -> Place | None:
    """The place of `key in map`."""
    base = _path(checked, node.args[1])
    return (*base, str(node.args[0].value)) if base is not None and isinstance(node.args[0], Const) else None


def _read(checked: Checked, node: Node) -> Place | None:
    """The place of a plain access to a member of a map or of an object that may lack it."""
    if isinstance(node, Select) and not (node.test or node.optional):
        kind = checked.types.get(node.operand)  # none in a qualified name
        return _path(checked, node) if kind is not None and (kind.name == "map" or may_lack(kind, node.field)) else None
    if isinstance(node, Call) and node.function == "_[_]" and checked.types[node.args[0]].name == "map":
        return _path(checked, node)
    return None


def _path(checked: Checked, node: Node) -> Place | None:
    if node in checked.variables:
        return (checked.variables[node],)
    if isinstance(node, Ident):
        return (node.name,)
    if isinstance(node, Select):
        base, key = _path(checked, node.operand), node.field
    elif isinstance(node, Call) and node.function in ("_[_]", "_[?_]") and len(node.args) == 2 and isinstance(node.args[1], Const):
        base, key = _path(checked, node.args[0]), str(node.args[1].value)
    elif isinstance(node, Call) and node.function == "domain" and node.target is not None and isinstance(node.args[0], Const):
        base, key = _path(checked, node.target), f'domain("{node.args[0].value}")'
    else:
        return None
    return None if base is None else (*base, key)


def _optional(checked: Checked, node: Node, place: Place) -> bool:
    """Whether what is read may be missing: members that `_read` finds, and keys of maps of texts; a missing amount is 0."""
    if place[0] in _GIVEN or place == ("node", "metadata", "labels"):
        return False
    kind = checked.types[node.operand if isinstance(node, Select) else node.children()[0]]
    return kind.name != "map" or (len(place) > 2 and kind.params[1] == STRING)


def _short(place: Place) -> Place:
    """`pod.metadata.labels.x` is `pod.labels.x`."""
    short = _SHORT.get(place[1:3])
    return (place[0], short, *place[3:]) if short else place


def _one(place: Place | None) -> Places:
    """The place and all that lead to it."""
    return NONE if place is None else frozenset(_short(place[:size]) for size in range(2, len(place) + 1))
