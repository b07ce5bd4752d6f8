"""Facts about the cluster besides pods and nodes: namespaces, priority classes, workloads, budgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stowplan.objects import wire, wire_cluster
from stowplan.objects.labels import Labels, Selector, label_selector, match_labels


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace, with the label `kubernetes.io/metadata.name` that the API server gives to every one."""

    name: str
    labels: Labels
    raw: bytes = field(default=b"", compare=False, repr=False)
    """the whole object as JSON"""

    @property
    def key(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A scheduling.k8s.io PriorityClass."""

    name: str
    value: int
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"

    @property
    def key(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Workload:
    """What default spreading looks at: a Service, ReplicationController, ReplicaSet or StatefulSet.

    `selector` is None for a Service or ReplicationController without one.
    """

    kind: str
    namespace: str
    name: str
    selector: Selector | None

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """A policy/v1 PodDisruptionBudget: how many more disruptions are allowed, which pods were just disrupted."""

    namespace: str
    name: str
    selector: Selector
    allowed: int
    disrupted: frozenset[str]

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    def covers(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Is such a pod protected? A nil or empty selector protects none (upstream: DefaultPreemption)."""
        return namespace == self.namespace and not self.selector.empty and self.selector.matches(labels)


def namespace(_: wire_cluster.Namespace, metadata: wire.Metadata, __: str) -> Namespace:
    name = metadata.name or ""
    return Namespace(name, Labels.of({**wire.texts(metadata.labels), "kubernetes.io/metadata.name": name}))


def priority_class(item: wire_cluster.PriorityClass, metadata: wire.Metadata, _: str) -> PriorityClass:
    policy = item.preemption_policy or "PreemptLowerPriority"
    return PriorityClass(metadata.name or "", item.value or 0, bool(item.global_default), policy)


def map_selected(item: wire_cluster.MapSelected, metadata: wire.Metadata, kind: str) -> Workload:
    """Service or ReplicationController."""
    chosen = item.spec.selector if item.spec else None
    selector = None if chosen is None else Selector(match_labels(wire.texts(chosen)))
    return Workload(kind, metadata.namespace or "default", metadata.name or "", selector)


def label_selected(item: wire_cluster.LabelSelected, metadata: wire.Metadata, kind: str) -> Workload:
    """ReplicaSet or StatefulSet."""
    selector = label_selector(item.spec.selector if item.spec else None, "spec.selector")
    return Workload(kind, metadata.namespace or "default", metadata.name or "", selector)


def disruption_budget(item: wire_cluster.PodDisruptionBudget, metadata: wire.Metadata, _: str) -> DisruptionBudget:
    status = item.status or wire_cluster.DisruptionStatus()
    return DisruptionBudget(
        metadata.namespace or "default",
        metadata.name or "",
        label_selector(item.spec.selector if item.spec else None, "spec.selector"),
        status.disruptions_allowed or 0,
        frozenset(status.disrupted_pods or ()),
    )
