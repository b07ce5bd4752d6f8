"""The resources that are watched: where they are served, what facts they become, which plugins need them.

Upstream: the informers that kube-scheduler starts (`NewInformerFactory`), pods without the finished ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from stowplan.loop.events import Event, FactChanged, FactGone, NodeChanged, NodeGone, PodChanged, PodGone
from stowplan.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DeviceClass,
    DeviceTaintRule,
    DisruptionBudget,
    Fact,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    ResourceClaim,
    ResourceSlice,
    StorageClass,
    VolumeAttachment,
    Workload,
)
from stowplan.policy.compile import Policy


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource of the API.

    paths      where its objects of all namespaces are listed; the first one that is served counts
    optional   a server may do without it
    plugins    those that need it; empty: it is always needed
    selection  query parameters that narrow lists and watches
    """

    kind: str
    fact: type
    paths: tuple[str, ...]
    plugins: frozenset[str] = frozenset()
    optional: bool = False
    selection: Mapping[str, str] = field(default_factory=dict)

    def key(self, namespace: str, name: str) -> str:
        """The key that the fact of an object has; `namespace` is empty for those that have none."""
        key = f"{namespace}/{name}" if namespace else name
        return f"{self.kind}/{key}" if self.fact is Workload else key

    def gone(self, key: str, uid: str) -> Event:
        """What the loop is told when an object is deleted."""
        if self.fact is Pod:
            return PodGone(key, uid)
        return NodeGone(key) if self.fact is Node else FactGone(self.fact, key)


def changed(fact: Fact) -> Event:
    """What the loop is told when an object is new or has changed."""
    if isinstance(fact, Pod):
        return PodChanged(fact)
    return NodeChanged(fact) if isinstance(fact, Node) else FactChanged(fact)


def _core(kind: str, plural: str, fact: type, *plugins: str) -> Resource:
    return Resource(kind, fact, (f"/api/v1/{plural}",), frozenset(plugins))


def _grouped(kind: str, fact: type, path: str, *plugins: str) -> Resource:
    return Resource(kind, fact, (f"/apis/{path}",), frozenset(plugins))


def _devices(kind: str, fact: type, plural: str, *versions: str) -> Resource:
    paths = tuple(f"/apis/resource.k8s.io/{version}/{plural}" for version in versions or ("v1",))
    # NodeResourcesFit leaves extended resources that a device class offers to DynamicResources
    return Resource(kind, fact, paths, frozenset({"DynamicResources", "NodeResourcesFit"}), optional=True)


_VOLUMES = ("VolumeBinding", "VolumeZone", "NodeVolumeLimits", "VolumeRestrictions")

UNFINISHED = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}

RESOURCES = (
    _core("Node", "nodes", Node),
    _core("Namespace", "namespaces", Namespace),
    _core("PersistentVolume", "persistentvolumes", PersistentVolume, *_VOLUMES),
    _core("PersistentVolumeClaim", "persistentvolumeclaims", PersistentVolumeClaim, *_VOLUMES),
    _core("Service", "services", Workload, "PodTopologySpread"),
    _core("ReplicationController", "replicationcontrollers", Workload, "PodTopologySpread"),
    _grouped("ReplicaSet", Workload, "apps/v1/replicasets", "PodTopologySpread"),
    _grouped("StatefulSet", Workload, "apps/v1/statefulsets", "PodTopologySpread"),
    _grouped("PodDisruptionBudget", DisruptionBudget, "policy/v1/poddisruptionbudgets", "DefaultPreemption"),
    _grouped("StorageClass", StorageClass, "storage.k8s.io/v1/storageclasses", *_VOLUMES),
    _grouped("CSINode", CSINode, "storage.k8s.io/v1/csinodes", *_VOLUMES),
    _grouped("CSIDriver", CSIDriver, "storage.k8s.io/v1/csidrivers", *_VOLUMES),
    _grouped("CSIStorageCapacity", CSIStorageCapacity, "storage.k8s.io/v1/csistoragecapacities", "VolumeBinding"),
    _grouped("VolumeAttachment", VolumeAttachment, "storage.k8s.io/v1/volumeattachments", "NodeVolumeLimits"),
    _devices("ResourceClaim", ResourceClaim, "resourceclaims"),
    _devices("ResourceSlice", ResourceSlice, "resourceslices"),
    _devices("DeviceClass", DeviceClass, "deviceclasses"),
    _devices("DeviceTaintRule", DeviceTaintRule, "devicetaintrules", "v1", "v1beta2", "v1alpha3"),
    Resource("Pod", Pod, ("/api/v1/pods",), selection=UNFINISHED),
)
"""Pods come last: what is not known about the others when they arrive is soon."""


def needed(policies: Iterable[Policy]) -> tuple[Resource, ...]:
    """The resources that some plugin of the policies needs."""
    enabled = {name for policy in policies for profile in policy.profiles.values() for name in profile.plugins}
    return tuple(resource for resource in RESOURCES if not resource.plugins or resource.plugins & enabled)
