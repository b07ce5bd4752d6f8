"""A node as the scheduler sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from stowplan.objects import wire, wire_cluster
from stowplan.objects.amounts import Amounts, from_resource_list
from stowplan.objects.labels import Labels
from stowplan.objects.requests import nanos
from stowplan.objects.taints import Taint

KNOWN_FEATURES = (
    "DRANodeAllocatableResources",
    "DRAOptionalNodeOperations",
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "InPlacePodVerticalScalingMemoryBackedVolumes",
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
    "VolumeBindMountOptions",
)
"""The declared features that Kubernetes 1.37 knows, sorted."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node; `allocatable` is in scheduler units and holds `pods`, the most pods it may run.

    `raw` is the whole object as JSON; it is not compared, as heartbeats change it all the time.
    """

    name: str
    uid: str
    labels: Labels
    taints: tuple[Taint, ...]
    unschedulable: bool
    allocatable: Amounts
    images: tuple[tuple[tuple[str, ...], int], ...]
    features: frozenset[str]
    raw: bytes = field(default=b"", compare=False, repr=False)


def node(item: wire_cluster.Node, metadata: wire.Metadata, _: str) -> Node:
    """The fact of a node object; ObjectError for malformed or negative quantities."""
    spec = item.spec or wire_cluster.NodeSpec()
    status = item.status or wire_cluster.NodeStatus()
    # the API server fills in a missing allocatable from the capacity (SetDefaults_NodeStatus)
    field = "capacity" if status.allocatable is None else "allocatable"
    allocatable = nanos(status.capacity if status.allocatable is None else status.allocatable, f"status.{field}")
    return Node(
        metadata.name or "",
        metadata.uid or "",
        Labels.of(wire.texts(metadata.labels)),
        tuple(Taint(t.key or "", t.value or "", t.effect or "") for t in spec.taints or ()),
        bool(spec.unschedulable),
        from_resource_list(allocatable, pods=True),
        tuple(_image(image.names or (), image.size_bytes or 0) for image in status.images or ()),
        declared(status.declared_features or ()),
    )


@lru_cache(maxsize=65536)
def _image(names: tuple[str, ...], size: int) -> tuple[tuple[str, ...], int]:
    """An entry of an image list; most nodes hold the same images, so these are shared."""
    return names, size


def declared(features: Sequence[str]) -> frozenset[str]:
    """The known features in a node's list.

    Upstream (`FeatureMapper.TryMap` of component-helpers/nodedeclaredfeatures) merges two sorted lists, so an entry that
    is out of order is lost.
    """
    found: set[str] = set()
    place = 0
    for feature in features:
        while place < len(KNOWN_FEATURES) and KNOWN_FEATURES[place] < feature:
            place += 1
        if place < len(KNOWN_FEATURES) and KNOWN_FEATURES[place] == feature:
            found.add(feature)
            place += 1
    return frozenset(found)
