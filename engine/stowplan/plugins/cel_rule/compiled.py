"""A rule whose expressions are compiled, and the values they have for a pod and a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stowplan.cel import CelError, Meter, Program
from stowplan.cel.environment import COST_LIMIT
from stowplan.cel.meter import ExhaustedError, Total, exceeded
from stowplan.cel.values import Timestamp
from stowplan.objects import Namespace, Pod
from stowplan.plugins.cel_rule.allowance import Allowance, Purpose
from stowplan.plugins.cel_rule.nodeview import DomainView, NodeView, Scene
from stowplan.plugins.cel_rule.podview import SECOND, NamespaceView, PodView, View
from stowplan.plugins.cel_rule.reading import Reading
from stowplan.state import Cluster, Mask
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
    allowance: Allowance = field(default_factory=Allowance)
    """what the rules of the profile may use together"""

    def view(self, pod: Pod, cluster: Cluster) -> PodSide:
        """What they see of a pod."""
        namespace = NamespaceView(pod.namespace, cluster.facts(Namespace).get(pod.namespace))
        return PodSide(self, PodView(pod, cluster.now), namespace, cluster.now)


class PodSide:
    """The variables that do not depend on a node, each computed once."""

    __slots__ = ("_total", "answers", "bindings", "exhausted", "expressions", "fault", "namespace", "now", "pod", "variables")

    def __init__(self, expressions: Expressions, pod: PodView, namespace: NamespaceView, now: float) -> None:
        self.expressions, self.pod, self.namespace, self.now = expressions, pod, namespace, now
        self.variables: dict[str, Any] = {}
        self.answers: dict[Any, dict[Any, Any]] = {}
        """remembered answers by what the node looked like"""
        self._total: Total = expressions.allowance.share(1)
        """the budget of what does not depend on a node"""
        self.fault: Fault | None = None
        """a row without a value, if there is one: where it has one again, another takes its place"""
        self.exhausted: str | None = None
        """why no node has an answer: what all of them together need is too much"""
        self.bindings: dict[str, Any] = {
            "pod": pod,
            "namespace": namespace,
            "now": Timestamp(int(now * SECOND)),
            "params": expressions.params,
        }
        self.bindings["variables"] = VariableView(self, self.bindings, Meter(0))

    def once(self, program: Program, bindings: Mapping[str, Any]) -> Any:
        """The value of what does not depend on a node. ExhaustedError where that takes too much work."""
        meter = self._total.part(self._total.limit)
        value = program.evaluate(bindings, meter)
        self._total.settle(meter)
        return value

    def key(self) -> tuple[Any, ...]:
        """All that the expressions read of the pod: pods with equal keys get equal answers."""
        reading = self.expressions.reading
        pod = tuple(frozen(at(self.pod, path)) for path in sorted(reading.pod))
        namespace = tuple(frozen(at(self.namespace, path)) for path in sorted(reading.namespace))
        home = self.pod.pod.namespace if reading.beyond else None  # pods() counts in it
        return (pod, namespace, home, self.now if reading.timed else None)

    def looked(self, cluster: Cluster, failed: Mask | None, why: Callable[[int], str]) -> None:
        """Note whether the asked rows have values; `why` one of them has none is asked at most once."""
        if cluster.changes is not None:
            return
        if self.fault is not None and (cluster.asked == self.fault.row).any():
            self.fault = None
        if self.fault is None and failed is not None and failed.any():
            place = int(failed.argmax())
            self.fault = Fault(int(cluster.asked[place]), why(place))

    def at(self, scene: Scene, place: int, meter: Meter) -> dict[str, Any]:
        """The variables for one of the asked rows; computing them is paid from the meter."""
        bindings = dict(self.bindings)
        bindings["node"] = NodeView(scene, place)
        if self.expressions.reading.cluster:
            bindings["cluster"] = DomainView(scene, place, "")
        bindings["variables"] = VariableView(self, bindings, meter)
        return bindings


@dataclass(frozen=True, slots=True)
class Fault:
    """A row for which a rule has no value, and why."""

    row: int
    why: str


class Texts:
    """Messages made by expressions, with a budget of their own: what is said of a decision must not change it."""

    __slots__ = ("_total",)

    def __init__(self, allowance: Allowance, rows: int) -> None:
        self._total: Total = allowance.share(rows, Purpose.TELLING)

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
            kept[name] = self._value(variable)
        if isinstance(kept[name], CelError):
            raise CelError(f"variables.{name}: {kept[name].message}", absorbable=kept[name].absorbable)
        return kept[name]

    def _value(self, variable: Variable) -> Any:
        if variable.of_node:
            return variable.program.evaluate(self._bindings, self._meter)
        try:
            return self._side.once(variable.program, self._bindings)
        except ExhaustedError as exhausted:
            return exhausted.error

    def __contains__(self, name: object) -> bool:
        return name in self._side.expressions.variables


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

    @property
    def missing(self) -> str | None:
        """Why the rule has no value for the pod on any node."""
        return self.failure or (None if self.side is None else self.side.exhausted)

    @property
    def no_value(self) -> NoValue | None:
        """Why it has none on some node, as far as nodes were looked at."""
        side, why = self.side, self.failure
        if why is None and side is not None:
            why = side.exhausted or (None if side.fault is None else side.fault.why)
        if why is None:
            return None
        return NoValue(why, (side is not None and side.exhausted is not None) or exceeded().message in why)


class NoValue(NamedTuple):
    """Why a rule has no value; `exhausted`: a budget was used up, its own or that of all rules."""

    why: str
    exhausted: bool


def no_values(asks: Mapping[str, Any]) -> dict[str, NoValue]:
    """The rules that had no value for some node; other plugins always have one."""
    found = {}
    for name, ask in asks.items():
        if type(ask) is Ask and (said := ask.no_value) is not None:
            found[name] = said
    return found
