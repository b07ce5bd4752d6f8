"""VolumeRestrictions: some disks can be mounted by one pod of a node only, some claims used by one pod of the cluster only.

rejects  a node where a pod mounts a disk that the pod names itself, unless both only read
rejects  every node while another pod uses a ReadWriteOncePod claim of the pod
"""

from dataclasses import dataclass

import numpy as np

from stowplan.objects import READ_WRITE_ONCE_POD, Mount, PersistentVolumeClaim, Pod, mounts, not_found
from stowplan.plugins.plugin import FILTERS, Code, NoArgs, Plugin, Reason, Refusal, Rejections
from stowplan.state import CLAIMS, MOUNTS, Cluster

DISK_CONFLICT = Reason("node(s) had no available disk")
IN_USE = Reason("node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod")


@dataclass(frozen=True, slots=True)
class Ask:
    """Disks that the pod names itself, its ReadWriteOncePod claims by name, and the first of its claims that is not there."""

    mounts: frozenset[Mount]
    namespace: str = ""
    exclusive: frozenset[str] = frozenset()
    missing: str | None = None


def asks(pod: Pod, _: NoArgs, cluster: Cluster) -> Ask | None:
    if not pod.spec.volumes:
        return None
    exclusive: set[str] = set()
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is None:
            continue
        name = volume.persistent_volume_claim.claim_name or ""
        claim = cluster.facts(PersistentVolumeClaim).get(f"{pod.namespace}/{name}")
        if claim is None:
            return Ask(frozenset(), missing=name)
        if READ_WRITE_ONCE_POD in claim.access_modes:
            exclusive.add(name)
    if exclusive:
        return Ask(mounts(pod), pod.namespace, frozenset(exclusive))
    return Ask(mounts(pod)) if mounts(pod) else None


def refuses(ask: Ask, _: Cluster) -> Refusal | None:
    return None if ask.missing is None else Refusal(Code.UNRESOLVABLE, (not_found(ask.missing),))


def rejects(ask: Ask, cluster: Cluster) -> Rejections | None:
    used = cluster[CLAIMS].used(ask.namespace, ask.exclusive)
    if not (used or ask.mounts or ask.missing is not None):
        return None
    taken = np.zeros(cluster.size, dtype=np.bool_)
    if ask.mounts:
        taken = cluster[MOUNTS].where(lambda there: any(mine.conflicts(other) for mine in ask.mounts for other in there))
    in_use = used + cluster[CLAIMS].supposed(ask.exclusive) > 0
    return {DISK_CONFLICT: taken, IN_USE: in_use & ~taken}


PLUGIN = Plugin(
    "VolumeRestrictions",
    FILTERS,
    reads=(MOUNTS, CLAIMS),
    asks=asks,
    refuses=refuses,
    rejects=rejects,
    stateless={"filter": 'cannot read "PreFilterVolumeRestrictions" from cycleState'},
    unaided=frozenset({DISK_CONFLICT}),
)
