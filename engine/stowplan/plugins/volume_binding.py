"""VolumeBinding: a pod needs its volumes, and some are chosen, or made, only once it has a node.

refuses  a pod whose claims are missing, lost, being deleted or waiting to be bound
rejects  a node from which a bound volume cannot be reached, or where a claim finds no volume and none can be made
scores   a node by how much of the storage chosen there would be used; by default less is better
reserves the volumes that were chosen, and the node for the volumes to be made
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from stowplan.objects import (
    ClaimKey,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    not_found,
    not_owner,
    uses,
    whole,
)
from stowplan.plugins.arguments import ShapePoint, VolumeBindingArgs
from stowplan.plugins.plugin import FILTERS_AND_SCORES, MAX_SCORE, Code, Plugin, Reason, Refusal, Rejections
from stowplan.state import (
    LABELS,
    NAME,
    Bound,
    Cluster,
    Delayed,
    Feasible,
    Numbers,
    broken_linear,
    plan,
    used_by_class,
)

UNREACHABLE = Reason("node(s) didn't match PersistentVolume's node affinity", final=True)
UNMATCHED = Reason("node(s) didn't find available persistent volumes to bind", final=True)
FULL = Reason("node(s) did not have enough free storage", final=True)
GONE = Reason("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", final=True)
IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


@dataclass(frozen=True, slots=True)
class Ask:
    """The pod's claims with all that could serve them, or why it is refused; how storage in use is scored."""

    bound: tuple[Bound, ...] = ()
    delayed: tuple[Delayed, ...] = ()
    refusal: str | None = None
    shape: tuple[ShapePoint, ...] = ()


NO_CLAIMS: Final = Ask()
"""Such pods are scored, with 0: PreScore never skips."""


def asks(pod: Pod, args: VolumeBindingArgs, cluster: Cluster) -> Ask:
    if not any(uses(pod)):
        return NO_CLAIMS
    claims = []
    for claim in find(pod, cluster):
        if isinstance(claim, str):
            return Ask(refusal=claim)
        claims.append(claim)
    bound: list[Bound] = []
    delayed: list[Delayed] = []
    for claim in claims:
        storage_class = cluster.facts(StorageClass).get(claim.storage_class)
        if claim.bound:
            bound.append(bound_to(cluster.facts(PersistentVolume).get(claim.volume), cluster))
        elif claim.volume or storage_class is None or not storage_class.delayed:
            return Ask(refusal=IMMEDIATE)
        else:
            delayed.append(waiting(claim, storage_class, cluster))
    return Ask(tuple(bound), tuple(delayed), shape=args.shape)


def find(pod: Pod, cluster: Cluster) -> Iterator[PersistentVolumeClaim | str]:
    """The claims of the pod, or what is wrong with one (upstream: `podHasPVCs`)."""
    for use in uses(pod):
        claim = cluster.facts(PersistentVolumeClaim).get(f"{pod.namespace}/{use.claim}")
        if claim is None:
            text = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.claim}"'
            yield text if use.ephemeral else not_found(use.claim)
        elif claim.lost:
            yield f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{claim.volume}"'
        elif claim.terminating:
            yield f'persistentvolumeclaim "{claim.name}" is being deleted'
        else:
            yield (not_owner(pod, claim) if use.ephemeral else None) or claim


def bound_to(volume: PersistentVolume | None, cluster: Cluster) -> Bound:
    """A claim bound to this volume; nodes that serve its in-tree plugin through CSI see the migrated volume."""
    if volume is None:
        return Bound(gone=True)
    plugin = volume.disk.plugin if volume.disk else None
    if volume.disk is None or plugin is None or not plugin.on:
        return Bound(volume.affinity)
    nodes = frozenset(node.name for node in cluster.facts(CSINode).values() if plugin.name in node.migrated)
    fault = f"could not translate pv: {volume.disk.fault}" if volume.disk.fault else None
    return Bound(volume.affinity, False, nodes, volume.migrated, fault)


def waiting(claim: PersistentVolumeClaim, storage_class: StorageClass, cluster: Cluster) -> Delayed:
    """A claim that waits for its pod, with the volumes and the storage there is for it."""
    volumes = [
        volume
        for volume in cluster.facts(PersistentVolume).values()
        if volume.storage_class == claim.storage_class and volume.suits(claim)
    ]
    volumes.sort(key=lambda volume: (volume.capacity, volume.name))
    driver = cluster.facts(CSIDriver).get(storage_class.provisioner)
    capacities = None
    if claim.requested is not None and driver is not None and driver.storage_capacity:
        size = whole(claim.requested)
        listed = sorted(cluster.facts(CSIStorageCapacity).items())
        of_class = (capacity for _, capacity in listed if capacity.storage_class == storage_class.name)
        capacities = tuple(capacity for capacity in of_class if capacity.largest is not None and capacity.largest >= size)
    reserved = tuple(volume for volume in volumes if volume.claim is not None)
    return Delayed(claim, storage_class, reserved, tuple(volume for volume in volumes if volume.claim is None), capacities)


def refuses(ask: Ask, _: Cluster) -> Refusal | None:
    return None if ask.refusal is None else Refusal(Code.UNRESOLVABLE, (ask.refusal,))


def rejects(ask: Ask, cluster: Cluster) -> Rejections | None:
    if ask is NO_CLAIMS:
        return None
    made = plan(ask.bound, ask.delayed, cluster)
    faults = {Reason(fault, error=True): mask for fault, mask in made.faults.items()}
    return faults | {UNREACHABLE: made.unreachable, UNMATCHED: made.unmatched, FULL: made.full, GONE: made.gone}


def scores(ask: Ask, cluster: Cluster, _: Feasible) -> Numbers:
    total = np.zeros(cluster.size, dtype=np.int64)
    if not ask.delayed:
        return total
    number = np.zeros(cluster.size, dtype=np.int64)
    for used in used_by_class(plan(ask.bound, ask.delayed, cluster)):
        over = (used.capacity == 0) | (used.requested > used.capacity)
        percent = np.where(over, MAX_SCORE, used.requested * MAX_SCORE // np.maximum(used.capacity, 1))
        total += np.where(used.counts, broken_linear(ask.shape, percent), 0)
        number += used.counts
    # scores are not negative, so this rounds as math.Round does
    return np.floor(total / np.maximum(number, 1) + 0.5).astype(np.int64)


def reserves(ask: Ask, cluster: Cluster, row: int) -> Iterator[PersistentVolume | PersistentVolumeClaim]:
    """The chosen volumes as reserved for their claims, the other claims with the node chosen for them (`AssumePodVolumes`)."""
    if not ask.delayed:
        return
    made = plan(ask.bound, ask.delayed, cluster.rows(np.array([row], dtype=np.intp)))
    for static in made.statics:
        number = int(static.chosen[0])
        claim = static.delayed.claim
        if number >= 0 and static.volumes[number].claim != (key := ClaimKey(claim.namespace, claim.name, claim.uid)):
            yield replace(static.volumes[number], claim=key)
    for dynamic in made.dynamics:
        if dynamic.rows[0] and dynamic.delayed.claim.selected_node is None:
            yield replace(dynamic.delayed.claim, selected_node=cluster.node(row).name)


PLUGIN = Plugin(
    "VolumeBinding",
    FILTERS_AND_SCORES | {"reserve", "preBind"},
    args=VolumeBindingArgs,
    reads=(LABELS, NAME),
    asks=asks,
    refuses=refuses,
    rejects=rejects,
    scores=scores,
    reserves=reserves,
    recalls=True,
    stateless={"filter": "not found", "preScore": "not found", "score": "not found", "reserve": "not found"},
)
