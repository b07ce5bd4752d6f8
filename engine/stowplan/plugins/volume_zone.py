"""VolumeZone: a volume that is labelled with a zone or region can be used there only.

rejects  a node whose zone or region is not among those of the pod's bound volumes
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stowplan.objects import (
    BETA_REGION,
    BETA_ZONE,
    REGION,
    ZONE,
    ZONE_DELIMITER,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    not_found,
)
from stowplan.plugins.plugin import FILTERS, Code, NoArgs, Plugin, Reason, Refusal, Rejections
from stowplan.state import LABELS, Cluster, label

NO_ZONE = Reason("node(s) had no available volume zone", final=True)
KEYS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
SUCCESSOR = {BETA_ZONE: ZONE, BETA_REGION: REGION}


@dataclass(frozen=True, slots=True)
class Ask:
    """Values that a label must have one of, for every label of every bound volume; or why the pod is refused."""

    allowed: tuple[tuple[str, frozenset[str]], ...] = ()
    fault: str | None = None


class Unresolvable(Exception):  # noqa: N818 - a verdict on a pod, not a failure of the program
    """A claim leads to no volume."""


def asks(pod: Pod, _: NoArgs, cluster: Cluster) -> Ask | None:
    if not pod.spec.volumes:
        return None
    try:
        allowed = dict.fromkeys(pair for volume in volumes(pod, cluster) for pair in zones(volume))
    except Unresolvable as verdict:
        return Ask(fault=str(verdict))
    return Ask(tuple(allowed)) if allowed else None


def volumes(pod: Pod, cluster: Cluster) -> Iterator[PersistentVolume]:
    """The bound volumes of the pod; generic ephemeral ones are none of this plugin's business. Raises Unresolvable."""
    for written in pod.spec.volumes:
        if written.persistent_volume_claim is None:
            continue
        name = written.persistent_volume_claim.claim_name or ""
        if not name:
            raise Unresolvable("PersistentVolumeClaim had no name")
        claim = cluster.facts(PersistentVolumeClaim).get(f"{pod.namespace}/{name}")
        if claim is None:
            raise Unresolvable(not_found(name))
        if not claim.volume:
            wait(claim, cluster)
            continue
        volume = cluster.facts(PersistentVolume).get(claim.volume)
        if volume is None:
            raise Unresolvable(f'persistentvolume "{claim.volume}" not found')
        yield volume


def wait(claim: PersistentVolumeClaim, cluster: Cluster) -> None:
    """A claim without a volume is fine if it will be bound once the pod has a node. Raises Unresolvable."""
    if not claim.storage_class:
        raise Unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
    storage_class = cluster.facts(StorageClass).get(claim.storage_class)
    if storage_class is None:
        raise Unresolvable(f'storageclass.storage.k8s.io "{claim.storage_class}" not found')
    if not storage_class.delayed:
        raise Unresolvable("PersistentVolume had no name")


def zones(volume: PersistentVolume) -> Iterator[tuple[str, frozenset[str]]]:
    """The zone and region labels of a volume with their values; a label with an empty value among them is ignored."""
    for key in KEYS:
        if key in volume.labels:
            values = frozenset(value.strip() for value in volume.labels[key].split(ZONE_DELIMITER))
            if "" not in values:
                yield key, values


def refuses(ask: Ask, _: Cluster) -> Refusal | None:
    return None if ask.fault is None else Refusal(Code.UNRESOLVABLE, (ask.fault,))


def rejects(ask: Ask, cluster: Cluster) -> Rejections:
    if ask.fault is not None:  # where the profile leaves PreFilter out, Filter says the same
        return {Reason(ask.fault, final=True): np.ones(cluster.size, dtype=np.bool_)}
    somewhere = np.logical_or.reduce([cluster[label(key)].present() for key in KEYS])
    outside = np.zeros(cluster.size, dtype=np.bool_)
    for key, values in ask.allowed:
        inside = cluster[label(key)].is_in(values)
        if key in SUCCESSOR:
            inside |= ~cluster[label(key)].present() & cluster[label(SUCCESSOR[key])].is_in(values)
        outside |= ~inside
    return {NO_ZONE: somewhere & outside}


PLUGIN = Plugin("VolumeZone", FILTERS, reads=(LABELS,), asks=asks, refuses=refuses, rejects=rejects)
