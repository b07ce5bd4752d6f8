"""Columns about volumes: the CSI volumes of a node and its limits, and which claims are in use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from stowplan.objects import (
    CSINode,
    CSIVolume,
    OtherFact,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    VolumeAttachment,
    csi_volumes,
    uses,
)
from stowplan.state.columns import Mask, Numbers, Storage, widened

if TYPE_CHECKING:
    from stowplan.objects import Node
    from stowplan.state.cluster import Cluster
    from stowplan.state.store import Store

K = TypeVar("K", bound=OtherFact)
UNLIMITED = -1


@dataclass(slots=True)
class Held:
    """The CSI volumes of one node.

    volumes      those of its pods
    attached     others, which VolumeAttachments tell of
    claims       keys of the claims that its pods use
    fault        the first error among its pods' volumes
    """

    drivers: dict[str, int] | None
    volumes: frozenset[CSIVolume] = frozenset()
    attached: frozenset[CSIVolume] = frozenset()
    claims: frozenset[str] = frozenset()
    fault: str = ""

    def count(self, driver: str) -> int:
        """How many volumes of a driver the node holds."""
        return sum(volume.driver == driver for held in (self.volumes, self.attached) for volume in held)


class VolumeTable(Storage["CSIVolumes"]):
    """CSI volumes and drivers of every node; a row is worked out anew whenever anything about it changes."""

    pods_matter = True

    def __init__(self, store: Store) -> None:
        self._store = store
        self.rows: dict[int, Held] = {}
        """what the nodes hold that have a CSINode or hold anything"""
        self.counts: dict[str, Numbers] = {}
        """volumes by driver"""
        self.limits: dict[str, Numbers] = {}
        """the most volumes by driver, UNLIMITED where there is no limit"""
        self.installed: dict[str, Mask] = {}
        """which nodes have a driver"""
        self.known: Mask = np.zeros(store.capacity, dtype=np.bool_)
        """nodes that have a CSINode"""
        self.limited: Mask = np.zeros(store.capacity, dtype=np.bool_)
        """nodes that limit any driver"""
        self.holders: dict[CSIVolume, set[int]] = {}
        """nodes whose pods use a volume"""
        self._users: dict[str, set[int]] = {}
        """nodes whose pods use a claim, by its key"""
        self._attachments: dict[str, dict[str, VolumeAttachment]] = {}
        """by node name, then key"""
        for attachment in store.facts.get(VolumeAttachment, {}).values():
            self._attachments.setdefault(attachment.node, {})[attachment.key] = attachment
        for row in range(len(store.nodes)):
            self._write(row)

    # Keeping current

    def grow(self, capacity: int) -> None:
        self.known, self.limited = widened(self.known, capacity), widened(self.limited, capacity)
        self.counts = {driver: widened(array, capacity) for driver, array in self.counts.items()}
        self.installed = {driver: widened(array, capacity) for driver, array in self.installed.items()}
        for driver, array in self.limits.items():
            self.limits[driver] = np.full(capacity, UNLIMITED, dtype=np.int64)
            self.limits[driver][: len(array)] = array

    def set_node(self, row: int, node: Node) -> None:  # noqa: ARG002 - nothing but its name matters
        self._write(row)

    def move(self, source: int, target: int) -> None:
        self._erase(source)
        self._write(target)

    def count_pod(self, row: int, pod: Pod, sign: int) -> None:  # noqa: ARG002 - the seat already shows the change
        if pod.spec.volumes:
            self._write(row)

    def set_fact(self, old: OtherFact | None, new: OtherFact | None) -> Iterable[int]:
        rows = self._touched(old, new)
        for row in rows:
            self._write(row)
        return rows

    def _touched(self, old: OtherFact | None, new: OtherFact | None) -> list[int]:
        """Rows that a changed fact is about."""
        either = new or old
        if isinstance(either, PersistentVolumeClaim) and _differ(old, new, "volume", "storage_class", "owner"):
            return sorted(self._users.get(either.key, ()))
        if isinstance(either, PersistentVolume) and _differ(old, new, "disk"):
            return self._near_volume(either.name)
        if isinstance(either, StorageClass) and _differ(old, new, "provisioner"):
            return sorted(set().union(*self._users.values()))
        if isinstance(either, CSINode):
            return self._named(either.name)
        if isinstance(either, VolumeAttachment):
            if isinstance(old, VolumeAttachment):
                del self._attachments[old.node][old.key]
            if isinstance(new, VolumeAttachment):
                self._attachments.setdefault(new.node, {})[new.key] = new
            nodes = {fact.node for fact in (old, new) if isinstance(fact, VolumeAttachment)}
            return [row for node in sorted(nodes) for row in self._named(node)]
        return []

    def _named(self, node: str) -> list[int]:
        row = self._store.row_of.get(node)
        return [] if row is None else [row]

    def _near_volume(self, name: str) -> list[int]:
        """Rows whose pods claim a persistent volume, or that it is attached to."""
        claims = self._store.facts.get(PersistentVolumeClaim, {})
        rows = {row for key, users in self._users.items() if key in claims and claims[key].volume == name for row in users}
        nodes = (node for node, kept in self._attachments.items() if any(a.volume == name for a in kept.values()))
        return sorted(rows.union(*(self._named(node) for node in nodes)))

    def _write(self, row: int) -> None:
        """Work out what the node of a row holds."""
        self._erase(row)
        held = self.held(row, self._store.seats[row].values())
        if held.drivers is None and not (held.volumes or held.attached or held.claims or held.fault):
            return
        self.rows[row] = held
        for volume in held.volumes:
            self.holders.setdefault(volume, set()).add(row)
        for key in held.claims:
            self._users.setdefault(key, set()).add(row)
        for driver in {volume.driver for volume in held.volumes | held.attached}:
            self._array(self.counts, driver, 0)[row] = held.count(driver)
        self.known[row] = held.drivers is not None
        for driver, limit in (held.drivers or {}).items():
            self._array(self.limits, driver, UNLIMITED)[row] = limit
            if driver not in self.installed:
                self.installed[driver] = np.zeros(self._store.capacity, dtype=np.bool_)
            self.installed[driver][row] = True
        self.limited[row] = any(limit != UNLIMITED for limit in (held.drivers or {}).values())

    def _array(self, arrays: dict[str, Numbers], driver: str, empty: int) -> Numbers:
        if driver not in arrays:
            arrays[driver] = np.full(self._store.capacity, empty, dtype=np.int64)
        return arrays[driver]

    def _erase(self, row: int) -> None:
        held = self.rows.pop(row, None)
        if held is None:
            return
        for kept, keys in ((self.holders, held.volumes), (self._users, held.claims)):
            for key in keys:
                kept[key].discard(row)  # type: ignore[index]
                if not kept[key]:  # type: ignore[index]
                    del kept[key]  # type: ignore[arg-type]
        for driver in {volume.driver for volume in held.volumes | held.attached}:
            self.counts[driver][row] = 0
        for driver in held.drivers or {}:
            self.limits[driver][row] = UNLIMITED
            self.installed[driver][row] = False
        self.known[row] = self.limited[row] = False

    def held(self, row: int, pods: Iterable[Pod]) -> Held:
        """What the node of a row holds with these pods on it."""
        name = self._store.nodes[row].name
        node: CSINode | None = self._get(CSINode, name)
        drivers = None if node is None else {d: UNLIMITED if limit is None else limit for d, limit in node.drivers}
        held, volumes, claims = Held(drivers), set(), set()
        for pod in pods:
            if not pod.spec.volumes:
                continue
            claims |= {f"{pod.namespace}/{use.claim}" for use in uses(pod)}
            for found in csi_volumes(pod, self._get):
                if found.migrated and node is None:
                    continue
                held.fault = held.fault or found.fault
                if found.volume is not None:
                    volumes.add(found.volume)
        held.volumes, held.claims = frozenset(volumes), frozenset(claims)
        held.attached = frozenset(self._attached(name)) - held.volumes
        return held

    def _attached(self, node: str) -> Iterator[CSIVolume]:
        """Volumes that are attached to a node (upstream: `getNodeVolumeAttachmentInfo`)."""
        for attachment in self._attachments.get(node, {}).values():
            volume = self._get(PersistentVolume, attachment.volume)
            disk = volume.disk if volume is not None else None
            if attachment.attacher and disk is not None and disk.plugin is None:
                yield CSIVolume(attachment.attacher, disk.handle)

    def _get(self, kind: type[K], key: str) -> K | None:
        return self._store.facts.get(kind, {}).get(key)

    def view(self, cluster: Cluster) -> CSIVolumes:
        return CSIVolumes(self, cluster)


def _differ(old: OtherFact | None, new: OtherFact | None, *fields: str) -> bool:
    """Has the fact come or gone, or changed in some field?"""
    return old is None or new is None or any(getattr(old, field) != getattr(new, field) for field in fields)


class CSIVolumes:
    """View of the CSI volumes and drivers of nodes."""

    __slots__ = ("_cluster", "_supposed", "_table")

    def __init__(self, table: VolumeTable, cluster: Cluster) -> None:
        self._table, self._cluster = table, cluster
        places = {place for place, pod, _ in cluster.supposed() if pod.spec.volumes}
        self._supposed = {place: table.held(int(cluster.asked[place]), cluster.pods_at(place)) for place in places}

    def known(self) -> Mask:
        """Rows whose node has a CSINode."""
        return self._cluster.gather(self._table.known)

    def limited(self) -> Mask:
        """Rows whose node limits the volumes of some driver."""
        return self._cluster.gather(self._table.limited)

    def installed(self, driver: str) -> Mask:
        """Rows whose node has a driver."""
        installed = self._table.installed.get(driver)
        return np.zeros(self._cluster.size, dtype=np.bool_) if installed is None else self._cluster.gather(installed)

    def limit(self, driver: str) -> Numbers:
        """The most volumes of a driver, UNLIMITED where there is no limit."""
        return self._numbers(self._table.limits.get(driver), UNLIMITED)

    def count(self, driver: str) -> Numbers:
        """How many volumes of a driver there are."""
        counts = self._numbers(self._table.counts.get(driver), 0)
        if self._supposed:
            counts = counts.copy()
            for place, held in self._supposed.items():
                counts[place] = held.count(driver)
        return counts

    def _numbers(self, array: Numbers | None, empty: int) -> Numbers:
        return np.full(self._cluster.size, empty, dtype=np.int64) if array is None else self._cluster.gather(array)

    def holds(self, volume: CSIVolume) -> Mask:
        """Rows whose pods use the volume."""
        holders = self._table.holders.get(volume, ())
        held = np.zeros(self._table.known.shape, dtype=np.bool_)
        held[list(holders)] = True
        held = self._cluster.gather(held)
        for place, supposed in self._supposed.items():
            held[place] = volume in supposed.volumes
        return held

    def faults(self) -> dict[str, Mask]:
        """Rows whose pods have a volume that cannot be made out, by what is wrong."""
        faulty = {row for row, held in self._table.rows.items() if held.fault}
        faults: dict[str, Mask] = {}
        if not (faulty or self._supposed):
            return faults
        for place, row in enumerate(self._cluster.asked.tolist()):
            held = self._supposed.get(place) or self._table.rows.get(row)
            if held is not None and held.fault:
                mask = faults.setdefault(held.fault, np.zeros(self._cluster.size, dtype=np.bool_))
                mask[place] = True
        return faults


class Users:
    """How many volumes of scheduled pods name one claim."""

    def __init__(self) -> None:
        self.number = 0
        self.version = 0
        """grows with every change"""


class ClaimTable(Storage["Claims"]):
    """Which claims the pods of all nodes use by name; generic ephemeral volumes do not count (upstream: `PodPVCKeys`)."""

    pods_matter = True

    def __init__(self, store: Store) -> None:
        self._users: dict[str, Users] = {}
        for pods in store.seats:
            for pod in pods.values():
                self.count_pod(0, pod, 1)

    def grow(self, capacity: int) -> None:
        """Nothing here has rows."""

    def count_pod(self, row: int, pod: Pod, sign: int) -> None:  # noqa: ARG002 - the row does not matter
        for name in claim_names(pod):
            users = self.users(f"{pod.namespace}/{name}")
            users.number += sign
            users.version += 1

    def users(self, key: str) -> Users:
        """The users of a claim."""
        found = self._users.get(key)
        if found is None:
            found = self._users[key] = Users()
        return found

    def view(self, cluster: Cluster) -> Claims:
        return Claims(self, cluster)


def claim_names(pod: Pod) -> Iterator[str]:
    """Names of the claims that a pod names itself, repeated as written."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name or ""


class Claims:
    """View of the claims in use."""

    __slots__ = ("_cluster", "_table")

    def __init__(self, table: ClaimTable, cluster: Cluster) -> None:
        self._table, self._cluster = table, cluster

    def used(self, namespace: str, names: Iterable[str]) -> int:
        """How many of some claims are in use by any pod of any node."""
        number = 0
        for name in names:
            users = self._table.users(f"{namespace}/{name}")
            if self._cluster.watch is not None:
                self._cluster.watch.depends(users)
            number += users.number > 0
        return number

    def supposed(self, names: frozenset[str]) -> Numbers:
        """How many more volumes of that name the supposed pods have, less those of pods supposed to be gone, as int64.

        Upstream compares no namespaces here (VolumeRestrictions' `updateWithPod`).
        """
        more = np.zeros(self._cluster.size, dtype=np.int64)
        for place, pod, sign in self._cluster.supposed():
            more[place] += sign * sum(name in names for name in claim_names(pod))
        return more
