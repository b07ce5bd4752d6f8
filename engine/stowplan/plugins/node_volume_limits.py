"""NodeVolumeLimits: a CSI driver can attach only so many volumes to a node.

rejects  a node where the pod's volumes would exceed the limit of their driver
rejects  a node without a driver that says it must be there
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from stowplan.objects import CSIDriver, CSIVolume, Found, Pod, csi_volumes, disk_of, not_found, use_of
from stowplan.plugins.plugin import FILTERS, NoArgs, Plugin, Reason, Rejections
from stowplan.state import CSI_VOLUMES, UNLIMITED, Cluster, Mask

EXCEEDED = Reason("node(s) exceed max volume count")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The pod's CSI volumes on one sort of node, or why they cannot be made out there."""

    volumes: tuple[CSIVolume, ...]
    failure: Reason | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """What the pod wants on nodes that have a CSINode and on those that have none; drivers that must be there."""

    known: Wanted
    unknown: Wanted
    needed: tuple[str, ...]


def asks(pod: Pod, _: NoArgs, cluster: Cluster) -> Ask | None:
    if not any(use_of(pod, volume) or disk_of(volume) for volume in pod.spec.volumes):
        return None
    found = list(csi_volumes(pod, lambda kind, key: cluster.facts(kind).get(key)))
    known, unknown = _wanted(pod, found), _wanted(pod, (each for each in found if not each.migrated))
    drivers = {volume.driver for volume in known.volumes + unknown.volumes}
    facts = cluster.facts(CSIDriver)
    return Ask(known, unknown, tuple(sorted(name for name in drivers if name in facts and facts[name].must_be_installed)))


def _wanted(pod: Pod, found: Iterable[Found]) -> Wanted:
    volumes: set[CSIVolume] = set()
    for each in found:
        if each.fault:
            return Wanted((), Reason(each.fault, error=True))
        if each.volume is None:
            return Wanted((), Reason(f"looking up PVC {pod.namespace}/{each.missing}: {not_found(each.missing)}", final=True))
        volumes.add(each.volume)
    return Wanted(tuple(sorted(volumes)))


def rejects(ask: Ask, cluster: Cluster) -> Rejections:
    known = cluster[CSI_VOLUMES].known()
    found: dict[Reason, Mask] = {}
    for wanted, rows in ((ask.known, known), (ask.unknown, ~known)):
        if wanted.failure is not None:
            found[wanted.failure] = found.get(wanted.failure, np.zeros_like(rows)) | rows
        elif wanted.volumes:
            for reason, mask in _exceeding(wanted.volumes, ask.needed, rows, cluster):
                found[reason] = found.get(reason, np.zeros_like(rows)) | mask
    return found


def _exceeding(
    volumes: tuple[CSIVolume, ...], needed: tuple[str, ...], rows: Mask, cluster: Cluster
) -> Iterable[tuple[Reason, Mask]]:
    """The rejected ones of some rows, each for its first reason."""
    column = cluster[CSI_VOLUMES]
    drivers = dict.fromkeys(volume.driver for volume in volumes)
    for driver in drivers:
        if driver in needed:
            lacking = rows & ~column.installed(driver)
            rows = rows & ~lacking
            yield not_installed(driver), lacking
    rows = rows & column.limited()
    if not rows.any():
        return
    for fault, faulty in column.faults().items():
        yield Reason(fault, error=True), rows & faulty
        rows = rows & ~faulty
    exceeding = np.zeros_like(rows)
    for driver in drivers:
        limit = column.limit(driver)
        new = sum((~column.holds(volume)).astype(np.int64) for volume in volumes if volume.driver == driver)
        exceeding |= (limit != UNLIMITED) & (new > 0) & (column.count(driver) + new > limit)
    yield EXCEEDED, rows & exceeding


@lru_cache(maxsize=256)
def not_installed(driver: str) -> Reason:
    """The reason for one driver."""
    return Reason(f"{driver} CSI driver is not installed on the node")


PLUGIN = Plugin("NodeVolumeLimits", FILTERS, reads=(CSI_VOLUMES,), asks=asks, rejects=rejects)
