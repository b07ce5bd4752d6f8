"""Facts about storage: volumes, claims, classes, drivers, and what the storage rules of several plugins have in common.

A raw manifest may lack what the API server fills in; a missing volume mode is Filesystem, a missing binding mode Immediate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from stowplan.objects import wire, wire_storage
from stowplan.objects.errors import ObjectError
from stowplan.objects.labels import Labels, Requirement, Selector, label_selector
from stowplan.objects.migration import Disk, disk_of, migrated_affinity
from stowplan.objects.nodeselector import NodeSelector, NodeTerm, node_selector
from stowplan.objects.pod import Pod
from stowplan.objects.quantity import QuantityError, parse, whole
from stowplan.objects.requests import nanos

READ_WRITE_ONCE_POD = "ReadWriteOncePod"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
_CLASS = "volume.beta.kubernetes.io/storage-class"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
_STORAGE = "storage"
_ANYTHING = Requirement("", complement=True, missing=True)


class ClaimKey(NamedTuple):
    """Whom a volume is reserved for; an empty uid stands for any claim of the name."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, eq=False)
class PersistentVolume:
    """A volume; equality is identity, since asks hold thousands of them. Its affinity is about labels alone.

    capacity   nano bytes
    single     the label and value that its affinity wants, where that is all it wants, as local volumes do
    disk       the CSI volume it is, or that its in-tree source stands for
    migrated   its node affinity on nodes where that source has been migrated
    """

    name: str
    labels: Labels
    storage_class: str
    capacity: int
    access_modes: frozenset[str]
    volume_mode: str
    attributes_class: str
    claim: ClaimKey | None
    affinity: NodeSelector | None
    single: tuple[str, str] | None
    disk: Disk | None
    migrated: NodeSelector | None
    available: bool
    terminating: bool

    @property
    def key(self) -> str:
        return self.name

    def reserved_for(self, claim: PersistentVolumeClaim) -> bool:
        """Is it bound or pre-bound to this claim (upstream: `IsVolumeBoundToClaim`)?"""
        mine = self.claim
        return mine is not None and mine[:2] == (claim.namespace, claim.name) and mine.uid in ("", claim.uid)

    def suits(self, claim: PersistentVolumeClaim) -> bool:
        """Could it be the claim's, whatever the node (upstream: `FindMatchingVolume`)?"""
        return (
            (self.claim is None or self.reserved_for(claim))
            and self.capacity >= (claim.requested or 0)
            and self.volume_mode == claim.volume_mode
            and self.attributes_class == claim.attributes_class
            and not self.terminating
            and (self.claim is not None or self._offers(claim))
        )

    def _offers(self, claim: PersistentVolumeClaim) -> bool:
        """What matters only for a volume that is not reserved."""
        selected = claim.selector is None or claim.selector.matches(self.labels)
        return self.available and selected and claim.access_modes <= self.access_modes


@dataclass(frozen=True, slots=True, eq=False)
class PersistentVolumeClaim:
    """A claim; equality is identity. `requested` is nano bytes, None without a storage request; `owner` a controller's uid."""

    namespace: str
    name: str
    uid: str
    owner: str
    storage_class: str
    volume: str
    bound: bool
    selected_node: str | None
    access_modes: frozenset[str]
    requested: int | None
    selector: Selector | None
    volume_mode: str
    attributes_class: str
    lost: bool
    terminating: bool

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class StorageClass:
    """A storage class. `topologies`: label requirements of which one set must be met where volumes are provisioned."""

    name: str
    provisioner: str
    delayed: bool
    topologies: tuple[tuple[Requirement, ...], ...]

    @property
    def key(self) -> str:
        return self.name

    @property
    def provisions(self) -> bool:
        """Are volumes made on demand?"""
        return self.provisioner not in ("", NO_PROVISIONER)


@dataclass(frozen=True, slots=True)
class CSINode:
    """The CSI drivers on a node, each with how many volumes it can attach there (None: any number)."""

    name: str
    drivers: tuple[tuple[str, int | None], ...]
    migrated: frozenset[str]
    """in-tree plugins that the node serves through CSI drivers"""

    @property
    def key(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class CSIDriver:
    """A CSI driver: whether it tells where storage is left, and whether its volumes need a node that has it."""

    name: str
    storage_capacity: bool
    must_be_installed: bool

    @property
    def key(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class CSIStorageCapacity:
    """Storage that a class has left in a part of the cluster: bytes, and the largest volume that can be had."""

    namespace: str
    name: str
    storage_class: str
    topology: Selector
    capacity: int
    largest: int | None

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class VolumeAttachment:
    """A volume that is, or is being, attached to a node."""

    name: str
    attacher: str
    node: str
    volume: str

    @property
    def key(self) -> str:
        return self.name


# Volumes of pods


class Use(NamedTuple):
    """A pod's use of a claim. The claim of a generic ephemeral volume must have been made for the pod."""

    claim: str
    ephemeral: bool


def use_of(pod: Pod, volume: wire.Volume) -> Use | None:
    """The claim that a volume of a pod stands for."""
    if volume.persistent_volume_claim is not None:
        return Use(volume.persistent_volume_claim.claim_name or "", False)
    if volume.ephemeral is not None:
        return Use(f"{pod.name}-{volume.name or ''}", True)
    return None


def uses(pod: Pod) -> Iterator[Use]:
    """The claims that a pod uses, repeated as written."""
    for volume in pod.spec.volumes:
        use = use_of(pod, volume)
        if use is not None:
            yield use


def not_found(claim: str) -> str:
    """What a lister says of a claim that is not there."""
    return f'persistentvolumeclaim "{claim}" not found'


def not_owner(pod: Pod, claim: PersistentVolumeClaim) -> str | None:
    """Why the claim is not that of the pod's ephemeral volume (upstream: `ephemeral.VolumeIsForPod`)."""
    if claim.owner and claim.owner == pod.uid:
        return None
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


class Mount(NamedTuple):
    """A disk that a pod names itself, and which two pods of a node may not both write to."""

    kind: str
    identity: tuple[str, ...]
    monitors: frozenset[str]
    shareable: bool
    """the pod only reads, and so may others"""

    def conflicts(self, other: Mount) -> bool:
        """Upstream: VolumeRestrictions' `isVolumeConflict`."""
        same = self.kind == other.kind and self.identity == other.identity
        return same and not (self.shareable and other.shareable) and (self.kind != "rbd" or bool(self.monitors & other.monitors))


def mounts(pod: Pod) -> frozenset[Mount]:
    """The disks that a pod names itself."""
    volumes = pod.spec.volumes
    return frozenset(mount for volume in volumes for mount in _mounts(volume)) if volumes else _NO_MOUNTS


_NO_MOUNTS: frozenset[Mount] = frozenset()


def _mounts(volume: wire.Volume) -> Iterator[Mount]:
    if (gce := volume.gce_persistent_disk) is not None:
        yield Mount("gce", (gce.pd_name or "",), frozenset(), bool(gce.read_only))
    if (ebs := volume.aws_elastic_block_store) is not None:
        yield Mount("ebs", (ebs.volume_id or "",), frozenset(), False)
    if (iscsi := volume.iscsi) is not None:
        yield Mount("iscsi", (iscsi.iqn or "",), frozenset(), bool(iscsi.read_only))
    if (rbd := volume.rbd) is not None:
        # the API server fills in the pool
        yield Mount("rbd", (rbd.pool or "rbd", rbd.image or ""), frozenset(rbd.monitors or ()), bool(rbd.read_only))


# Reading


def persistent_volume(item: wire_storage.PersistentVolume, metadata: wire_storage.Metadata, _: str) -> PersistentVolume:
    spec = item.spec or wire_storage.VolumeSpec()
    labels = Labels.of(wire.texts(metadata.labels))
    affinity = spec.node_affinity.required if spec.node_affinity else None
    disk = _disk(spec, labels)
    migrated = affinity
    if disk is not None and disk.plugin is not None and disk.plugin.topology:
        migrated = migrated_affinity(affinity, labels, disk.plugin.topology)
    reference, required = spec.claim_ref, _volume_affinity(affinity)
    return PersistentVolume(
        metadata.name or "",
        labels,
        wire.texts(metadata.annotations).get(_CLASS, spec.storage_class_name or ""),
        nanos(spec.capacity, "spec.capacity").get(_STORAGE, 0),
        frozenset(spec.access_modes or ()),
        spec.volume_mode or "Filesystem",
        spec.volume_attributes_class_name or "",
        None if reference is None else ClaimKey(reference.namespace or "", reference.name or "", reference.uid or ""),
        required,
        _single(required),
        disk,
        _volume_affinity(migrated),
        item.status is not None and item.status.phase == "Available",
        metadata.deletion_timestamp is not None,
    )


def _disk(spec: wire_storage.VolumeSpec, labels: Labels) -> Disk | None:
    if spec.csi is not None:
        return Disk(spec.csi.driver or "", spec.csi.volume_handle or "")
    return disk_of(spec, labels)


def _volume_affinity(written: wire.NodeSelector | None) -> NodeSelector | None:
    """The node affinity of a volume: it is asked about labels alone, so requirements on fields hold for every node."""
    if written is None:
        return None
    selector = node_selector(written, "spec.nodeAffinity.required")
    return NodeSelector(tuple(NodeTerm(t.expressions or (_ANYTHING,), (), t.error) if t.fields else t for t in selector.terms))


def _single(affinity: NodeSelector | None) -> tuple[str, str] | None:
    terms = affinity.terms if affinity is not None else ()
    if len(terms) != 1 or terms[0].error is not None or len(terms[0].expressions) != 1:
        return None
    wanted = terms[0].expressions[0]
    value = next(iter(wanted.values), "")
    return (wanted.key, value) if wanted == Requirement(wanted.key, frozenset({value})) else None


def claim(item: wire_storage.PersistentVolumeClaim, metadata: wire_storage.Metadata, _: str) -> PersistentVolumeClaim:
    spec = item.spec or wire_storage.ClaimSpec()
    annotations = wire.texts(metadata.annotations)
    requests = nanos(spec.resources.requests if spec.resources else None, "spec.resources.requests")
    volume = spec.volume_name or ""
    return PersistentVolumeClaim(
        metadata.namespace or "default",
        metadata.name or "",
        metadata.uid or "",
        next((owner.uid or "" for owner in metadata.owner_references or () if owner.controller), ""),
        annotations.get(_CLASS, spec.storage_class_name or ""),
        volume,
        bool(volume) and _BIND_COMPLETED in annotations,
        annotations.get(_SELECTED_NODE),
        frozenset(spec.access_modes or ()),
        requests.get(_STORAGE),
        None if spec.selector is None else label_selector(spec.selector, "spec.selector"),
        spec.volume_mode or "Filesystem",
        spec.volume_attributes_class_name or "",
        item.status is not None and item.status.phase == "Lost",
        metadata.deletion_timestamp is not None,
    )


def storage_class(item: wire_storage.StorageClass, metadata: wire_storage.Metadata, _: str) -> StorageClass:
    topologies = (
        tuple(Requirement(e.key or "", frozenset(e.values or ())) for e in term.match_label_expressions or ())
        for term in item.allowed_topologies or ()
    )
    delayed = item.volume_binding_mode == "WaitForFirstConsumer"
    return StorageClass(metadata.name or "", item.provisioner or "", delayed, tuple(topologies))


def csi_node(item: wire_storage.CSINode, metadata: wire_storage.Metadata, _: str) -> CSINode:
    drivers = (item.spec.drivers if item.spec else None) or ()
    migrated = wire.texts(metadata.annotations).get(_MIGRATED, "")
    return CSINode(
        metadata.name or "",
        tuple((driver.name or "", driver.allocatable.count if driver.allocatable else None) for driver in drivers),
        frozenset(migrated.split(",")) - {""},
    )


def csi_driver(item: wire_storage.CSIDriver, metadata: wire_storage.Metadata, _: str) -> CSIDriver:
    spec = item.spec or wire_storage.CSIDriverSpec()
    return CSIDriver(metadata.name or "", bool(spec.storage_capacity), bool(spec.prevent_pod_scheduling_if_missing))


def csi_storage_capacity(item: wire_storage.CSIStorageCapacity, metadata: wire_storage.Metadata, _: str) -> CSIStorageCapacity:
    capacity = _bytes(item.capacity, "capacity")
    largest = _bytes(item.maximum_volume_size, "maximumVolumeSize")
    return CSIStorageCapacity(
        metadata.namespace or "default",
        metadata.name or "",
        item.storage_class_name or "",
        label_selector(item.node_topology, "nodeTopology"),
        capacity or 0,
        capacity if largest is None else largest,
    )


def _bytes(amount: wire.Amount, path: str) -> int | None:
    """A quantity in whole bytes, rounded up."""
    try:
        return None if amount is None else whole(parse(amount))
    except QuantityError as error:
        raise ObjectError(path, str(error)) from None


def volume_attachment(item: wire_storage.VolumeAttachment, metadata: wire_storage.Metadata, _: str) -> VolumeAttachment:
    spec = item.spec or wire_storage.AttachmentSpec()
    source = spec.source or wire_storage.AttachmentSource()
    return VolumeAttachment(metadata.name or "", spec.attacher or "", spec.node_name or "", source.persistent_volume_name or "")
