"""What etcd and the watch cache are to an API server: objects with a version, a history that is compacted, and watchers.

Objects are never changed in place. Every write gets the next number of one counter, which is its resourceVersion.
"""

from dataclasses import dataclass, field
from functools import cached_property

import msgspec

encode = msgspec.json.encode


@dataclass(frozen=True)
class Kind:
    """A resource: where it is served, and whether it has the subresource `status`."""

    group: str
    plural: str
    name: str
    namespaced: bool = True
    status: bool = False
    version: str = "v1"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


KINDS = (
    Kind("", "pods", "Pod", status=True),
    Kind("", "nodes", "Node", False, True),
    Kind("", "namespaces", "Namespace", False, True),
    Kind("", "services", "Service", status=True),
    Kind("", "replicationcontrollers", "ReplicationController", status=True),
    Kind("", "persistentvolumes", "PersistentVolume", False, True),
    Kind("", "persistentvolumeclaims", "PersistentVolumeClaim", status=True),
    Kind("", "configmaps", "ConfigMap"),
    Kind("", "events", "Event"),
    Kind("apps", "replicasets", "ReplicaSet", status=True),
    Kind("apps", "statefulsets", "StatefulSet", status=True),
    Kind("policy", "poddisruptionbudgets", "PodDisruptionBudget", status=True),
    Kind("scheduling.k8s.io", "priorityclasses", "PriorityClass", False),
    Kind("storage.k8s.io", "storageclasses", "StorageClass", False),
    Kind("storage.k8s.io", "csinodes", "CSINode", False),
    Kind("storage.k8s.io", "csidrivers", "CSIDriver", False),
    Kind("storage.k8s.io", "csistoragecapacities", "CSIStorageCapacity"),
    Kind("storage.k8s.io", "volumeattachments", "VolumeAttachment", False, True),
    Kind("resource.k8s.io", "resourceclaims", "ResourceClaim", status=True),
    Kind("resource.k8s.io", "resourceslices", "ResourceSlice", False),
    Kind("resource.k8s.io", "deviceclasses", "DeviceClass", False),
    Kind("resource.k8s.io", "devicetaintrules", "DeviceTaintRule", False),
    Kind("coordination.k8s.io", "leases", "Lease"),
    Kind("events.k8s.io", "events", "Event"),
)
BY_PLACE = {(kind.group, kind.plural): kind for kind in KINDS}
BY_PLURAL = {kind.plural: kind for kind in reversed(KINDS)} | {"events": BY_PLACE["events.k8s.io", "events"]}


@dataclass(frozen=True)
class Change:
    """A write: `new` is None for a deletion, `old` for a creation. `key` is (namespace, name)."""

    version: int
    kind: Kind
    key: tuple[str, str]
    old: dict | None
    new: dict | None

    @cached_property
    def text(self) -> bytes:
        """The object after the change, or as it was when it went; its resourceVersion is that of the change."""
        return whole(self.kind, self.last)

    @cached_property
    def last(self) -> dict:
        if self.new is not None:
            return self.new
        assert self.old is not None
        return self.old | {"metadata": self.old["metadata"] | {"resourceVersion": str(self.version)}}


def whole(kind: Kind, found: dict) -> bytes:
    return encode({"kind": kind.name, "apiVersion": kind.api_version, **found})


class CompactedError(Exception):
    """The history does not reach that far back."""


@dataclass
class Storage:
    version: int = 100
    compacted: int = 100
    objects: dict = field(default_factory=lambda: {kind: {} for kind in KINDS})
    history: list[Change] = field(default_factory=list)
    watchers: list = field(default_factory=list)
    """functions that are told every change"""
    uids: int = 0

    def write(self, kind: Kind, key: tuple[str, str], new: dict | None) -> dict:
        """Put an object, or take it away; returns it with its new version."""
        self.version += 1
        old = self.objects[kind].get(key)
        if new is None:
            del self.objects[kind][key]
        else:
            new = new | {"metadata": new["metadata"] | {"resourceVersion": str(self.version)}}
            self.objects[kind][key] = new
        change = Change(self.version, kind, key, old, new)
        self.history.append(change)
        for watcher in list(self.watchers):
            watcher(change)
        return change.last

    def since(self, kind: Kind, version: int) -> list[Change]:
        """Changes after a version, oldest first."""
        if version < self.compacted:
            raise CompactedError
        return [change for change in self.history if change.version > version and change.kind is kind]

    def compact(self, keep: int) -> None:
        """Forget all but the last changes."""
        forgotten = self.history[: max(len(self.history) - keep, 0)]
        if forgotten:
            self.history = self.history[len(forgotten) :]
            self.compacted = forgotten[-1].version

    def new_uid(self) -> str:
        self.uids += 1
        return f"00000000-0000-4000-8000-{self.uids:012}"
