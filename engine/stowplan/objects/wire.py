"""The fields of API objects that the scheduler reads, as msgspec structs; everything else is skipped while decoding.

Every field is optional and null-tolerant, as Go's decoder is. The structs exist only while an object is read, except the
volumes and claims that a `PodSpec` keeps. `PodSpec` is not frozen: admission completes raw manifests in place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, cast

import msgspec

from stowplan.objects.errors import ObjectError

Amount = str | int | float | None
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
ResourceList = dict[str, Amount]
Texts = dict[str, str | None]


class Wire(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Base of all structs here."""


class OwnerReference(Wire, frozen=True):
    api_version: str | None = None
    kind: str | None = None
    name: str | None = None
    uid: str | None = None
    controller: bool | None = None


class Metadata(msgspec.Struct, rename="camel", gc=False):
    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: Texts | None = None
    generation: Int64 | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class Named(Wire, frozen=True):
    name: str | None = None
    namespace: str | None = None


class Identity(Wire, frozen=True):
    """The metadata that tell one object, and one version of it, from another."""

    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class Identified(Wire, frozen=True):
    metadata: Identity | None = None


class Head(msgspec.Struct, rename="camel"):
    """What says which object this is, whatever else is wrong with it."""

    api_version: str | None = None
    kind: str | None = None
    metadata: Named | None = None


# selectors


class Expression(Wire, frozen=True):
    key: str | None = None
    operator: str | None = None
    values: tuple[str, ...] | None = None


class LabelSelector(Wire, frozen=True):
    match_labels: Texts | None = None
    match_expressions: tuple[Expression, ...] | None = None


class NodeTerm(Wire, frozen=True):
    match_expressions: tuple[Expression, ...] | None = None
    match_fields: tuple[Expression, ...] | None = None


class NodeSelector(Wire, frozen=True):
    node_selector_terms: tuple[NodeTerm, ...] | None = None


class PreferredTerm(Wire, frozen=True):
    weight: Int32 | None = None
    preference: NodeTerm | None = None


class NodeAffinity(Wire, frozen=True):
    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredTerm, ...] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodTerm(Wire, frozen=True):
    topology_key: str | None = None
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


class WeightedPodTerm(Wire, frozen=True):
    weight: Int32 | None = None
    pod_affinity_term: PodTerm | None = None


class PodAffinity(Wire, frozen=True):
    required: tuple[PodTerm, ...] | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[WeightedPodTerm, ...] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Wire, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class SpreadConstraint(Wire, frozen=True):
    topology_key: str | None = None
    max_skew: Int32 | None = None
    when_unsatisfiable: str | None = None
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = None


# pods


class Toleration(Wire, frozen=True):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class Resources(Wire, frozen=True):
    requests: ResourceList | None = None
    limits: ResourceList | None = None


class Port(Wire, frozen=True):
    container_port: Int32 | None = None
    host_port: Int32 | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")
    protocol: str | None = None


class RestartRule(Wire, frozen=True):
    action: str | None = None


class VolumeMount(Wire, frozen=True):
    bind_mount_options: tuple[str, ...] | None = None


class Container(Wire, frozen=True):
    name: str | None = None
    image: str | None = None
    restart_policy: str | None = None
    restart_policy_rules: tuple[RestartRule, ...] | None = None
    resources: Resources | None = None
    ports: tuple[Port, ...] | None = None
    volume_mounts: tuple[VolumeMount, ...] | None = None


class EphemeralContainer(Wire, frozen=True):
    volume_mounts: tuple[VolumeMount, ...] | None = None


class ClaimVolume(Wire, frozen=True):
    claim_name: str | None = None
    read_only: bool | None = None


class EphemeralVolume(Wire, frozen=True):
    """Its claim is named after pod and volume; the template itself is the ephemeral volume controller's business."""


class GCEPersistentDisk(Wire, frozen=True):
    pd_name: str | None = None
    read_only: bool | None = None


class AWSElasticBlockStore(Wire, frozen=True):
    volume_id: str | None = msgspec.field(default=None, name="volumeID")
    read_only: bool | None = None


class ISCSI(Wire, frozen=True):
    target_portal: str | None = None
    iqn: str | None = None
    lun: Int32 | None = None
    read_only: bool | None = None


class RBD(Wire, frozen=True):
    monitors: tuple[str, ...] | None = None
    image: str | None = None
    pool: str | None = None
    read_only: bool | None = None


class CSIVolume(Wire, frozen=True):
    driver: str | None = None


class AzureDisk(Wire, frozen=True):
    disk_name: str | None = None
    disk_uri: str | None = msgspec.field(default=None, name="diskURI")
    kind: str | None = None


class AzureFile(Wire, frozen=True):
    share_name: str | None = None


class VolumeID(Wire, frozen=True):
    """Cinder and Portworx volumes."""

    volume_id: str | None = msgspec.field(default=None, name="volumeID")


class VSphereVolume(Wire, frozen=True):
    volume_path: str | None = None


class ImageVolume(Wire, frozen=True):
    reference: str | None = None


class Volume(Wire, frozen=True):
    """A volume of a pod; of the many sources, those that have a say in scheduling."""

    name: str | None = None
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    iscsi: ISCSI | None = None
    rbd: RBD | None = None
    csi: CSIVolume | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: VolumeID | None = None
    portworx_volume: VolumeID | None = None
    vsphere_volume: VSphereVolume | None = None
    image: ImageVolume | None = None


class PodResourceClaim(Wire, frozen=True):
    name: str | None = None
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGate(Wire, frozen=True):
    name: str | None = None


class PodSpec(msgspec.Struct, rename="camel", omit_defaults=True, gc=False):
    node_name: str | None = None
    scheduler_name: str | None = None
    priority: Int32 | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    host_network: bool | None = None
    host_users: bool | None = None
    scheduling_gates: tuple[SchedulingGate, ...] | None = None
    node_selector: Texts | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    topology_spread_constraints: tuple[SpreadConstraint, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    containers: tuple[Container, ...] | None = None
    ephemeral_containers: tuple[EphemeralContainer, ...] | None = None
    resources: Resources | None = None
    overhead: ResourceList | None = None
    volumes: tuple[Volume, ...] | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None


class ContainerStatus(Wire, frozen=True):
    name: str | None = None
    allocated_resources: ResourceList | None = None
    resources: Resources | None = None


class Condition(Wire, frozen=True):
    type: str | None = None
    status: str | None = None
    reason: str | None = None


class ClaimStatus(Wire, frozen=True):
    name: str | None = None
    resource_claim_name: str | None = None


class PodStatus(Wire, frozen=True):
    phase: str | None = None
    nominated_node_name: str | None = None
    start_time: datetime | None = None
    conditions: tuple[Condition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    allocated_resources: ResourceList | None = None
    resources: Resources | None = None
    resource_claim_statuses: tuple[ClaimStatus, ...] | None = None


def texts(mapping: Mapping[str, str | None] | None) -> dict[str, str]:
    """A string map with nulls read as empty strings, as Go reads them."""
    if not mapping:
        return {}
    if None in mapping.values():
        return {key: value or "" for key, value in mapping.items()}
    return cast("dict[str, str]", mapping)  # the usual case, not copied


def epoch(moment: datetime | None) -> float | None:
    """A time as epoch seconds; one without a zone (YAML has such) is UTC, whatever the machine's zone."""
    if moment is None:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


_AT = re.compile(r" - at (?:key in )?`\$?\.?(.*)`$", re.DOTALL)
_BOUND = re.compile(r"Expected `int` [<>]= (-?\d+)")


def fault(error: msgspec.MsgspecError, path: str = "") -> ObjectError:
    """A decoding failure as an ObjectError: the place below `path`, the rest as the message."""
    text = str(error)
    found = _AT.search(text)
    inner = found[1] if found else ""
    place = path + inner if inner.startswith("[") else ".".join(part for part in (path, inner) if part)
    message = text[: found.start()] if found else text
    bound = _BOUND.fullmatch(message)
    if bound:
        message = f"does not fit into int{32 if abs(int(bound[1])) <= 2**31 else 64}"
    return ObjectError(place, message.replace("`", "")[:1].lower() + message.replace("`", "")[1:])
