"""A checked tree into the function that evaluates it for one row.

Every node becomes a closure over a frame: a list with the meter, the variables and the locals of macros. Names and
overloads are resolved here, constants computed, so that running decides nothing but values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from stowplan.cel import folds, limits
from stowplan.cel.access import field_of, get_item, has_field, item_of
from stowplan.cel.calls import PATTERNS, apply, lazily, narrowed, present
from stowplan.cel.check import Checked
from stowplan.cel.cost import steps, work
from stowplan.cel.environment import Environment
from stowplan.cel.errors import CelError, no_overload
from stowplan.cel.folds import Frame, Step
from stowplan.cel.library.optional import look, look_field
from stowplan.cel.library.regex import compile_pattern
from stowplan.cel.limits import Refusal
from stowplan.cel.literals import failing, sampled
from stowplan.cel.messages import build
from stowplan.cel.overloads import Function
from stowplan.cel.tree import (
    Bind,
    Call,
    Choice,
    Const,
    Fold,
    Ident,
    ListOf,
    Logic,
    MapOf,
    Message,
    Node,
    OptMap,
    Select,
)
from stowplan.cel.values import NONE, Optional, TypeValue, as_key, find_key, kind_of

MISSING = object()
_CONVERSIONS = frozenset(("bytes", "string", "int", "uint", "double", "bool", "duration", "timestamp", "dyn", "type"))
_QUALIFIERS = frozenset(("string", "bool", "int", "uint", "double"))


@dataclass(slots=True)
class Plan:
    """The step of the root, where the variables stand in a frame, and how long a frame is."""

    step: Step
    slots: dict[str, int]
    size: int
    units: int
    nodes: Nodes
    global_calls: set[Node]
    refusals: list[Refusal] = field(default_factory=list)


@dataclass(slots=True)
class Nodes:
    """What the plan knows of single nodes: for evaluation over columns and in parts."""

    steps: dict[Node, Step] = field(default_factory=dict)
    constants: dict[Node, Any] = field(default_factory=dict)
    reads: dict[Node, int] = field(default_factory=dict)  # the slot a name reads
    sets: dict[Node, tuple[int, ...]] = field(default_factory=dict)  # the slots a macro fills
    needs: dict[Node, frozenset[int]] = field(default_factory=dict)  # the slots a node depends on
    functions: dict[Node, Function] = field(default_factory=dict)


def plan(checked: Checked, env: Environment) -> Plan:
    """The plan of a tree without refusals; errors of constants come as refusals of the plan."""
    planner = _Planner(checked, env)
    step = planner.visit(checked.root)
    return Plan(step, planner.slots, planner.size, steps(checked.root), planner.nodes, checked.global_calls, planner.refusals)


class _Planner:
    def __init__(self, checked: Checked, env: Environment) -> None:
        self.checked = checked
        self.env = env
        self.slots: dict[str, int] = {}
        self.size = 1
        self.scopes: list[dict[str, int]] = []
        self.bound: set[int] = set()  # slots of cel.bind, which may hold an error
        self.nodes = Nodes()
        self.constants = self.nodes.constants
        self.computed: set[Node] = set()  # constants that upstream would not see as such
        self.refusals: list[Refusal] = []
        self.visitors: dict[type[Node], Callable[[Any], Step]] = {
            Const: self.const,
            Ident: self.ident,
            Select: self.select,
            Call: self.call,
            Logic: self.logic,
            Choice: self.choice,
            ListOf: self.list_of,
            MapOf: self.map_of,
            Message: self.message,
            Fold: self.fold,
            Bind: self.bind,
            OptMap: self.opt_map,
        }

    def visit(self, node: Node) -> Step:
        nodes = self.nodes
        name = self.checked.variables.get(node)
        if node in self.checked.named_types and not isinstance(node, Message):
            step = self.constant(node, TypeValue(self.checked.named_types[node]))
        elif name is not None:
            step = self.variable(node, name)
        else:
            step = self.visitors[type(node)](node)
        nodes.steps[node] = step
        needed = {nodes.reads[node]} if node in nodes.reads else set()
        for child in node.children():
            needed |= nodes.needs.get(child, frozenset())
        nodes.needs[node] = frozenset(needed.difference(nodes.sets.get(node, ())))
        return step

    def constant(self, node: Node, value: Any) -> Step:
        self.constants[node] = value
        return lambda _: value

    def slot(self) -> int:
        self.size += 1
        return self.size - 1

    def at(self, node: Node, step: Step) -> Step:
        """The step, with the place of the node in the errors that do not know theirs yet."""
        place = (node.start, node.end)

        def run(frame: Frame) -> Any:
            try:
                return step(frame)
            except CelError as error:
                if error.place is None:
                    error.place = place
                raise

        return run

    def fails(self, node: Node, message: str) -> Step:
        def run(_: Frame) -> Any:
            raise CelError(message)

        return self.at(node, run)

    # -- names

    def const(self, node: Const) -> Step:
        return self.constant(node, node.value)

    def variable(self, node: Node, name: str) -> Step:
        slot = self.slots.get(name)
        if slot is None:
            slot = self.slots[name] = self.slot()
        self.nodes.reads[node] = slot

        def run(frame: Frame) -> Any:
            value = frame[slot]
            if value is MISSING:
                error = CelError(f"no such attribute(s): {name}")
                error.place = (node.start, node.end)
                raise error
            return value

        return run

    def ident(self, node: Ident) -> Step:
        slot = next((scope[node.name] for scope in reversed(self.scopes) if node.name in scope), None)
        if slot is None:
            return self.fails(node, f"undeclared reference to '{node.name}'")
        self.nodes.reads[node] = slot
        if slot not in self.bound:
            return lambda frame: frame[slot]

        def run(frame: Frame) -> Any:
            value = frame[slot]
            if isinstance(value, CelError):
                raise value
            return value

        return run

    def select(self, node: Select) -> Step:
        operand = self.visit(node.operand)
        if node.test:
            has = has_field(node.field)
            return lambda frame: has(operand(frame))
        name = node.field
        if node.optional:
            return lambda frame: look_field(operand(frame), name)
        return field_of(operand, name, (node.start, node.end))

    # -- calls

    def call(self, node: Call) -> Step:
        parts = node.args if node in self.checked.global_calls or node.target is None else (node.target, *node.args)
        args = [self.visit(part) for part in parts]
        if node.function in ("or", "orValue") and len(args) == 2 and node.target is not None:
            return self.at(node, lazily(node.function, *args))
        if node.function == "_[_]":
            container, key = args
            literal = self.constants.get(node.args[1])
            if self.env.constant_errors and node.args[0] in self.constants and node.args[1] in self.constants:
                failing(self.refusals, node, get_item, [self.constants[part] for part in node.args])
            if type(literal) is str:
                return item_of(container, literal, (node.start, node.end))
            return self.at(node, lambda frame: get_item(container(frame), key(frame)))
        if node.function == "_[?_]":
            container, key = args
            if node.args[1] in self.constants and kind_of(self.constants[node.args[1]]) not in _QUALIFIERS:
                self.refusals.append(Refusal("a key or index is a string, number or bool", node.args[1].start, node.args[1].end))
            return self.at(node, lambda frame: look(container(frame), key(frame)))
        function = self.checked.functions.get(node)
        if function is None:
            return self.fails(node, f"unbound function: {node.function}")
        fitting = self.checked.overloads.get(node)
        if fitting is not None:
            function = narrowed(function.name, fitting, tuple(function.overloads))
        self.nodes.functions[node] = function
        self.patterns(node, parts)
        folded = self.folded(node, function, parts)
        literal = len(parts) > 1 and parts[1] in self.constants
        return folded if folded is not None else self.at(node, apply(function, args, literal=literal))

    def folded(self, node: Call, function: Function, parts: tuple[Node, ...]) -> Step | None:
        """The value of a call of constants; its error is a refusal where Kubernetes computes it when it compiles."""
        if not all(part in self.constants for part in parts):
            if self.env.constant_errors:
                known = [self.constants.get(part, MISSING) for part in parts[1:]]
                sampled(self.refusals, node, function, self.checked.types[parts[0]].name if parts else "", known)
            return None
        values = [self.constants[part] for part in parts]
        eager = node.function in _CONVERSIONS and len(parts) == 1 and parts[0] not in self.computed
        if not eager:
            self.computed.add(node)
        if any(isinstance(value, (list, tuple, str)) and len(value) > limits.ITEMS for value in values):
            return None  # large values are made while running, where they are paid for
        try:
            value = function.find(*values)(*values)
            if isinstance(value, (list, str)) and len(value) > limits.ITEMS:
                return None
            return self.constant(node, value)
        except CelError as error:
            if (self.env.dialect.eager and eager) or self.env.constant_errors:
                self.refusals.append(Refusal(error.message, node.start, node.end))
            return None

    def patterns(self, node: Call, parts: tuple[Node, ...]) -> None:
        if (
            node.function in PATTERNS
            and self.env.dialect.eager
            and len(parts) > 1
            and isinstance(self.constants.get(parts[1]), str)
        ):
            try:
                compile_pattern(self.constants[parts[1]])
            except CelError as error:
                self.refusals.append(Refusal(error.message, parts[1].start, parts[1].end))

    # -- logic

    def logic(self, node: Logic) -> Step:
        return folds.logic([self.visit(term) for term in node.terms], dominant=node.dominant)

    def choice(self, node: Choice) -> Step:
        condition, then, otherwise = self.visit(node.condition), self.visit(node.then), self.visit(node.otherwise)

        def run(frame: Frame) -> Any:
            chosen = condition(frame)
            if chosen is True:
                return then(frame)
            if chosen is False:
                return otherwise(frame)
            raise no_overload("_?_:_", kind_of(chosen))

        return self.at(node, run)

    # -- literals

    def list_of(self, node: ListOf) -> Step:
        items = [self.visit(item) for item in node.items]
        if not node.optional:
            if all(item in self.constants for item in node.items):
                if any(item in self.computed for item in node.items):
                    self.computed.add(node)
                return self.constant(node, [self.constants[item] for item in node.items])
            return lambda frame: [item(frame) for item in items]
        optional = node.optional

        def run(frame: Frame) -> list[Any]:
            found: list[Any] = []
            for index, item in enumerate(items):
                value = item(frame)
                if index not in optional:
                    found.append(value)
                elif present(value):
                    found.append(value.value)
            return found

        return self.at(node, run)

    def map_of(self, node: MapOf) -> Step:
        entries = [(self.visit(key), self.visit(value), index in node.optional) for index, (key, value) in enumerate(node.entries)]
        unique = self.env.dialect.unique_keys

        def run(frame: Frame) -> dict[Any, Any]:
            found: dict[Any, Any] = {}
            for key_step, value_step, optional in entries:
                key, value = key_step(frame), value_step(frame)
                if unique and (type(key) is float or find_key(found, key) is not None):
                    raise CelError(f"Failed with repeated key: {key}")
                if not optional:
                    found[as_key(key)] = value
                elif present(value):
                    found[as_key(key)] = value.value
            return found

        if all(child in self.constants and child not in self.computed for child in node.children()):
            try:
                return self.constant(node, run([]))
            except CelError:
                pass  # a repeated key: an error of evaluation
        return self.at(node, run)

    def message(self, node: Message) -> Step:
        entries = [(name, self.visit(value)) for name, value in node.entries]
        full = self.checked.named_types.get(node)
        if full is None:
            return self.fails(node, f"undeclared reference to '{node.name}'")
        return self.at(node, lambda frame: build(full, {name: step(frame) for name, step in entries}))

    # -- macros

    def fold(self, node: Fold) -> Step:
        source = self.visit(node.source)
        slots = self.nodes.sets[node] = tuple(self.slot() for _ in node.names)
        self.scopes.append(dict(zip(node.names, slots, strict=True)))
        where = None if node.where is None else self.visit(node.where)
        body = self.visit(node.body)
        self.scopes.pop()
        return self.at(node, folds.FOLDS[node.kind](folds.Loop(source, slots, where, body, work(node))))

    def bind(self, node: Bind) -> Step:
        value = self.visit(node.value)
        slot = self.slot()
        self.bound.add(slot)
        self.nodes.sets[node] = (slot,)
        self.scopes.append({node.name: slot})
        body = self.visit(node.body)
        self.scopes.pop()

        def run(frame: Frame) -> Any:
            try:
                frame[slot] = value(frame)
            except CelError as error:  # as cel-go: the error belongs to the uses of the name
                frame[slot] = error
            return body(frame)

        return run

    def opt_map(self, node: OptMap) -> Step:
        source = self.visit(node.source)
        slot = self.slot()
        self.nodes.sets[node] = (slot,)
        self.scopes.append({node.name: slot})
        body = self.visit(node.body)
        self.scopes.pop()

        def run(frame: Frame) -> Any:
            optional = source(frame)
            if not isinstance(optional, Optional):
                raise no_overload("optMap", kind_of(optional))
            if not optional.present:
                return NONE
            frame[slot] = optional.value
            result = body(frame)
            if not node.flat:
                return Optional(present=True, value=result)
            if not isinstance(result, Optional):
                raise no_overload("optFlatMap", kind_of(result))
            return result

        return self.at(node, run)
