"""Volumes, claims and what provisions them, as `wire` does it for pods: the fields that the scheduler reads."""

from __future__ import annotations

from stowplan.objects import wire
from stowplan.objects.wire import Int32, LabelSelector, NodeSelector, Resources, Wire


class Metadata(wire.Metadata, rename="camel", gc=False):
    annotations: wire.Texts | None = None


# volumes and claims


class Source(Wire, frozen=True):
    """Where a persistent volume is; of the many places, those that can be counted as CSI volumes."""

    csi: CSISource | None = None
    gce_persistent_disk: wire.GCEPersistentDisk | None = None
    aws_elastic_block_store: wire.AWSElasticBlockStore | None = None
    azure_disk: wire.AzureDisk | None = None
    azure_file: wire.AzureFile | None = None
    cinder: wire.VolumeID | None = None
    portworx_volume: wire.VolumeID | None = None
    vsphere_volume: wire.VSphereVolume | None = None


class CSISource(Wire, frozen=True):
    driver: str | None = None
    volume_handle: str | None = None


class ClaimReference(Wire, frozen=True):
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class VolumeNodeAffinity(Wire, frozen=True):
    required: NodeSelector | None = None


class VolumeSpec(Source, frozen=True):
    capacity: wire.ResourceList | None = None
    access_modes: tuple[str, ...] | None = None
    claim_ref: ClaimReference | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    node_affinity: VolumeNodeAffinity | None = None


class Phase(Wire, frozen=True):
    phase: str | None = None


class PersistentVolume(Wire, frozen=True):
    metadata: Metadata | None = None
    spec: VolumeSpec | None = None
    status: Phase | None = None


class ClaimSpec(Wire, frozen=True):
    access_modes: tuple[str, ...] | None = None
    selector: LabelSelector | None = None
    resources: Resources | None = None
    volume_name: str | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaim(Wire, frozen=True):
    metadata: Metadata | None = None
    spec: ClaimSpec | None = None
    status: Phase | None = None


# classes, drivers, capacities


class TopologyExpression(Wire, frozen=True):
    key: str | None = None
    values: tuple[str, ...] | None = None


class TopologyTerm(Wire, frozen=True):
    match_label_expressions: tuple[TopologyExpression, ...] | None = None


class StorageClass(Wire, frozen=True):
    metadata: Metadata | None = None
    provisioner: str | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologyTerm, ...] | None = None


class DriverAllocatable(Wire, frozen=True):
    count: Int32 | None = None


class NodeDriver(Wire, frozen=True):
    name: str | None = None
    allocatable: DriverAllocatable | None = None


class CSINodeSpec(Wire, frozen=True):
    drivers: tuple[NodeDriver, ...] | None = None


class CSINode(Wire, frozen=True):
    metadata: Metadata | None = None
    spec: CSINodeSpec | None = None


class CSIDriverSpec(Wire, frozen=True):
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(Wire, frozen=True):
    metadata: Metadata | None = None
    spec: CSIDriverSpec | None = None


class CSIStorageCapacity(Wire, frozen=True):
    metadata: Metadata | None = None
    storage_class_name: str | None = None
    node_topology: LabelSelector | None = None
    capacity: wire.Amount = None
    maximum_volume_size: wire.Amount = None


class AttachmentSource(Wire, frozen=True):
    persistent_volume_name: str | None = None


class AttachmentSpec(Wire, frozen=True):
    attacher: str | None = None
    node_name: str | None = None
    source: AttachmentSource | None = None


class VolumeAttachment(Wire, frozen=True):
    metadata: Metadata | None = None
    spec: AttachmentSpec | None = None
