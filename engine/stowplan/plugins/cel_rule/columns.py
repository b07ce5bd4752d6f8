"""Nodes as columns of the expression language: the same members as `NodeView`, for all asked rows at once.

Only what stands in columns of the cluster is here; a rule that reads anything else of a node goes row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from stowplan.cel import CelError
from stowplan.cel.column import Column, Dictionary, Elements, Failures, Ragged, Rows, View
from stowplan.cel.errors import no_key
from stowplan.cel.lift import each
from stowplan.cel.values import NONE, Optional
from stowplan.plugins.cel_rule.amounts import MILLI
from stowplan.plugins.cel_rule.compiled import PodSide
from stowplan.plugins.cel_rule.nodeview import NodeView, Scene
from stowplan.plugins.cel_rule.podview import SeatedView
from stowplan.plugins.cel_rule.reading import Reading
from stowplan.state import ALLOCATABLE, CROWD, LABELS, NAME, REQUESTED, TAINTS, UNSCHEDULABLE, Cluster, Coded, Crowd, label
from stowplan.state import Column as Fact
from stowplan.state.changes import Kinds

Derive: TypeAlias = Callable[[Any], Any]
_FACTS: dict[Any, Fact[Coded[Any]]] = {"name": NAME, "unschedulable": UNSCHEDULABLE}
_CODED = frozenset((NAME, UNSCHEDULABLE, TAINTS))
_OF_KIND = frozenset(("labels", "namespace", "priority", "requests"))
"""members that all pods of one kind share"""


def suits(reading: Reading) -> bool:
    """Whether all that a rule reads of nodes can be had as columns."""
    return obstacle(reading) is None


def obstacle(reading: Reading) -> str | None:
    """What keeps a rule from being evaluated in columns; None if nothing does."""
    if reading.beyond:
        return "it looks at topology domains or the cluster: once for nodes that look alike"
    if reading.raw:
        fields = ", ".join(sorted(".".join(path) for path in reading.raw))
        return f"it reads the object itself ({fields}): once for each distinct value"
    if not reading.of_pods <= _OF_KIND:
        return f"it reads {', '.join(sorted(reading.of_pods - _OF_KIND))} of the pods on a node"
    others = [column.family for column in reading.coded if column not in _CODED and column.family != LABELS.family]
    if others:
        return f"it reads {', '.join(others)}: once for each distinct value"
    return "it reads all amounts at once" if None in reading.amounts.values() else None


class Plain(View):
    """A column as a view."""

    __slots__ = ("_column",)

    def __init__(self, column: Column) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def derive(self, tag: Hashable, function: Derive) -> View:
        return Plain(each(self._column, tag, function))

    def column(self) -> Column:
        return self._column

    def elements(self, names: int) -> Elements | None:
        return Rows(self._column.rows()).elements(names)

    def row(self, index: int) -> Any:
        return self._column.row(index)


class Members(View):
    """Structured values of the asked rows; what is not known in columns is computed row by row."""

    __slots__ = ("_rows", "scene")

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._rows: Rows | None = None

    def __len__(self) -> int:
        return self.scene.cluster.size

    def value(self, place: int) -> Any:
        """The value of one row."""
        raise NotImplementedError

    def known(self, kind: str, key: Any) -> View | None:
        """What a step leads to, if there is a column for it; `kind` is field, has, in, look or an index operator."""
        raise NotImplementedError

    def derive(self, tag: Hashable, function: Derive) -> View:
        if isinstance(tag, tuple) and len(tag) > 1 and isinstance(tag[-1], str):
            found = self.known(tag[0], tag[-1])
            if found is not None:
                return found
        return self._all().derive(tag, function)

    def _all(self) -> Rows:
        if self._rows is None:
            self._rows = Rows([self.value(place) for place in range(len(self))])
        return self._rows

    def column(self) -> Column:
        return self._all().column()

    def elements(self, names: int) -> Elements | None:
        return self._all().elements(names)

    def row(self, index: int) -> Any:
        return self.value(index)


class NodeColumns(Members):
    """`node`."""

    __slots__ = ()

    def value(self, place: int) -> NodeView:
        return NodeView(self.scene, place)

    def known(self, kind: str, key: Any) -> View | None:
        if kind != "field":
            return None
        if key in ("labels", "metadata"):  # of the metadata only labels and name are read, or this would not run
            return LabelColumns(self.scene) if key == "labels" else NodeColumns(self.scene)
        if key in ("allocatable", "requested", "free"):
            return AmountColumns(self.scene, key)
        if key == "pods":
            crowd = self.scene.cluster[CROWD]
            return Ragged(crowd.offsets, CrowdColumns(crowd, self.scene.now), None)
        if key in _FACTS:
            return Plain(coded(self.scene.cluster[_FACTS[key]], CelError("absent")))
        return None


class LabelColumns(Members):
    """`node.labels`."""

    __slots__ = ()

    def value(self, place: int) -> Any:
        return self.scene.cluster.node(int(self.scene.cluster.asked[place])).labels

    def known(self, kind: str, key: Any) -> View | None:
        view = self.scene.cluster[label(key)]
        if kind in ("field", "_[_]"):
            return Plain(coded(view, no_key(key)))
        if kind in ("has", "in"):
            return Plain(Column("bool", view.present()))
        return Plain(optional(view)) if kind in ("look", "_[?_]") else None


class AmountColumns(Members):
    """`node.allocatable`, `node.requested` or `node.free`, in base units."""

    __slots__ = ("_which",)

    def __init__(self, scene: Scene, which: str) -> None:
        super().__init__(scene)
        self._which = which

    def value(self, place: int) -> Any:
        return NodeView(self.scene, place)[self._which]

    def known(self, kind: str, key: Any) -> View | None:
        if kind not in ("field", "_[_]"):
            return None
        cluster = self.scene.cluster
        unit = MILLI if key == "cpu" else 1.0
        if self._which != "free":
            return Plain(Column("double", cluster[ALLOCATABLE if self._which == "allocatable" else REQUESTED][key] / unit))
        return Plain(Column("double", cluster[ALLOCATABLE][key] / unit - cluster[REQUESTED][key] / unit))


_kept: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
"""By the storage of a coded column: how its codes look to the language, for as many values as it had."""


def _forms(view: Coded[Any]) -> dict[str, Any]:
    forms = _kept.get(view.source)
    if forms is None or forms["size"] != len(view.values):
        values = list(view.values)
        present = [value for value in values if value is not None]
        codes = np.cumsum([value is not None for value in values], dtype=np.int32) - 1
        absent = values.index(None) if None in values else None
        forms = _kept[view.source] = {
            "size": len(values),
            "codes": codes,
            "absent": absent,
            "words": Dictionary(present),
            "optional": Dictionary([NONE if value is None else Optional(present=True, value=value) for value in values]),
        }
    return forms


def coded(view: Coded[Any], missing: CelError) -> Column:
    """A dictionary-encoded column; rows without a value have the error."""
    forms = _forms(view)
    if forms["absent"] is None:
        return Column("coded", view.codes, forms["words"])
    gone = view.codes == forms["absent"]
    if not gone.any():
        return Column("coded", forms["codes"][view.codes], forms["words"])
    return Column(
        "coded", np.where(gone, -1, forms["codes"][view.codes]), forms["words"], Failures(gone.astype(np.int32), (missing,))
    )


def optional(view: Coded[Any]) -> Column:
    """The same with optional values."""
    return Column("coded", view.codes, _forms(view)["optional"])


class CrowdColumns(View):
    """All pods on the asked nodes, one after the other."""

    __slots__ = ("_crowd", "_now")

    def __init__(self, crowd: Crowd, now: float) -> None:
        self._crowd, self._now = crowd, now

    def __len__(self) -> int:
        return len(self._crowd.codes)

    def derive(self, tag: Hashable, function: Derive) -> View:
        if isinstance(tag, tuple) and tag[0] == "field" and tag[1] in _OF_KIND:
            return Spread(_by_kind(self._crowd.kinds, tag[1]), self._crowd.codes)
        return Rows([self.row(index) for index in range(len(self))]).derive(tag, function)

    def column(self) -> Column:
        return Rows([self.row(index) for index in range(len(self))]).column()

    def elements(self, names: int) -> Elements | None:  # noqa: ARG002
        return None

    def row(self, index: int) -> Any:
        return SeatedView(self._crowd.pod(index), self._now)


class Spread(View):
    """Values that are kept for each kind of pod, over pods: what is derived is computed by kind, once."""

    __slots__ = ("_codes", "_of_kinds")

    def __init__(self, of_kinds: View, codes: NDArray[np.int32]) -> None:
        self._of_kinds, self._codes = of_kinds, codes

    def __len__(self) -> int:
        return len(self._codes)

    def derive(self, tag: Hashable, function: Derive) -> View:
        return Spread(self._of_kinds.derive(tag, function), self._codes)

    def column(self) -> Column:
        return self._of_kinds.column().take(self._codes)

    def elements(self, names: int) -> Elements | None:
        return Rows([self.row(index) for index in range(len(self))]).elements(names)

    def row(self, index: int) -> Any:
        return self._of_kinds.row(int(self._codes[index]))


_by_kinds: WeakKeyDictionary[Kinds, dict[str, Rows]] = WeakKeyDictionary()


def _by_kind(kinds: Kinds, member: str) -> Rows:
    """A member of the pods of each kind; what is derived from it is kept with it."""
    known = _by_kinds.setdefault(kinds, {})
    found = known.get(member)
    if found is None or len(found) != len(kinds.pods):
        found = known[member] = Rows([SeatedView(pod, 0.0)[member] for pod in kinds.pods])
    return found


class VariableColumns(View):
    """`variables`, of which some differ between nodes."""

    __slots__ = ("_bindings", "_found", "_side", "_size")

    def __init__(self, side: PodSide, bindings: Mapping[str, Any], size: int) -> None:
        self._side, self._bindings, self._size = side, bindings, size
        self._found: dict[str, Column] = {}

    def __len__(self) -> int:
        return self._size

    def derive(self, tag: Hashable, function: Derive) -> View:  # noqa: ARG002 - all of its members are known
        assert isinstance(tag, tuple)
        kind, name = tag[0], tag[-1]
        variable = self._side.expressions.variables[name]
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = named(variable.program.evaluate_rows(self._bindings, self._size).column, name)
        if kind == "field":
            return Plain(found)
        if kind == "look":
            return Plain(each(found, tag, lambda value: Optional(present=True, value=value)))
        return Plain(Column("bool", np.ones(self._size, dtype=np.bool_)))  # has()

    def column(self) -> Column:
        raise CelError("the variables as a whole have no value")

    def elements(self, names: int) -> Elements | None:  # noqa: ARG002
        return None

    def row(self, index: int) -> Any:
        raise CelError(f"the variables as a whole have no value in row {index}")


def named(column: Column, name: str) -> Column:
    """The column of a variable, whose errors tell its name."""
    if column.failures is None:
        return column
    table = tuple(CelError(f"variables.{name}: {error.message}", absorbable=error.absorbable) for error in column.failures.table)
    return Column(column.kind, column.data, column.words, Failures(column.failures.codes, table))


def bindings_of(side: PodSide, cluster: Cluster) -> dict[str, Any]:
    """The variables of the expressions for all asked rows."""
    scene = Scene(cluster, side.expressions.reading, side.pod.pod.namespace, side.now)
    bindings = dict(side.bindings)
    bindings["node"] = NodeColumns(scene)
    if any(variable.of_node for variable in side.expressions.variables.values()):
        bindings["variables"] = VariableColumns(side, bindings, cluster.size)
    return bindings
