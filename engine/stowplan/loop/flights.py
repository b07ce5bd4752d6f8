"""Pods between decision and binding: what was written, what is waited for, and until when (upstream: the binding cycle)."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from stowplan.loop.effects import Effect
from stowplan.loop.waiting import Waiting
from stowplan.objects import OtherFact, PersistentVolume, PersistentVolumeClaim, Pod, ResourceClaim, uses
from stowplan.plugins.arguments import VolumeBindingArgs
from stowplan.plugins.dynamic_resources import LookupFaultError, claims_of
from stowplan.policy.compile import Profile
from stowplan.state import Cluster, Store


class Stage(enum.Enum):
    """What a flight waits for."""

    PREPARING = "preparing"
    """that volumes, claims and devices are written"""
    VOLUMES = "volumes"
    """that the claims are bound to volumes"""
    BINDING = "binding"
    """that the binding is answered"""
    RETRY = "retry"
    """to be asked again: the last binding was not answered"""
    BOUND = "bound"
    """that the watch shows the binding"""


@dataclass(slots=True, eq=False)
class Flight:
    """A pod that is assumed on a node. `deadline`: when waiting for volumes, or until the next try, is over."""

    entry: Waiting
    pod: Pod
    node: str
    facts: tuple[OtherFact, ...]
    started: float
    stage: Stage = Stage.BINDING
    deadline: float = 0.0
    asked: Effect | None = None
    """what was asked of the edge last"""
    seen: bool = False
    """the watch shows the pod on the node, though the answer is still to come"""


@dataclass(slots=True)
class Flights:
    """All of them, by uid of the pod."""

    by_uid: dict[str, Flight] = field(default_factory=dict)

    def add(self, flight: Flight) -> None:
        self.by_uid[flight.pod.uid] = flight

    def of(self, pod: Pod) -> Flight | None:
        return self.by_uid.get(pod.uid)

    def due(self, now: float) -> Iterator[Flight]:
        """Flights whose time is up."""
        return iter([each for each in self.by_uid.values() if each.stage in (Stage.VOLUMES, Stage.RETRY) and each.deadline <= now])

    def wake_at(self) -> float | None:
        """When the next time is up."""
        waiting = (each.deadline for each in self.by_uid.values() if each.stage in (Stage.VOLUMES, Stage.RETRY))
        return min(waiting, default=None)

    def awaiting(self, volume: PersistentVolume | PersistentVolumeClaim) -> Iterator[Flight]:
        """Flights that wait for a claim like this one to be bound."""
        for flight in list(self.by_uid.values()):
            if flight.stage is Stage.VOLUMES and (isinstance(volume, PersistentVolume) or volume.key in claim_keys(flight.pod)):
                yield flight


def claim_keys(pod: Pod) -> set[str]:
    """Keys of the PersistentVolumeClaims that a pod uses."""
    return {f"{pod.namespace}/{use.claim}" for use in uses(pod)}


def unbound(store: Store, pod: Pod) -> list[PersistentVolumeClaim]:
    """The pod's claims that have no volume yet, or are gone (they then fail the attempt that follows)."""
    claims = store.facts.get(PersistentVolumeClaim, {})
    return [claims[key] for key in sorted(claim_keys(pod)) if key in claims and not claims[key].bound]


def to_write(profile: Profile, store: Store, pod: Pod, facts: Iterable[OtherFact]) -> tuple[OtherFact, ...]:
    """What must be written before the pod is bound: the decided facts, with the pod among the users of its ResourceClaims."""
    decided = {(type(fact), fact.key): fact for fact in facts}
    if pod.spec.claims and "DynamicResources" in profile.points["preBind"]:
        try:
            for claim in claims_of(pod, Cluster(store)):
                decided.setdefault((ResourceClaim, claim.key), claim)
        except LookupFaultError:  # gone since: the API server refuses what needs it
            pass
    users = ((key, _used_by(fact, pod)) for key, fact in decided.items())
    return tuple(fact for key, fact in users if fact is not store.facts.get(key[0], {}).get(key[1]))


def _used_by(fact: OtherFact, pod: Pod) -> OtherFact:
    if isinstance(fact, ResourceClaim) and pod.uid not in fact.reserved:
        return replace(fact, reserved=(*fact.reserved, pod.uid))
    return fact


def patience(profile: Profile) -> float:
    """Seconds to wait for volumes (`bindTimeoutSeconds`)."""
    args = profile.args.get("VolumeBinding")
    return float(args.bind_timeout_seconds) if isinstance(args, VolumeBindingArgs) else 600.0
