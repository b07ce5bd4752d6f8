"""Nodes and the smaller kinds, as `wire` does it for pods: the fields that the scheduler reads."""

from __future__ import annotations

from datetime import datetime

from stowplan.objects.wire import Int32, Int64, LabelSelector, Metadata, ResourceList, Texts, Wire


class Taint(Wire, frozen=True):
    key: str | None = None
    value: str | None = None
    effect: str | None = None


class NodeSpec(Wire, frozen=True):
    taints: tuple[Taint, ...] | None = None
    unschedulable: bool | None = None


class Image(Wire, frozen=True):
    names: tuple[str, ...] | None = None
    size_bytes: Int64 | None = None


class NodeStatus(Wire, frozen=True):
    allocatable: ResourceList | None = None
    capacity: ResourceList | None = None
    images: tuple[Image, ...] | None = None
    declared_features: tuple[str, ...] | None = None


class Node(Wire, frozen=True):
    metadata: Metadata | None = None
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class Namespace(Wire, frozen=True):
    metadata: Metadata | None = None


class PriorityClass(Wire, frozen=True):
    metadata: Metadata | None = None
    value: Int32 | None = None
    global_default: bool | None = None
    preemption_policy: str | None = None


class MapSelectorSpec(Wire, frozen=True):
    selector: Texts | None = None


class MapSelected(Wire, frozen=True):
    """Service and ReplicationController."""

    metadata: Metadata | None = None
    spec: MapSelectorSpec | None = None


class LabelSelectorSpec(Wire, frozen=True):
    selector: LabelSelector | None = None


class LabelSelected(Wire, frozen=True):
    """ReplicaSet and StatefulSet."""

    metadata: Metadata | None = None
    spec: LabelSelectorSpec | None = None


class DisruptionStatus(Wire, frozen=True):
    disruptions_allowed: Int32 | None = None
    disrupted_pods: dict[str, datetime | None] | None = None


class PodDisruptionBudget(Wire, frozen=True):
    metadata: Metadata | None = None
    spec: LabelSelectorSpec | None = None
    status: DisruptionStatus | None = None
