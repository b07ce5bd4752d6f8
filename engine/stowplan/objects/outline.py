"""The outline of a pod: what differs between replicas is decoded, what they share stays JSON text.

Fifty thousand pods have a few hundred specs and label sets. Their text is looked up as it is, and decoded (see `wire`) only
when it is new: half the time of decoding everything, and the encoded outline of a spec, free of node name, environment and
generated volume names, is the key under which replicas share it.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import UNSET, Raw, UnsetType

from stowplan.objects.wire import ClaimStatus, Condition, Int32, Int64, VolumeMount, Wire

Text = Raw | UnsetType
"""JSON text that is looked up before it is decoded."""


class Metadata(Wire, frozen=True):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: Text = UNSET
    generation: Int64 | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    owner_references: Text = UNSET


class Container(Wire, frozen=True):
    name: str | None = None
    image: str | None = None
    restart_policy: str | None = None
    restart_policy_rules: Text = UNSET
    resources: Text = UNSET
    ports: Text = UNSET
    volume_mounts: tuple[VolumeMount, ...] | None = None


class EphemeralContainer(Wire, frozen=True):
    volume_mounts: tuple[VolumeMount, ...] | None = None


class Volume(Wire, frozen=True):
    """Its sources are those of `wire.Volume`."""

    name: str | None = None
    persistent_volume_claim: Text = UNSET
    ephemeral: Text = UNSET
    gce_persistent_disk: Text = UNSET
    aws_elastic_block_store: Text = UNSET
    iscsi: Text = UNSET
    rbd: Text = UNSET
    csi: Text = UNSET
    azure_disk: Text = UNSET
    azure_file: Text = UNSET
    cinder: Text = UNSET
    portworx_volume: Text = UNSET
    vsphere_volume: Text = UNSET
    image: Text = UNSET

    def matters(self) -> bool:
        """Does scheduling care? Not for projected tokens, config maps and the like, whose names may be generated."""
        return msgspec.structs.astuple(self)[1:] != _NO_SOURCE


_NO_SOURCE = msgspec.structs.astuple(Volume())[1:]


class PodSpec(msgspec.Struct, rename="camel", omit_defaults=True, gc=False):
    """Not frozen: the reader takes out what replicas do not share."""

    node_name: str | None = None
    scheduler_name: str | None = None
    priority: Int32 | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    host_network: bool | None = None
    host_users: bool | None = None
    scheduling_gates: Text = UNSET
    node_selector: Text = UNSET
    affinity: Text = UNSET
    tolerations: Text = UNSET
    topology_spread_constraints: Text = UNSET
    init_containers: tuple[Container, ...] | None = None
    containers: tuple[Container, ...] | None = None
    ephemeral_containers: tuple[EphemeralContainer, ...] | None = None
    resources: Text = UNSET
    overhead: Text = UNSET
    volumes: tuple[Volume, ...] | None = None
    resource_claims: Text = UNSET


class ContainerStatus(Wire, frozen=True):
    name: str | None = None
    allocated_resources: Text = UNSET
    resources: Text = UNSET


class PodStatus(Wire, frozen=True):
    phase: str | None = None
    nominated_node_name: str | None = None
    start_time: datetime | None = None
    conditions: tuple[Condition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    allocated_resources: Text = UNSET
    resources: Text = UNSET
    resource_claim_statuses: tuple[ClaimStatus, ...] | None = None


class Told(Wire, frozen=True):
    """The part of a status that is about resources."""

    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    allocated_resources: Text = UNSET
    resources: Text = UNSET
    conditions: tuple[Condition, ...] | None = None


NOTHING_TOLD = Told()


class Pod(Wire, frozen=True):
    metadata: Metadata | None = None
    spec: PodSpec | None = None
    status: PodStatus | None = None
