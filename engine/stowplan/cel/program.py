"""The public face: text and environment in, a program or the reasons why not out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stowplan.cel.check import Checked, check
from stowplan.cel.column import Column
from stowplan.cel.environment import Environment
from stowplan.cel.errors import CelError
from stowplan.cel.estimate import Estimate, estimate
from stowplan.cel.kinds import Type
from stowplan.cel.limits import Refusal, RefusedError
from stowplan.cel.literals import check_literals
from stowplan.cel.meter import Meter, Total, together
from stowplan.cel.parse import parse
from stowplan.cel.plan import MISSING, Plan, plan
from stowplan.cel.touches import Path, touches
from stowplan.cel.vector import Evaluation
from stowplan.text import Code, Diagnostic, Severity, Source, Span


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A compiled expression. Programs hold no state between evaluations."""

    source: Source
    env: Environment
    checked: Checked
    plan: Plan

    @property
    def type(self) -> Type:
        """The type of the value, dyn if only evaluation can tell."""
        return self.checked.types[self.checked.root]

    def evaluate(self, bindings: Mapping[str, Any], meter: Meter | None = None) -> Any:
        """The value for these variables, or the CelError it has none for; `meter` bounds and tells the cost."""
        plan = self.plan
        budget = Meter(self.env.cost_limit) if meter is None else meter
        frame: list[Any] = [MISSING] * plan.size
        frame[0] = budget
        for name, slot in plan.slots.items():
            if name in bindings:
                frame[slot] = bindings[name]
        try:
            budget.spend(plan.units)
            return plan.step(frame)
        except CelError as error:
            if error.place is not None:
                error.span = Span(self.source, *error.place)
            return error

    def evaluate_rows(self, bindings: Mapping[str, Any], size: int, total: Total | None = None) -> Answer:
        """The values for `size` rows; a binding is a View or Column of that many rows, or one value for all.

        The limit of the environment holds for every row; where `total` is used up no row has a value.
        """
        budget = together(size) if total is None else total
        column, notes = Evaluation(self.plan, self.env.cost_limit, budget).run(self.checked.root, bindings, size)
        return Answer(column, notes)

    @property
    def estimate(self) -> Estimate:
        """The highest cost of one evaluation, going by the sizes the environment declares."""
        return estimate(self.checked, self.env.sizes)

    @property
    def touches(self) -> frozenset[Path]:
        """The paths of variables that the value may depend on."""
        return touches(self.checked)


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A column of values; `by_rows` names the parts that were computed row by row, and why."""

    column: Column
    by_rows: tuple[str, ...]


def compile_expression(text: str, env: Environment, source: Source | None = None) -> Program | tuple[Diagnostic, ...]:
    """The program of the expression, or everything that is wrong with it (never an empty tuple)."""
    source = source or Source("expression", text)
    try:
        root = parse(text, env.variables)
    except RefusedError as error:
        return (_diagnostic(error.refusal, source, Code.SYNTAX),)
    checked = check(root, env)
    if not checked.refusals:
        check_literals(checked, formats=env.dialect.eager)
    if checked.refusals:
        return tuple(_diagnostic(refusal, source, Code.INVALID) for refusal in checked.refusals)
    planned = plan(checked, env)
    if planned.refusals:
        return tuple(_diagnostic(refusal, source, Code.INVALID) for refusal in planned.refusals)
    program = Program(source, env, checked, planned)
    too_dear = _too_dear(program)
    return program if too_dear is None else (too_dear,)


def _too_dear(program: Program) -> Diagnostic | None:
    """The refusal of an expression that may cost more than the environment allows."""
    limit = program.env.estimate_limit
    if limit is None or (cost := program.estimate).units <= limit:
        return None
    span = Span(program.source, cost.dearest.start, cost.dearest.end)
    message = f"the expression may cost {cost.units:,} units, more than {limit:,}: this part is the dearest"
    note = "loop over less, or move what does not depend on the element out of the loop"
    return Diagnostic(Code.INVALID, Severity.ERROR, message, span, notes=(note,))


def compile_unchecked(text: str, env: Environment) -> Program | tuple[Diagnostic, ...]:
    """As compile_expression, but what does not fit is an error of evaluation; for tests of the language only."""
    source = Source("expression", text)
    try:
        root = parse(text)
    except RefusedError as error:
        return (_diagnostic(error.refusal, source, Code.SYNTAX),)
    checked = check(root, env)
    checked.refusals.clear()
    return Program(source, env, checked, plan(checked, env))


def _diagnostic(refusal: Refusal, source: Source, code: Code) -> Diagnostic:
    notes = (refusal.note,) if refusal.note else ()
    place = Span(source, refusal.start, refusal.end)
    return Diagnostic(Code.UNKNOWN_FIELD if refusal.field else code, Severity.ERROR, refusal.message, place, notes=notes)
