"""One expression tried on a cluster: its value, or error, and its cost for every node, outside of any decision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stowplan.cel import CelError, Meter
from stowplan.cel.environment import COST_LIMIT
from stowplan.cel.kinds import Type
from stowplan.cel.library.moments import show_duration, show_timestamp
from stowplan.cel.meter import ExhaustedError, Total, together
from stowplan.cel.values import Duration, Optional, Timestamp, TypeValue, check_parts, from_key
from stowplan.objects import Pod
from stowplan.plugins.cel_rule.columns import bindings_of, obstacle
from stowplan.plugins.cel_rule.compiled import Expressions
from stowplan.plugins.cel_rule.nodeview import Scene
from stowplan.plugins.cel_rule.rows import ROW
from stowplan.policy.rules import compile_text
from stowplan.profile import Profile
from stowplan.state import Cluster, Store
from stowplan.text import Diagnostic, Source


@dataclass(frozen=True, slots=True)
class Tried:
    """The value (or CelError) for one node, None for all at once, and what finding it cost."""

    node: str | None
    value: Any
    cost: int


@dataclass(frozen=True, slots=True)
class Tryout:
    """An expression that compiles."""

    expressions: Expressions

    @property
    def type(self) -> Type:
        """Of its values."""
        return self.expressions.value.type

    @property
    def of_pod(self) -> bool:
        """Whether it can only be tried for a pod."""
        reading = self.expressions.reading
        return bool(reading.pod or reading.namespace or reading.beyond)

    def how(self, store: Store, pod: Pod) -> str:
        """`columns`, or why rows have to do some or all of it."""
        reading = self.expressions.reading
        if not reading.of_node:
            return "once: it does not depend on the node"
        why = obstacle(reading)
        if why is not None:
            return f"rows: {why}"
        cluster = Cluster(store)
        side, total = self.expressions.view(pod, cluster), together(cluster.size)
        parts = self.expressions.value.evaluate_rows(bindings_of(side, cluster, total), cluster.size, total).by_rows
        return f"columns, but for {'; '.join(parts)}" if parts else "columns"

    def run(self, store: Store, pod: Pod) -> Iterator[Tried]:
        """Its values for a pod, by name of the node; a single one if it does not depend on the node."""
        total = together(len(store.nodes))
        failure: CelError | None = None
        for node, bindings, meter in self.places(store, pod, total):
            if failure is not None:
                yield Tried(node, failure, 0)
                continue
            try:
                tried = self._tried(node, bindings, meter)
                total.settle(meter, ROW)
            except ExhaustedError as exhausted:
                failure = exhausted.error
                tried = Tried(node, failure, meter.spent)
            yield tried

    def places(self, store: Store, pod: Pod, total: Total) -> Iterator[tuple[str | None, Mapping[str, Any], Meter]]:
        """The variables for each node in order of names, and what pays for them; a single set if no node matters."""
        cluster = Cluster(store)
        side = self.expressions.view(pod, cluster)
        if not self.expressions.reading.of_node:
            yield None, side.bindings, total.part(COST_LIMIT)
            return
        scene = Scene(cluster, self.expressions.reading, pod.namespace, cluster.now)
        for place in np.argsort(store.name_ranks()).tolist():
            meter = total.part(COST_LIMIT)
            yield store.nodes[place].name, side.at(scene, place, meter), meter

    def _tried(self, node: str | None, bindings: Mapping[str, Any], meter: Meter) -> Tried:
        value = self.expressions.value.evaluate(bindings, meter)
        try:
            check_parts(value)  # values can share parts and be far too large to be shown
        except CelError as error:
            value = error
        return Tried(node, value, meter.spent)


def tryout(source: Source, profile: Profile | None = None) -> Tryout | tuple[Diagnostic, ...]:
    """The expression with the variables of a profile, or everything that is wrong with it."""
    found = compile_text(source, profile)
    return Tryout(found) if isinstance(found, Expressions) else found


def shown(value: Any) -> Any:
    """A value of CEL as JSON has it; an error as its message."""
    if isinstance(value, CelError):
        return {"error": value.message}
    if isinstance(value, Optional):
        return shown(value.value) if value.present else None
    if isinstance(value, Mapping):
        return {str(from_key(key)): shown(value[key]) for key in value}
    if isinstance(value, list | tuple):
        return [shown(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    show = _SHOWN.get(type(value), str)
    return show(value)


_SHOWN: dict[type, Callable[[Any], str]] = {
    Timestamp: show_timestamp,
    Duration: show_duration,
    TypeValue: lambda value: value.name,
}
