"""Everything the checker has to say, one method a message: what was found, what was wanted, and the way out."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from stowplan.cel.kinds import Struct, Type, is_dyn
from stowplan.cel.limits import Refusal
from stowplan.cel.overloads import Function
from stowplan.cel.tree import Call, Choice, Fold, ListOf, Logic, MapOf, Message, Node, Select, walk

if TYPE_CHECKING:
    from stowplan.cel.check import Checked
    from stowplan.cel.environment import Environment

_SORTABLE = frozenset(("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"))


def suggestion(name: str, known: Iterable[str]) -> str:
    """`, did you mean "x"?` for the closest known name, else nothing."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f', did you mean "{close[0]}"?' if close else ""


def shown(kind: Type) -> str:
    """A type as messages write it."""
    return "null" if kind.name == "null_type" else str(kind)


class Faults:
    """Writes refusals into the list it was given."""

    def __init__(self, refusals: list[Refusal], env: Environment) -> None:
        self.refusals = refusals
        self.env = env

    def add(self, start: int, end: int, message: str, *, field: bool = False, note: str = "") -> None:
        self.refusals.append(Refusal(message, start, max(end, start + 1), field, note))

    def mismatch(self, node: Node, wanted: Type, found: Type) -> None:
        self.add(node.start, node.end, f"expected type '{shown(wanted)}' but found '{shown(found)}'")

    def undeclared(self, node: Node, name: str, scopes: Sequence[dict[str, Type]]) -> None:
        known = [*self.env.variables, *(local for scope in scopes for local in scope)]
        hint = suggestion(name, known)
        note = "" if hint or not known else f"known here: {', '.join(sorted(known)[:12])}"
        where = f" (in container '{self.env.container}')" if self.env.container else ""
        self.add(node.start, node.end, f"undeclared reference to '{name}'{where}{hint}", field=True, note=note)

    def no_field(self, node: Select, operand: Struct) -> None:
        hint = suggestion(node.field, operand.fields)
        note = "" if hint else f"fields: {', '.join(sorted(operand.fields)[:20])}"
        start = node.end - len(node.field) - (1 if node.test else 0)
        self.add(start, start + len(node.field), f"undefined field '{node.field}' in {operand.name}{hint}", field=True, note=note)

    def no_message_field(self, node: Message, name: str, field: str) -> None:
        self.add(node.start, node.end, f"undefined field '{field}' in {name}", field=True)

    def no_selection(self, node: Select, operand: Type) -> None:
        self.add(node.operand.end, node.end, f"type '{shown(operand)}' does not support field selection")

    def no_function(self, node: Call, types: list[Type], other: Function | None, now: Callable[[Type], Type]) -> None:
        if other is not None:
            self.no_overload(node, other, [now(kind) for kind in types], node.target is not None)
            return
        member = node.target is not None
        names = [
            name for name, is_member in self.env.functions if is_member == member and not name.startswith(("_", "@", "!", "-"))
        ]
        self.add(node.at, node.at + 1, f"undeclared reference to '{node.function}'{suggestion(node.function, names)}", field=True)

    def no_overload(self, node: Call, function: Function, types: list[Type], member: bool) -> None:
        written = [shown(kind) for kind in types]
        applied = f"{written[0]}.({', '.join(written[1:])})" if member else f"({', '.join(written)})"
        message = f"found no matching overload for '{function.name}' applied to '{applied}'"
        signatures = [overload.signature for overload in function.overloads][:6]
        self.add(node.at, node.at + 1, message, note=self._remedy(function.name, types) or f"it takes: {'; '.join(signatures)}")

    @staticmethod
    def _remedy(name: str, types: list[Type]) -> str:
        names = {kind.name for kind in types}
        if name in ("_+_", "_-_", "_*_", "_/_", "_==_", "_!=_") and names <= {"int", "double", "uint"} and len(names) > 1:
            return "numbers of different types do not mix: write 2.0 instead of 2, or convert with double(), int() or uint()"
        if "string" in names and len(names) > 1 and name == "_+_":
            return "only strings can be joined: convert with string()"
        return ""

    def no_logic(self, node: Logic, term: Node, found: Type) -> None:
        name = "_||_" if node.dominant else "_&&_"
        self.add(term.start, term.end, f"found no matching overload for '{name}' applied to '{shown(found)}': it takes bool")

    def branches(self, node: Choice, then: Type, otherwise: Type) -> None:
        applied = f"(bool, {shown(then)}, {shown(otherwise)})"
        message = f"found no matching overload for '_?_:_' applied to '{applied}'"
        self.add(node.start, node.end, message, note="both branches must have the same type")

    def no_range(self, node: Node, found: Type) -> None:
        message = f"expression of type '{shown(found)}' cannot be range of a comprehension (must be list, map, or dynamic)"
        self.add(node.start, node.end, message)

    def sorting(self, node: Fold, source: Type, key: Type) -> None:
        if source.name != "list" and not is_dyn(source):
            self.add(node.source.start, node.source.end, f"sortBy can only be applied to a list, found '{shown(source)}'")
        if key.name not in _SORTABLE and not is_dyn(key) and not key.is_param:
            self.add(node.body.start, node.body.end, f"sortBy takes a key that can be ordered, found '{shown(key)}'")


def mixed_literals(checked: Checked) -> None:
    """Kubernetes' rule that the elements of a literal have one type (the arguments of format() may mix)."""
    exempt: set[Node] = set()
    for node in walk(checked.root):
        if isinstance(node, Call) and node.function == "format" and node.target is not None:
            exempt.update(part for arg in node.args for part in walk(arg))
        elif isinstance(node, Call) and node.function in ("greatest", "least"):
            exempt.update(node.args)  # a list that nobody wrote
    for node in walk(checked.root):
        if node in exempt:
            continue
        if isinstance(node, ListOf):
            _one_type(checked, [(item, index in node.optional) for index, item in enumerate(node.items)])
        elif isinstance(node, MapOf):
            _one_type(checked, [(key, False) for key, _ in node.entries])
            _one_type(checked, [(value, index in node.optional) for index, (_, value) in enumerate(node.entries)])


def _one_type(checked: Checked, items: list[tuple[Node, bool]]) -> None:
    first: Type | None = None
    for node, optional in items:
        kind = checked.types[node]
        if optional and kind.name == "optional_type":
            kind = kind.params[0]
        if first is None:
            first = kind
        elif kind != first:
            message = f"expected type '{shown(first)}' but found '{shown(kind)}'"
            checked.refusals.append(Refusal(message, node.start, node.end, note="a literal holds values of one type"))
            return
