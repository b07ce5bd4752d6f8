"""Kinds that decisions depend on and that the cluster, as it was dumped, does not hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from stowplan.objects import PersistentVolumeClaim, Pod, ResourceClaim, Workload
from stowplan.state import Store

_OWNERS = {
    "ReplicaSet": "replicasets",
    "StatefulSet": "statefulsets",
    "ReplicationController": "replicationcontrollers",
}
"""Controllers by which default spreading knows the pods of a workload, as kubectl calls them."""
VOLUME_KINDS = "persistentvolumes,persistentvolumeclaims,storageclasses,csinodes,csidrivers,csistoragecapacities,volumeattachments"
DEVICE_KINDS = "resourceclaims,resourceslices,deviceclasses"


class Lack(NamedTuple):
    """What the cluster holds none of, what follows, and the kinds to add, as kubectl takes them."""

    text: str
    kinds: str
    certain: bool = True
    """false where a cluster may well hold none of them"""

    def __str__(self) -> str:
        return f"{self.text}: add {self.kinds} to the dump"


def lacks(store: Store, asked: Iterable[Pod] = ()) -> Iterator[Lack]:
    """Everything that is visibly missing; workloads only of pods that wait or are asked about."""
    running = [pod for seats in store.seats for pod in seats.values()]
    waiting = list(store.pending.values())
    judged = list({pod.key: pod for pod in [*waiting, *asked]}.values())
    yield from _workloads(store, judged, any_pods=bool(waiting or running))
    yield from claims(store, [*waiting, *running])


def _workloads(store: Store, judged: list[Pod], *, any_pods: bool) -> Iterator[Lack]:
    """Upstream: `DefaultSelector`, which merges the selectors of a pod's Services and its controller."""
    known = store.facts.get(Workload, {})
    orphans: dict[str, list[Pod]] = {}
    for pod in judged:
        owner = pod.owner
        if owner is None or owner.kind not in _OWNERS or owner.api_version.rpartition("/")[0] not in ("", "apps"):
            continue  # other groups have kinds of these names, and default spreading does not know them
        if f"{owner.kind}/{pod.namespace}/{owner.name}" not in known:
            orphans.setdefault(owner.kind, []).append(pod)
    missing = [_OWNERS[kind] for kind in _OWNERS if kind in orphans]
    found = [f"the {kind}s of {_pods(pods)}" for kind, pods in sorted(orphans.items())]
    services = any(workload.kind == "Service" for workload in known.values())
    if any_pods and not services and not missing:
        text = "Services: none in the dump: fine if the cluster has none, otherwise default topology spreading is misjudged"
        yield Lack(text, "services", certain=False)
    elif any_pods and not services:
        missing, found = ["services", *missing], ["Services", *found]
    if missing:
        yield Lack(f"{', '.join(found)} are not in the dump, so default topology spreading cannot be judged", ",".join(missing))


def _pods(pods: list[Pod]) -> str:
    return pods[0].key if len(pods) == 1 else f"{len(pods)} pods ({pods[0].key} is one)"


def claims(store: Store, pods: Iterable[Pod]) -> Iterator[Lack]:
    """Claims that some of these pods use while the cluster holds none at all."""
    volumes = not store.facts.get(PersistentVolumeClaim)
    devices = not store.facts.get(ResourceClaim)
    if not volumes and not devices:
        return
    claimants = [pod for pod in pods if pod.spec.volumes or pod.spec.claims]
    mounting = [pod for pod in claimants if any(v.persistent_volume_claim or v.ephemeral for v in pod.spec.volumes)]
    if volumes and mounting:
        yield Lack(f"the dump holds no persistentvolumeclaims, which {_users(mounting)}", VOLUME_KINDS)
    claiming = [pod for pod in claimants if pod.spec.claims]
    if devices and claiming:
        yield Lack(f"the dump holds no resourceclaims, which {_users(claiming)}", DEVICE_KINDS)


def _users(pods: list[Pod]) -> str:
    return f"{pods[0].key} uses" if len(pods) == 1 else f"{len(pods)} pods use ({pods[0].key} is one)"
