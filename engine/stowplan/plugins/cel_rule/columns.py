"""Nodes as columns of the expression language: the same members as `NodeView`, for all asked rows at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from stowplan.cel import CelError
from stowplan.cel.access import get_field
from stowplan.cel.column import Column, Dictionary, Elements, Failures, Ragged, View
from stowplan.cel.errors import no_key
from stowplan.cel.lift import each
from stowplan.cel.meter import Total
from stowplan.cel.values import NONE, Optional
from stowplan.plugins.cel_rule.amounts import MILLI
from stowplan.plugins.cel_rule.compiled import PodSide
from stowplan.plugins.cel_rule.crowdcolumns import OF_KIND, CrowdColumns
from stowplan.plugins.cel_rule.domaincolumns import DomainColumns, NodeProbe, calls
from stowplan.plugins.cel_rule.members import Derive, Members, Plain
from stowplan.plugins.cel_rule.nodeview import NodeView, Scene, annotations_of, image_list, is_true, taint_list
from stowplan.plugins.cel_rule.rawcolumns import RawColumns, ages
from stowplan.plugins.cel_rule.reading import Reading
from stowplan.state import (
    ALLOCATABLE,
    CROWD,
    IMAGE_LISTS,
    LABELS,
    NAME,
    READY,
    REQUESTED,
    TAINTS,
    UNSCHEDULABLE,
    Cluster,
    Coded,
    label,
)
from stowplan.state import Column as Fact

_RAW = frozenset(("apiVersion", "kind", "metadata", "spec", "status"))


def suits(reading: Reading) -> bool:
    """Whether all that a rule reads of nodes can be had as columns."""
    return obstacle(reading) is None


def obstacle(reading: Reading) -> str | None:
    """What keeps a rule from being evaluated in columns; None if nothing does."""
    if not reading.of_pods <= OF_KIND:
        return f"it reads {', '.join(sorted(reading.of_pods - OF_KIND))} of the pods on a node"
    return "it reads all amounts at once" if None in reading.amounts.values() else None


class NodeColumns(Members):
    """`node`."""

    __slots__ = ()

    def value(self, place: int) -> NodeView:
        return NodeView(self.scene, place)

    def derive(self, tag: Hashable, function: Derive) -> View:
        if calls(tag, "domain"):
            return DomainColumns(self.scene, function(NodeProbe()))
        if isinstance(tag, tuple) and tag[-1] in _RAW and tag[0] in ("field", "has", "look"):
            paths = [path for path in self.scene.reading.raw if path[0] == tag[-1]]
            if tag[0] == "field" and tag[-1] == "metadata":
                return MetadataColumns(self.scene, paths, ((tag, function),))
            if paths:
                return RawColumns(self.scene, paths, ((tag, function),))
        return super().derive(tag, function)

    def known(self, kind: str, key: Any) -> View | None:
        make = _MEMBERS.get(key) if kind == "field" else None
        return None if make is None else make(self.scene)


class MetadataColumns(RawColumns):
    """`node.metadata`, whose labels and name are known without the raw object."""

    __slots__ = ()

    def derive(self, tag: Hashable, function: Derive) -> View:
        if tag == ("field", "labels"):
            return LabelColumns(self._scene)
        if tag == ("field", "name"):
            return Plain(coded(self._scene.cluster[NAME], CelError("absent")))
        return super().derive(tag, function)


class LabelColumns(Members):
    """`node.labels`."""

    __slots__ = ()

    def value(self, place: int) -> Any:
        return self.scene.cluster.node(int(self.scene.cluster.asked[place])).labels

    def every(self) -> View:
        if LABELS not in self.scene.reading.coded:
            return super().every()
        return Plain(coded(self.scene.cluster[LABELS], CelError("absent")))

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


def _annotations(scene: Scene) -> View:
    metadata = MetadataColumns(scene, [path for path in scene.reading.raw if path[0] == "metadata"])
    return metadata.derive(("field", "metadata"), get_field("metadata")).derive(("or empty", "annotations"), annotations_of)


def _pods(scene: Scene) -> View:
    return Ragged(scene.cluster[CROWD].offsets, CrowdColumns(scene.cluster, scene.now), None)


def _age(scene: Scene) -> View | None:
    passed = ages(scene)
    return None if passed is None else Plain(passed)


def _fact(column: Fact[Coded[Any]], seen: Callable[[Any], Any] | None, scene: Scene) -> View:
    """`seen`: what expressions see of a value of the column, where that is not the value itself."""
    found = coded(scene.cluster[column], CelError("absent"))
    return Plain(found if seen is None else each(found, ("seen", seen), seen))


_MEMBERS: dict[Any, Callable[[Scene], View | None]] = {
    "labels": LabelColumns,
    "annotations": _annotations,
    "pods": _pods,
    "age": _age,
    "name": partial(_fact, NAME, None),
    "unschedulable": partial(_fact, UNSCHEDULABLE, None),
    "ready": partial(_fact, READY, is_true),
    "taints": partial(_fact, TAINTS, taint_list),
    "images": partial(_fact, IMAGE_LISTS, image_list),
    **{which: partial(AmountColumns, which=which) for which in ("allocatable", "requested", "free")},
}
"""The members of a node that have columns."""


class VariableColumns(View):
    """`variables`, of which some differ between nodes."""

    __slots__ = ("_bindings", "_found", "_side", "_size", "_total")

    def __init__(self, side: PodSide, bindings: Mapping[str, Any], size: int, total: Total) -> None:
        self._side, self._bindings, self._size, self._total = side, bindings, size, total
        self._found: dict[str, Column] = {}

    def __len__(self) -> int:
        return self._size

    def derive(self, tag: Hashable, function: Derive) -> View:  # noqa: ARG002 - all of its members are known
        assert isinstance(tag, tuple)
        kind, name = tag[0], tag[-1]
        variable = self._side.expressions.variables[name]
        found = self._found.get(name)
        if found is None:
            answer = variable.program.evaluate_rows(self._bindings, self._size, self._total)
            found = self._found[name] = named(answer.column, name)
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


def bindings_of(side: PodSide, cluster: Cluster, total: Total) -> dict[str, Any]:
    """The variables of the expressions for all asked rows; computing them is paid from the total."""
    reading = side.expressions.reading
    if cluster.watch is not None:
        deque(reading.apart(cluster), maxlen=0)  # the watch must learn what tells rows apart
    scene = Scene(cluster, reading, side.pod.pod.namespace, side.now)
    bindings = dict(side.bindings)
    bindings["node"] = NodeColumns(scene)
    if reading.cluster:
        bindings["cluster"] = DomainColumns(scene, "")
    if any(variable.of_node for variable in side.expressions.variables.values()):
        bindings["variables"] = VariableColumns(side, bindings, cluster.size, total)
    return bindings
