"""A plan over columns: every node once for all rows.

What is the same in all rows is computed by the row step, functions run once a distinct value (or as array kernels),
macros over list columns run in the space of their elements. Where none of this applies the row steps of the
sub-expression take over, row by row, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stowplan.cel import lift
from stowplan.cel.access import get_field, get_item, has_field
from stowplan.cel.calls import grows, priced
from stowplan.cel.column import Array, Cell, Column, Const, Elements, Ragged, Taken, View, encode, failing, first_failure
from stowplan.cel.cost import dear, steps, work
from stowplan.cel.errors import CelError, no_overload
from stowplan.cel.library.optional import look, look_field
from stowplan.cel.meter import ExhaustedError, Meter, Total, exceeded
from stowplan.cel.overloads import Function
from stowplan.cel.plan import MISSING, Plan
from stowplan.cel.reductions import reduced
from stowplan.cel.segments import Segments, joined, runs, walked
from stowplan.cel.tree import Bind, Call, Choice, Fold, Logic, Node, OptMap, Select
from stowplan.cel.values import NONE, Optional, find_key, kind_of
from stowplan.cel.walk import elements

_HASHABLE = (str, bool, int, float)
_QUANTIFIERS = {"all": False, "exists": True}
_IN_COLUMNS = frozenset(("all", "exists", "exists_one", "filter", "map", "transformList"))
_PAUSE = 100  # rows between two looks at whether to stop
MOST_ELEMENTS = 50_000_000  # of one macro over all rows
TOGETHER = 1 << 20  # of them that are in memory at a time
NODE, ROWS, ROW, VALUE = 100, 10, 50, 18
"""Units of a node over columns: to begin with, a unit for so many rows; of a row of its own; of a value given to a function."""


@dataclass(slots=True)
class Batch:
    """The rows of one evaluation: a cell for each slot that differs by row, a frame for the rest."""

    size: int
    frame: list[Any]
    cells: dict[int, Cell] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def put(self, slot: int, cell: Cell) -> None:
        """Binds a slot."""
        if isinstance(cell, Const):
            self.cells.pop(slot, None)
            self.frame[slot] = cell.value
        else:
            self.cells[slot] = cell


class Evaluation:
    """One evaluation of a plan over many rows."""

    def __init__(self, plan: Plan, limit: int, total: Total) -> None:
        """`limit` of one row; `total` of all of them."""
        self.plan = plan
        self.nodes = plan.nodes
        self.total = total
        self.limit = limit

    def run(self, root: Node, bindings: Mapping[str, Any], size: int) -> tuple[Column, tuple[str, ...]]:
        """The values of the root for all rows, and what had to be done row by row."""
        batch = Batch(size, [MISSING] * self.plan.size)
        batch.frame[0] = Meter(self.limit, self.total.interrupted)  # of what is the same in all rows
        for name, slot in self.plan.slots.items():
            value = bindings.get(name, MISSING)
            batch.put(slot, value if isinstance(value, (View, Column)) else Const(value))
        try:
            cell = self.cell(root, batch)
        except CelError as error:  # interrupted: nothing has a value
            cell = Const(error)
        except ExhaustedError as exhausted:
            cell = Const(exhausted.error)
        return lift.as_column(cell, size), tuple(batch.notes)

    def cell(self, node: Node, batch: Batch) -> Cell:
        """The values of the node."""
        if node in self.nodes.constants:
            return Const(self.nodes.constants[node])
        if batch.cells.keys().isdisjoint(self.nodes.needs[node]):
            return Const(self.once(node, batch))
        slot = self.nodes.reads.get(node)
        if slot is not None:
            return batch.cells[slot]
        self.total.pause()
        self.total.spend(NODE + batch.size // ROWS)
        visitor = _VISITORS.get(type(node))
        return self.by_rows(node, batch, "no column form") if visitor is None else visitor(self, node, batch)

    def once(self, node: Node, batch: Batch) -> Any:
        """The value, or error, of what is the same in all rows."""
        meter: Meter = batch.frame[0]
        before = meter.left
        try:
            return self.nodes.steps[node](batch.frame)
        except CelError as error:
            return error
        finally:
            self.total.spend(before - meter.left)

    def by_rows(self, node: Node, batch: Batch, why: str) -> Column:
        """The values of the node by its row step, one row after the other."""
        batch.notes.append(f"characters {node.start} to {node.end}: {why}")
        step = self.nodes.steps[node]
        slots = [(slot, batch.cells[slot]) for slot in self.nodes.needs[node] if slot in batch.cells]
        frame = list(batch.frame)
        units = own = ROW + steps(node)
        found: list[Any] = []
        for row in range(batch.size):
            meter = frame[0] = self.total.part(self.limit)
            if not row % _PAUSE:
                self.total.pause()
            for slot, cell in slots:
                frame[slot] = value = cell.value if isinstance(cell, Const) else cell.row(row)
                units += VALUE * len(value) if isinstance(cell, Ragged) and isinstance(value, list) else 0
            try:
                found.append(step(frame))
            except CelError as error:
                found.append(error)
            self.total.settle(meter, units)
            units = own
        return encode(found)

    # -- access

    def select(self, node: Select, batch: Batch) -> Cell:
        if node.test:
            return lift.derive(self.cell(node.operand, batch), ("has", node.field), has_field(node.field))
        if node.optional:
            name = node.field
            return lift.derive(self.cell(node.operand, batch), ("look", name), lambda value: look_field(value, name))
        return lift.derive(self.cell(node.operand, batch), ("field", node.field), get_field(node.field))

    def indexed(self, node: Call, batch: Batch) -> Cell:
        function = get_item if node.function == "_[_]" else look
        container, key = (self.cell(arg, batch) for arg in node.args)
        if isinstance(key, Const) and isinstance(key.value, _HASHABLE) and not isinstance(container, Const):
            value = key.value
            return lift.derive(container, (node.function, type(value), value), lambda held: function(held, value))
        return lift.call(function, None, [container, key], batch.size, self.pay)

    def pay(self, values: int) -> None:
        """Pays for so many values that are given to a function one by one."""
        self.total.spend(VALUE * values)

    def scalar(self, node: Call, function: Function) -> Callable[..., Any]:
        """The function of one set of values; pays for their size."""
        if not grows(function):
            return lambda *values: function.find(*values)(*values)
        call = priced(function, literal=len(node.children()) > 1 and node.children()[1] in self.nodes.constants)
        return lambda *values: call(self.total, list(values))

    # -- calls

    def call(self, node: Call, batch: Batch) -> Cell:
        if node.function in ("_[_]", "_[?_]"):
            return self.indexed(node, batch)
        if node.function in ("or", "orValue") and len(node.args) == 1 and node.target is not None:
            return self.otherwise(node, batch)
        return self.applied(node, batch)

    def applied(self, node: Call, batch: Batch) -> Cell:
        """The function over the values of all its arguments."""
        function = self.nodes.functions.get(node)
        if function is None:
            return self.by_rows(node, batch, f"unbound function: {node.function}")
        parts = node.args if node in self.global_calls else node.children()
        cells = [self.cell(part, batch) for part in parts]
        if len(cells) == 1 and isinstance(cells[0], Ragged):
            made = cells[0].sizes() if function.name == "size" else reduced(function, cells[0], self.total, TOGETHER)
            if made is not None:
                return made
        self.pay(2 * sum(cell.count for cell in cells if isinstance(cell, Ragged)))
        if function.name == "@in" and isinstance(cells[1], View) and isinstance(cells[0], Const):
            key = cells[0].value
            if isinstance(key, str):
                return lift.derive(cells[1], ("in", key), lambda held: _holds(held, key, function))
        units = VALUE + dear(node.function, len(node.args))
        return lift.call(self.scalar(node, function), function, cells, batch.size, lambda values: self.total.spend(units * values))

    @property
    def global_calls(self) -> set[Node]:
        """Calls whose target is part of the name."""
        return self.plan.global_calls

    def otherwise(self, node: Call, batch: Batch) -> Cell:
        """`or` and `orValue`: the argument counts only where the optional has no value."""
        assert node.target is not None
        name = node.function
        optional = lift.as_column(self.cell(node.target, batch), batch.size)
        other = self.cell(node.args[0], batch)
        if name == "orValue" and isinstance(other, Const) and isinstance(other.value, _HASHABLE):
            default = other.value
            return lift.each(optional, (name, type(default), repr(default)), lambda held: _value_or(held, default))
        present = lift.each(optional, ("present", name), lambda value: _has_value(value, name))
        unwrap = _unwrapped if name == "orValue" else _itself
        value = lift.each(optional, ("unwrap", name), unwrap)
        if name == "or":
            other = lift.each(lift.as_column(other, batch.size), "optional", _optional)
        return lift.choose(present, value, other)

    # -- logic

    def logic(self, node: Logic, batch: Batch) -> Cell:
        chain = lift.Chain(node.dominant, batch.size)
        for term in node.terms:
            if chain.add(self.cell(term, batch)):
                return Const(node.dominant)
        return chain.result()

    def choice(self, node: Choice, batch: Batch) -> Cell:
        condition = self.cell(node.condition, batch)
        if isinstance(condition, Const):
            if isinstance(condition.value, bool):
                return self.cell(node.then if condition.value else node.otherwise, batch)
            error = condition.value
            return Const(error if isinstance(error, CelError) else no_overload("_?_:_", kind_of(error)))
        chosen = lift.bools(condition, "_?_:_")
        return lift.choose(chosen, self.cell(node.then, batch), self.cell(node.otherwise, batch))

    # -- macros

    def bind(self, node: Bind, batch: Batch) -> Cell:
        (slot,) = self.nodes.sets[node]
        batch.put(slot, self.cell(node.value, batch))
        return self.cell(node.body, batch)

    def opt_map(self, node: OptMap, batch: Batch) -> Cell:
        """`optMap` and `optFlatMap`: the body over the rows in which the optional has a value."""
        (slot,) = self.nodes.sets[node]
        wrap = _flat if node.flat else _some
        source = self.cell(node.source, batch)
        if isinstance(source, Const) and isinstance(source.value, Optional) and source.value.present:
            batch.put(slot, Const(source.value.value))
            return lift.derive(self.cell(node.body, batch), wrap, wrap)
        optional = lift.as_column(source, batch.size)
        present = lift.each(optional, ("present", "optMap"), lambda value: _has_value(value, "optMap"))
        wanted = lift.bools(present, "optMap").data
        rows = np.flatnonzero(wanted if present.failures is None else wanted & ~present.failures.mask)
        if not len(rows):
            return lift.choose(lift.bools(present, "optMap"), Const(NONE), Const(NONE))
        inner = self.among(self.nodes.needs[node.body], batch, rows)
        inner.put(slot, lift.each(optional.take(rows), ("unwrap", "orValue"), _unwrapped))
        found = lift.each(lift.as_column(self.cell(node.body, inner), inner.size), wrap, wrap)
        batch.notes.extend(note for note in inner.notes if note not in batch.notes)
        place = np.zeros(batch.size, np.int64)
        place[rows] = np.arange(len(rows))
        return lift.choose(present, found.take(place), Const(NONE))

    def among(self, needed: frozenset[int], batch: Batch, rows: Array) -> Batch:
        """A batch of some rows, in any order and number, with the needed slots."""
        inner = Batch(len(rows), list(batch.frame))
        for slot in needed:
            cell = batch.cells.get(slot)
            if isinstance(cell, View):
                inner.cells[slot] = Taken(cell, rows)
            elif isinstance(cell, Column):
                inner.cells[slot] = cell.take(rows)
        return inner

    def fold(self, node: Fold, batch: Batch) -> Cell:
        source = self.cell(node.source, batch)
        if isinstance(source, Const):
            return self.fold_constant(node, source.value, batch)
        if node.kind not in _IN_COLUMNS:
            return self.by_rows(node, batch, f"{node.kind}() gives a list or map")
        if not isinstance(source, Ragged):  # each list is fetched by itself
            self.total.spend(VALUE // 2 * batch.size)
        names = len(node.names)
        walk = source.elements(names) if isinstance(source, View) else walked(source, names)
        if walk is None:
            return self.by_rows(node, batch, "elements are known by row only")
        count = int(walk.offsets[-1])
        if count > MOST_ELEMENTS:
            return Const(exceeded())
        self.total.spend(count)
        too_dear = failing(np.diff(walk.offsets) * work(node) > self.limit, exceeded())
        walk.failures = first_failure(walk.failures, too_dear)
        start, found = 0, []
        for part in runs(walk, TOGETHER):
            found.append(self.reduced(node, batch, part, (walk.cells[0], start)))
            start += int(part.offsets[-1])
        return joined(found)

    def reduced(self, node: Fold, batch: Batch, part: Elements, origin: tuple[Column | View, int]) -> Column | Ragged:
        """The elements of every row brought together; they begin at a place of the origin."""
        inner = self.inside(node, batch, part)
        found = self.of_elements(node, inner, Segments(part), origin)
        batch.notes.extend(note for note in inner.notes if note not in batch.notes)
        return found

    def of_elements(self, node: Fold, inner: Batch, segments: Segments, origin: tuple[Column | View, int]) -> Column | Ragged:
        """The same, with the batch of the elements."""
        failures = segments.elements.failures
        if node.kind in ("map", "transformList"):
            where = None if node.where is None else self.test(node.where, inner, "_&&_")
            return segments.mapped(where, lift.as_column(self.cell(node.body, inner), inner.size))
        body = self.test(node.body, inner, "_||_" if node.kind == "exists" else "_&&_")
        if node.kind == "filter":
            return segments.filtered(body, *origin)
        if node.kind == "exists_one":
            return segments.one(body).failing(failures)
        return segments.any(body, _QUANTIFIERS[node.kind]).failing(failures)

    def test(self, node: Node, batch: Batch, name: str) -> Column:
        """The node as bools; `name` is the operator that refuses others."""
        return lift.bools(lift.as_column(self.cell(node, batch), batch.size), name)

    def inside(self, node: Fold, batch: Batch, part: Elements) -> Batch:
        """The batch of the elements: what its body needs of the rows is spread over them."""
        needed = self.nodes.needs[node.body]
        if node.where is not None:
            needed |= self.nodes.needs[node.where]
        if needed.isdisjoint(batch.cells):
            inner = Batch(int(part.offsets[-1]), list(batch.frame))
        else:
            inner = self.among(needed, batch, part.owner + part.first if part.first else part.owner)
        for slot, cell in zip(self.nodes.sets[node], part.cells, strict=True):
            inner.put(slot, cell)
        return inner

    def fold_constant(self, node: Fold, source: Any, batch: Batch) -> Cell:
        """A macro over a list that is the same in all rows: a chain with a term for every element."""
        dominant = _QUANTIFIERS.get(node.kind)
        if dominant is None or isinstance(source, CelError):
            return Const(source) if isinstance(source, CelError) else self.by_rows(node, batch, f"{node.kind}() over a constant")
        chain = lift.Chain(dominant, batch.size)
        try:
            for names in elements(source, len(node.names)):
                batch.frame[0].spend(work(node))
                for slot, value in zip(self.nodes.sets[node], names, strict=True):
                    batch.put(slot, Const(value))
                if chain.add(self.cell(node.body, batch)):
                    return Const(dominant)
        except CelError as error:
            return Const(error)
        return chain.result()


_VISITORS: dict[type[Node], Callable[[Evaluation, Any, Batch], Cell]] = {
    Select: Evaluation.select,
    Call: Evaluation.call,
    Logic: Evaluation.logic,
    Choice: Evaluation.choice,
    Fold: Evaluation.fold,
    Bind: Evaluation.bind,
    OptMap: Evaluation.opt_map,
}


def _holds(held: Any, key: str, function: Any) -> bool:
    if isinstance(held, Mapping):
        return find_key(held, key) is not None
    return bool(function.find(key, held)(key, held))


def _optional(value: Any) -> Optional:
    if not isinstance(value, Optional):
        raise no_overload("or", kind_of(value))
    return value


def _has_value(value: Any, name: str) -> bool:
    if not isinstance(value, Optional):
        raise no_overload(name, kind_of(value))
    return value.present


def _value_or(held: Any, other: Any) -> Any:
    return held.value if _has_value(held, "orValue") else other


def _some(value: Any) -> Optional:
    return Optional(present=True, value=value)


def _flat(value: Any) -> Optional:
    if not isinstance(value, Optional):
        raise no_overload("optFlatMap", kind_of(value))
    return value


def _unwrapped(value: Any) -> Any:
    return value.value if isinstance(value, Optional) else None


def _itself(value: Any) -> Any:
    return value
