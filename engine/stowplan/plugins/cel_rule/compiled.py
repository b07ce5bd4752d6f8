"""A rule whose expressions are compiled, and the values they have for a pod and a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stowplan.cel import CelError, Meter, Program
from stowplan.cel.environment import COST_LIMIT
from stowplan.cel.meter import ExhaustedError, exceeded, together
from stowplan.cel.values import Timestamp
from stowplan.objects import Namespace, Pod
from stowplan.plugins.cel_rule.nodeview import DomainView, NodeView, Scene
from stowplan.plugins.cel_rule.podview import SECOND, NamespaceView, PodView, View
from stowplan.plugins.cel_rule.reading import Reading
from stowplan.state import Cluster
from stowplan.text import Span


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A compiled variable; `of_node`: it differs between nodes."""

    name: str
    program: Program
    of_node: bool


@dataclass(frozen=True, slots=True, eq=False)
class Expressions:
    """The programs of a rule and what they read together; `variables` are those of the profile that it uses."""

    name: str
    value: Program
    when: Program | None
    message: Program | None
    variables: Mapping[str, Variable]
    params: Mapping[str, Any]
    reading: Reading
    span: Span | None = None
    """where the value was written"""

    def view(self, pod: Pod, cluster: Cluster) -> PodSide:
        """What they see of a pod."""
        namespace = NamespaceView(pod.namespace, cluster.facts(Namespace).get(pod.namespace))
        return PodSide(self, PodView(pod, cluster.now), namespace, cluster.now)


class PodSide:
    """The variables that do not depend on a node, each computed once."""

    __slots__ = ("answers", "bindings", "exhausted", "expressions", "meter", "namespace", "now", "pod", "variables")

    def __init__(self, expressions: Expressions, pod: PodView, namespace: NamespaceView, now: float) -> None:
        self.expressions, self.pod, self.namespace, self.now = expressions, pod, namespace, now
        self.variables: dict[str, Any] = {}
        self.answers: dict[Any, dict[tuple[int, ...], Any]] = {}
        """remembered answers by what the node looked like"""
        self.meter: Meter = together(1)
        """the budget of what does not depend on a node"""
        self.exhausted: str | None = None
        """why no node has an answer: what all of them together need is too much"""
        self.bindings: dict[str, Any] = {
            "pod": pod,
            "namespace": namespace,
            "now": Timestamp(int(now * SECOND)),
            "params": expressions.params,
        }
        self.bindings["variables"] = VariableView(self, self.bindings, self.meter)

    def key(self) -> tuple[Any, ...]:
        """All that the expressions read of the pod: pods with equal keys get equal answers."""
        reading = self.expressions.reading
        pod = tuple(frozen(at(self.pod, path)) for path in sorted(reading.pod))
        namespace = tuple(frozen(at(self.namespace, path)) for path in sorted(reading.namespace))
        home = self.pod.pod.namespace if reading.beyond else None  # pods() counts in it
        return (pod, namespace, home, self.now if reading.timed else None)

    def at(self, scene: Scene, place: int, meter: Meter) -> dict[str, Any]:
        """The variables for one of the asked rows; computing them is paid from the meter."""
        bindings = dict(self.bindings)
        bindings["node"] = NodeView(scene, place)
        if self.expressions.reading.cluster:
            bindings["cluster"] = DomainView(scene, place, "")
        bindings["variables"] = VariableView(self, bindings, meter)
        return bindings


class Texts:
    """Messages made by expressions, with a budget of their own: what is said of a decision must not change it."""

    __slots__ = ("_total",)

    def __init__(self, rows: int) -> None:
        self._total = together(rows)

    def say(self, program: Program, bindings: Mapping[str, Any]) -> Any:
        """The value for one row; a CelError once the budget is used up."""
        if self._total.exhausted:
            return exceeded()
        meter = self._total.part(COST_LIMIT)
        bindings["variables"].paid_from(meter)
        text = program.evaluate(bindings, meter)
        try:
            self._total.settle(meter)
        except ExhaustedError as exhausted:
            return exhausted.error
        return text


class VariableView(View):
    """`variables.x`: computed when first asked for; those of the pod alone are shared by all nodes."""

    __slots__ = ("_bindings", "_meter", "_side")

    def __init__(self, side: PodSide, bindings: dict[str, Any], meter: Meter) -> None:
        self._side, self._bindings, self._meter = side, bindings, meter
        self._known: dict[str, Any] = {}

    def paid_from(self, meter: Meter) -> None:
        """From now on, computing is paid from this meter."""
        self._meter = meter

    def __getitem__(self, name: str) -> Any:
        variable = self._side.expressions.variables.get(name)
        if variable is None:
            raise KeyError(name)
        kept = self._known if variable.of_node else self._side.variables
        if name not in kept:
            kept[name] = _value(variable.program, self._bindings, self._meter if variable.of_node else self._side.meter)
        if isinstance(kept[name], CelError):
            raise CelError(f"variables.{name}: {kept[name].message}", absorbable=kept[name].absorbable)
        return kept[name]

    def __contains__(self, name: object) -> bool:
        return name in self._side.expressions.variables


def _value(program: Program, bindings: Mapping[str, Any], meter: Meter) -> Any:
    try:
        return program.evaluate(bindings, meter)
    except ExhaustedError as exhausted:
        return exhausted.error


class _Absent:
    """What a path leads to where there is nothing."""

    def __repr__(self) -> str:
        return "absent"


NOTHING = _Absent()


def at(value: Any, path: tuple[str, ...]) -> Any:
    """What a path leads to; where it enters something that has no members, that as a whole."""
    for name in path:
        if not isinstance(value, Mapping):
            return value
        if name not in value:
            return NOTHING
        value = value[name]
    return value


def frozen(value: Any) -> Any:
    """A hashable stand-in for a value: equal for equal values."""
    if isinstance(value, str) or value is NOTHING:
        return value
    if isinstance(value, Mapping):
        return ("map", *((name, frozen(value[name])) for name in sorted(value)))
    if isinstance(value, list | tuple):
        return ("list", *map(frozen, value))
    return (type(value), value)


@dataclass(frozen=True, slots=True)
class Ask:
    """What a pod wants of a rule: what the expressions read of it."""

    rule: str
    key: tuple[Any, ...]
    failure: str | None = None
    """why `when` has no value"""
    side: PodSide | None = field(default=None, compare=False, repr=False)
