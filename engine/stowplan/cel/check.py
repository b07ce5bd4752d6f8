"""Types of a tree: names and overloads resolved, everything that does not fit collected.

Follows cel-go's checker (unification with type variables, every overload that fits is kept). After an error an
expression counts as dyn, so one mistake gives one message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from stowplan.cel import faults, kinds
from stowplan.cel.environment import Environment
from stowplan.cel.faults import Faults
from stowplan.cel.infer import Inference, iterates, unwrap_optional
from stowplan.cel.kinds import BOOL, DYN, Struct, Type, is_dyn, list_of, map_of, optional_of
from stowplan.cel.limits import Refusal
from stowplan.cel.messages import MESSAGES
from stowplan.cel.overloads import Function, Overload
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
    qualified,
)
from stowplan.cel.values import UInt, kind_of


@dataclass(slots=True)
class Checked:
    """What is known about a tree: a type a node, what names stand for, the overloads that fit each call."""

    root: Node
    types: dict[Node, Type] = field(default_factory=dict)
    variables: dict[Node, str] = field(default_factory=dict)  # a global variable by its full name
    named_types: dict[Node, str] = field(default_factory=dict)
    functions: dict[Node, Function] = field(default_factory=dict)
    overloads: dict[Node, tuple[Overload, ...]] = field(default_factory=dict)
    global_calls: set[Node] = field(default_factory=set)  # `strings.quote(x)`: the target is part of the name
    refusals: list[Refusal] = field(default_factory=list)


def check(root: Node, env: Environment) -> Checked:
    """The tree with its types; `refusals` is empty when it is sound."""
    checker = _Checker(root, env)
    checker.visit(root)
    inference, result = checker.inference, checker.result
    result.types = {node: inference.resolve(kind, final=True) for node, kind in result.types.items()}
    if env.dialect.homogeneous:
        faults.mixed_literals(result)
    return result


class _Checker:
    def __init__(self, root: Node, env: Environment) -> None:
        self.env = env
        self.inference = Inference()
        self.result = Checked(root)
        self.faults = Faults(self.result.refusals, env)
        self.scopes: list[dict[str, Type]] = []
        self.visitors: dict[type[Node], Callable[[Any], Type]] = {
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

    def visit(self, node: Node) -> Type:
        """The type of the node, noted."""
        kind = self.visitors[type(node)](node)
        self.result.types[node] = kind
        return kind

    def now(self, kind: Type) -> Type:
        """The type as far as it is known."""
        return self.inference.resolve(kind)

    def local(self, name: str) -> Type | None:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def inside(self, names: dict[str, Type], *nodes: Node) -> list[Type]:
        """The types of the nodes where the names are known as well."""
        self.scopes.append(names)
        found = [self.visit(node) for node in nodes]
        self.scopes.pop()
        return found

    def wants(self, node: Node, wanted: Type, found: Type) -> None:
        if not self.inference.fits([found], [wanted]):
            self.faults.mismatch(node, wanted, self.now(found))

    # -- names

    def const(self, node: Const) -> Type:
        return kinds.UINT if type(node.value) is UInt else kinds.PRIMITIVE[kind_of(node.value)]

    def ident(self, node: Ident) -> Type:
        if not node.absolute and (kind := self.local(node.name)) is not None:
            return kind
        found = self.named(node, "." * node.absolute + node.name)
        if found is None:
            self.faults.undeclared(node, node.name, self.scopes)
            return DYN
        return found

    def named(self, node: Node, name: str) -> Type | None:
        """The type of a global variable or type, noted as what the node stands for."""
        if (variable := self.env.variable(name)) is not None:
            self.result.variables[node] = variable[0]
            return variable[1]
        if (kind := self.env.type_named(name)) is not None:
            self.result.named_types[node] = kind[0]
            return kinds.type_of(kind[1])
        return None

    def select(self, node: Select) -> Type:
        if not node.test and not node.optional and (name := qualified(node)) is not None:
            root: Node = node
            while isinstance(root, Select):
                root = root.operand
            if isinstance(root, Ident) and (root.absolute or self.local(root.name) is None):
                found = self.named(node, name)
                if found is not None:
                    return found
        operand, optional = unwrap_optional(self.now(self.visit(node.operand)))
        kind = self.field(node, operand)
        if node.test:
            return BOOL
        return optional_of(kind) if optional or node.optional else kind

    def field(self, node: Select, operand: Type) -> Type:
        if isinstance(operand, Struct):
            found = operand.fields.get(node.field)
            if found is None:
                self.faults.no_field(node, operand)
                return DYN
            return found
        if operand.name == "map":
            return operand.params[1]
        if operand.is_param:
            self.inference.fits([DYN], [operand])
        elif not is_dyn(operand):
            self.faults.no_selection(node, operand)
        return DYN

    # -- calls

    def call(self, node: Call) -> Type:
        env, target = self.env, node.target
        if target is not None and (name := qualified(target)) is not None and not self.is_local(target):
            function = env.function(f"{name}.{node.function}", member=False)
            if function is not None:
                self.result.global_calls.add(node)
                return self.resolve(node, function, [self.visit(arg) for arg in node.args], None)
        receiver = None if target is None else self.visit(target)
        args = [self.visit(arg) for arg in node.args]
        function = env.function(node.function, member=target is not None)
        if function is None:
            other = env.function(node.function, member=target is None)
            self.faults.no_function(node, [*([receiver] if receiver else []), *args], other, self.now)
            return DYN
        return self.resolve(node, function, args, receiver)

    def is_local(self, node: Node) -> bool:
        while isinstance(node, Select):
            node = node.operand
        return isinstance(node, Ident) and not node.absolute and self.local(node.name) is not None

    def resolve(self, node: Call, function: Function, args: list[Type], receiver: Type | None) -> Type:
        """The result type of every overload that fits; dyn when they differ."""
        types = args if receiver is None else [receiver, *args]
        self.result.functions[node] = function
        result: Type | None = None
        fitting: list[Overload] = []
        for overload in function.overloads:
            declared = self.inference.instance((overload.result, *overload.params), overload.type_params)
            if self.inference.fits(types, declared[1:]):
                fitting.append(overload)
                kind = self.now(declared[0])
                if result is None:
                    result = kind
                elif not is_dyn(result) and result != kind:
                    result = DYN
        if result is None:
            self.faults.no_overload(node, function, [self.now(kind) for kind in types], receiver is not None)
            return DYN
        self.result.overloads[node] = tuple(fitting)
        return result

    def logic(self, node: Logic) -> Type:
        found = [self.visit(term) for term in node.terms]
        for term, kind in zip(node.terms, found, strict=True):
            if not self.inference.fits([kind], [BOOL]):
                self.faults.no_logic(node, term, self.now(kind))
        return BOOL

    def choice(self, node: Choice) -> Type:
        self.wants(node.condition, BOOL, self.visit(node.condition))
        then, otherwise = self.visit(node.then), self.visit(node.otherwise)
        joined = self.inference.fresh()
        if not self.inference.fits([then, otherwise], [joined, joined]):
            self.faults.branches(node, self.now(then), self.now(otherwise))
            return DYN
        return self.now(joined)

    # -- literals

    def list_of(self, node: ListOf) -> Type:
        element: Type | None = None
        for index, item in enumerate(node.items):
            element = self.joined(element, self.item(item, optional=index in node.optional))
        return list_of(self.inference.fresh() if element is None else element)

    def item(self, node: Node, *, optional: bool) -> Type:
        kind = self.visit(node)
        if not optional:
            return kind
        inner, wrapped = unwrap_optional(self.now(kind))
        if not wrapped and not is_dyn(inner):
            self.faults.mismatch(node, optional_of(inner), inner)
        return inner

    def joined(self, previous: Type | None, current: Type) -> Type:
        if previous is None:
            return current
        return self.inference.join(previous, current) or DYN

    def map_of(self, node: MapOf) -> Type:
        key: Type | None = None
        value: Type | None = None
        for index, (key_node, value_node) in enumerate(node.entries):
            key = self.joined(key, self.visit(key_node))
            value = self.joined(value, self.item(value_node, optional=index in node.optional))
        return map_of(key or self.inference.fresh(), value or self.inference.fresh())

    def message(self, node: Message) -> Type:
        name = next((full for full in self.env.candidates(node.name) if full in MESSAGES), None)
        kinds_found = {field: (value, self.visit(value)) for field, value in node.entries}
        if name is None:
            self.faults.undeclared(node, node.name, self.scopes)
            return DYN
        self.result.named_types[node] = name
        result, fields = MESSAGES[name]
        for field_name, (value, kind) in kinds_found.items():
            if field_name not in fields:
                self.faults.no_message_field(node, name, field_name)
            else:
                self.wants(value, fields[field_name], kind)
        return result

    # -- macros

    def fold(self, node: Fold) -> Type:
        source = self.now(self.visit(node.source))
        walked = iterates(source)
        if walked is None:
            self.faults.no_range(node.source, source)
            walked = (DYN, DYN)
        if source.is_param:
            self.inference.fits([DYN], [source])
        key, value = walked
        if len(node.names) == 1:
            element = key if source.name == "map" else value
            scope = {node.names[0]: element}
        else:
            element = value
            scope = {node.names[0]: key, node.names[1]: value}
        if node.where is not None:
            self.wants(node.where, BOOL, self.inside(scope, node.where)[0])
        (body,) = self.inside(scope, node.body)
        return self.folded(node, key, element, body)

    def folded(self, node: Fold, key: Type, element: Type, body: Type) -> Type:
        if node.kind in ("all", "exists", "exists_one", "filter"):
            self.wants(node.body, BOOL, body)
            return list_of(element) if node.kind == "filter" else BOOL
        if node.kind in ("map", "transformList"):
            return list_of(body)
        if node.kind == "transformMap":
            return map_of(key, body)
        if node.kind == "transformMapEntry":
            entry = map_of(self.inference.fresh(), self.inference.fresh())
            self.wants(node.body, entry, body)
            return self.now(entry)
        if self.now(body).is_param:
            self.inference.fits([body], [kinds.INT])  # the first type that can be ordered, as upstream
        source, sort_key = self.now(self.result.types[node.source]), self.now(body)
        self.faults.sorting(node, source, sort_key)
        if is_dyn(source):
            return DYN if is_dyn(sort_key) else list_of(self.inference.fresh())
        return list_of(element)

    def bind(self, node: Bind) -> Type:
        if not self.env.dialect.bind:
            self.faults.undeclared(node, "cel.bind", self.scopes)
        value = self.visit(node.value)
        return self.inside({node.name: value}, node.body)[0]

    def opt_map(self, node: OptMap) -> Type:
        source = self.now(self.visit(node.source))
        inner, wrapped = unwrap_optional(source)
        if not wrapped and not is_dyn(source):
            self.faults.mismatch(node.source, optional_of(DYN), source)
        if not wrapped:
            inner = self.inference.fresh()
        (body,) = self.inside({node.name: inner}, node.body)
        if not node.flat:
            return optional_of(body)
        result = optional_of(self.inference.fresh())
        self.wants(node.body, result, body)
        return DYN if is_dyn(self.now(body)) else self.now(result)
