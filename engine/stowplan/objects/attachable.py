"""Volumes of pods as CSI volumes, which nodes can attach only so many of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol, TypeVar

from stowplan.objects.migration import IN_TREE, disk_of
from stowplan.objects.pod import Pod
from stowplan.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, not_owner, use_of

K = TypeVar("K", PersistentVolume, PersistentVolumeClaim, StorageClass)


class Lookup(Protocol):
    """Looks up a fact by type and key."""

    def __call__(self, kind: type[K], key: str) -> K | None: ...


class CSIVolume(NamedTuple):
    """A CSI volume; nodes count it once, however many pods use it."""

    driver: str
    handle: str


class Found(NamedTuple):
    """What one volume of a pod turned out to be: a CSI volume, a claim that is not there, or (`fault`) an error.

    `migrated`: it comes from an in-tree plugin and counts only where the node has CSI drivers.
    """

    volume: CSIVolume | None
    migrated: bool = False
    missing: str = ""
    fault: str = ""


def csi_volumes(pod: Pod, get: Lookup) -> Iterator[Found]:
    """The CSI volumes of a pod, in its order (upstream: NodeVolumeLimits' `filterAttachableVolumes`).

    What does not count is left out.
    """
    for written in pod.spec.volumes:
        use = use_of(pod, written)
        if use is None:
            disk = disk_of(written)
            if disk is None or disk.plugin is None or not disk.plugin.on:
                continue
            fault = f"converting volume({written.name}) from inline to csi: {disk.fault}" if disk.fault else ""
            yield Found(CSIVolume(disk.driver, disk.handle), migrated=True, fault=fault)
        elif not use.claim:
            yield Found(None, fault="PersistentVolumeClaim had no name")
        else:
            claim = get(PersistentVolumeClaim, f"{pod.namespace}/{use.claim}")
            if claim is None:
                yield Found(None, missing=use.claim)
            elif use.ephemeral and (stranger := not_owner(pod, claim)):
                yield Found(None, fault=stranger)
            elif (found := _of_claim(claim, get)) is not None:
                yield found


def _of_claim(claim: PersistentVolumeClaim, get: Lookup) -> Found | None:
    """The CSI volume that a claim has, or will have (upstream: `getCSIDriverInfo`)."""
    volume = get(PersistentVolume, claim.volume) if claim.volume else None
    if volume is not None:
        disk = volume.disk
        if disk is None or disk.fault or not disk.driver or not disk.handle or (disk.plugin and not disk.plugin.on):
            return None
        return Found(CSIVolume(disk.driver, disk.handle), migrated=disk.plugin is not None)
    made_by = get(StorageClass, claim.storage_class) if claim.storage_class else None
    if made_by is None or not made_by.provisioner:
        return None
    handle = f"\0{claim.key}"  # no volume has such a handle
    plugin = IN_TREE.get(made_by.provisioner)
    if plugin is None:
        return Found(CSIVolume(made_by.provisioner, handle))
    return Found(CSIVolume(plugin.driver, handle), migrated=True) if plugin.on else None
