"""A node, its topology domains and the cluster as rules see them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import msgspec

from stowplan.cel.errors import CelError
from stowplan.cel.kinds import STRING, Struct, Type
from stowplan.cel.meter import ExhaustedError
from stowplan.cel.touches import Path
from stowplan.objects import Labels, Node, Taint
from stowplan.plugins.cel_rule.amounts import AmountMap, base, in_base_units, of_fact
from stowplan.plugins.cel_rule.podview import ABSENT, SECOND, STRUCTURES, Member, SeatedView, View, since
from stowplan.plugins.cel_rule.reading import CREATED, Reading
from stowplan.plugins.cel_rule.types import object_type, read
from stowplan.state import ALLOCATABLE, AREAS, MATCHING, READY, REQUESTED, Area, Cluster, Numbers, raw_field

MOST_KEYS, MOST_COUNTS = 16, 40
"""Labels whose domains, and sets of pods whose numbers, one rule may ask for: each is found over the whole cluster, and kept."""
_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class LabelTest:
    """Pods with these labels, in some namespaces (None: in all), that are not being deleted."""

    labels: frozenset[tuple[str, str]]
    namespaces: frozenset[str] | None

    def holds(self, namespace: str, labels: Labels, *, terminating: bool) -> bool:
        """Whether such a pod counts."""
        return not terminating and self.supposed(namespace, labels)

    def supposed(self, namespace: str, labels: Labels) -> bool:
        """Whether a pod that is thought to come or go counts."""
        if self.namespaces is not None and namespace not in self.namespaces:
            return False
        return all(labels.get(key) == value for key, value in self.labels)


@dataclass(frozen=True, slots=True)
class Gap:
    """A field that is not there, and how many names of its path are."""

    depth: int


class Scene:
    """The asked rows of a cluster, and what all of them share."""

    def __init__(self, cluster: Cluster, reading: Reading, namespace: str, now: float) -> None:
        self.cluster, self.reading, self.namespace, self.now = cluster, reading, namespace, now
        self._areas: dict[str, Area] = {}
        self._counts: dict[tuple[str, LabelTest], Numbers] = {}
        self._resources: dict[Any, list[tuple[str, Numbers]]] = {}
        self._read: dict[tuple[Path, bytes | int], Any] = {}

    def domains(self) -> set[str]:
        """Labels whose domains somebody asked about."""
        return {*self._areas, *(key for key, _ in self._counts)}

    def area(self, key: str) -> Area:
        """The domains of a label."""
        found = self._areas.get(key)
        if found is None:
            if len(self._areas) >= MOST_KEYS:
                raise ExhaustedError(f"it asks for the domains of more than {MOST_KEYS} labels")
            found = self._areas[key] = self.cluster[AREAS].by(key)
        return found

    def test(self, labels: Mapping[Any, Any], namespaces: Sequence[Any] | None) -> LabelTest:
        """What `pods()` asks for: these labels, in these namespaces (None: that of the pod)."""
        wanted = (self.namespace,) if namespaces is None else namespaces
        if not all(isinstance(item, str) for pair in labels.items() for item in pair):
            raise CelError("pods() takes labels as texts")
        return LabelTest(frozenset(labels.items()), frozenset(wanted))

    def count(self, key: str, test: LabelTest) -> Numbers:
        """Matching pods in the domain of each asked row."""
        found = self._counts.get((key, test))
        if found is None:
            if len(self._counts) >= MOST_COUNTS:
                raise ExhaustedError(f"it asks pods() for more than {MOST_COUNTS} different sets of labels")
            found = self._counts[key, test] = self.cluster[MATCHING].count(test).by(key).at
        return found

    def amounts(self, column: Any, place: int) -> AmountMap:
        """Amounts of one row, as far as the rule reads them."""
        arrays = self._resources.get(column)
        if arrays is None:
            amounts = self.cluster[column]
            names = self.reading.amounts.get(column)
            arrays = [(name, amounts[name]) for name in (amounts.names if names is None else names)]
            self._resources[column] = arrays
        return in_base_units({name: int(array[place]) for name, array in arrays})

    def raw(self, path: Path, place: int) -> Any:
        """A field of the raw object of one row; a Gap where it lacks it. Rows with equal JSON share the value."""
        coded = self.cluster[raw_field(path)]
        text = coded.values[int(coded.codes[place])]
        found = self._read.get((path, text), self)
        if found is self:
            found = self._read[path, text] = decoded(path, text)
        return found


def decoded(path: Path, text: bytes | int) -> Any:
    """A field of the raw object as its column has it: the value, or a Gap."""
    return Gap(text) if isinstance(text, int) else read(_decode(text), _kind_at(path))


def assembled(own: Mapping[str, Any], fields: Iterable[tuple[Path, Any]], *, structure: bool) -> Any:
    """A member of the raw object, made of values and Gaps of its fields and of `own`, its fields that are known otherwise."""
    member: dict[str, Any] = dict(own)
    for path, value in fields:
        if isinstance(value, Gap):
            _ensure(member, path[1 : value.depth])
        elif len(path) == 1:
            return value
        else:
            _put(member, path[1:], value)
    return member if member or structure else ABSENT


def annotations_of(metadata: Mapping[str, Any]) -> Any:
    """`node.annotations`."""
    return metadata.get("annotations", {})


def taint_list(taints: Sequence[Taint]) -> list[dict[str, str]]:
    """`node.taints`."""
    return [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in taints]


def image_list(images: Sequence[tuple[Sequence[str], int]]) -> list[dict[str, Any]]:
    """`node.images`."""
    return [{"name": name, "size": float(size)} for names, size in images for name in names]


def is_true(value: bytes | int) -> bool:
    """`node.ready`."""
    return value == 1


def _part(name: str, view: NodeView) -> Any:
    return view.part(name)


class NodeView(View):
    """One of the asked rows."""

    __slots__ = ("node", "place", "scene")
    cel_type = Type("Node")

    def __init__(self, scene: Scene, place: int) -> None:
        super().__init__()
        self.scene, self.place = scene, place
        self.node: Node = scene.cluster.node(int(scene.cluster.asked[place]))

    def domain(self, key: str) -> DomainView:
        """The topology domain that a label names."""
        return DomainView(self.scene, self.place, key)

    def part(self, name: str) -> Any:
        """A member of the raw object, with those of its fields that the rule reads."""
        own = {"labels": self.node.labels, "name": self.node.name} if name == "metadata" else {}
        fields = ((path, self.scene.raw(path, self.place)) for path in self.scene.reading.raw if path[0] == name)
        return assembled(own, fields, structure=name in STRUCTURES)

    def age(self) -> Any:
        """The time since the node was made."""
        created = self.scene.raw(CREATED, self.place)
        return ABSENT if isinstance(created, Gap) else since(created.ns / SECOND, self.scene.now)

    def free(self) -> AmountMap:
        """What is allocatable and not requested."""
        used = self.scene.amounts(REQUESTED, self.place)
        all_of_it = self.scene.amounts(ALLOCATABLE, self.place)
        return AmountMap({name: all_of_it[name] - used[name] for name in {**all_of_it, **used}})

    members: ClassVar[Mapping[str, Member]] = {
        "name": lambda view: view.node.name,
        "labels": lambda view: view.node.labels,
        "annotations": lambda view: annotations_of(view.part("metadata")),
        "allocatable": lambda view: of_fact(view.node.allocatable),
        "requested": lambda view: view.scene.amounts(REQUESTED, view.place),
        "free": lambda view: view.free(),
        "pods": lambda view: [SeatedView(pod, view.scene.now) for pod in view.scene.cluster.pods_at(view.place)],
        "taints": lambda view: taint_list(view.node.taints),
        "unschedulable": lambda view: view.node.unschedulable,
        "images": lambda view: image_list(view.node.images),
        "age": lambda view: view.age(),
        "ready": lambda view: is_true(view.scene.cluster[READY].values[int(view.scene.cluster[READY].codes[view.place])]),
        **{name: partial(_part, name) for name in ("apiVersion", "kind", "metadata", "spec", "status")},
    }


def _kind_at(path: Path) -> Type:
    """The type of a field of a node."""
    kind: Type = object_type("Node")
    for name in path:
        kind = kind.fields.get(name, STRING) if isinstance(kind, Struct) else kind.params[-1] if kind.params else kind
    return kind


def _ensure(member: dict[str, Any], path: Path) -> dict[str, Any]:
    """What a path leads to, made of empty objects where nothing was put yet."""
    for name in path:
        inner = member.get(name)
        if not isinstance(inner, dict):
            inner = member[name] = dict(inner or {})
        member = inner
    return member


def _put(member: dict[str, Any], path: Path, value: Any) -> None:
    _ensure(member, path[:-1])[path[-1]] = value


class DomainView(View):
    """The nodes that share the value of a label with one of the asked rows; "" stands for the whole cluster."""

    __slots__ = ("area", "key", "place", "scene")
    cel_type = Type("Domain")

    def __init__(self, scene: Scene, place: int, key: str) -> None:
        super().__init__()
        self.scene, self.place, self.key = scene, place, key
        self.area = scene.area(key)

    def pods(self, labels: Mapping[Any, Any], namespaces: Sequence[Any] | None) -> int:
        """How many pods with these labels run there, in these namespaces (None: that of the pod)."""
        return int(self.scene.count(self.key, self.scene.test(labels, namespaces))[self.place])

    def free(self) -> AmountMap:
        """What the nodes have left together."""
        used = self.area.requested(self.place)
        found = {name: base(name, amount - used.get(name, 0)) for name, amount in self.area.allocatable(self.place).items()}
        return AmountMap(found)

    members: ClassVar[Mapping[str, Member]] = {
        "value": lambda view: ABSENT if view.area.value(view.place) is None else view.area.value(view.place),
        "nodes": lambda view: view.area.nodes(view.place),
        "allocatable": lambda view: in_base_units(view.area.allocatable(view.place)),
        "requested": lambda view: in_base_units(view.area.requested(view.place)),
        "free": lambda view: view.free(),
    }
