"""Pods between decision and binding: what was written, what is waited for, and until when (upstream: the binding cycle)."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from stowplan.loop.effects import Effect
from stowplan.loop.waiting import Waiting
from stowplan.objects import OtherFact, PersistentVolume, PersistentVolumeClaim, Pod, ResourceClaim, not_found, uses
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
    """A pod that is assumed on a node. `deadline`: when there is something to look at again."""

    entry: Waiting
    pod: Pod
    node: str
    facts: tuple[OtherFact, ...]
    started: float
    stage: Stage = Stage.BINDING
    deadline: float = 0.0
    limit: float = 0.0
    """when waiting for volumes is over"""
    asked: Effect | None = None
    """what was asked of the edge last"""
    profile: Profile | None = None
    """the one that found the node: what was decided under it is carried out under it, whatever policy is in force by then"""
    seen: bool = False
    """the watch shows the pod on the node, though the answer is still to come"""


@dataclass(slots=True)
class Flights:
    """All of them, by uid of the pod."""

    by_uid: dict[str, Flight] = field(default_factory=dict)
    _timed: dict[str, Flight] = field(default_factory=dict)
    """those that may have to be looked at again; some have gone on since"""

    def add(self, flight: Flight) -> None:
        self.by_uid[flight.pod.uid] = flight

    def of(self, pod: Pod) -> Flight | None:
        return self.by_uid.get(pod.uid)

    def wait(self, flight: Flight, stage: Stage, deadline: float) -> None:
        """Let a flight wait in this stage until a moment."""
        flight.stage, flight.deadline = stage, deadline
        self._timed[flight.pod.uid] = flight

    def _waiting(self) -> list[Flight]:
        """Those that have a deadline."""
        if not self._timed:
            return []
        for uid, flight in list(self._timed.items()):
            if self.by_uid.get(uid) is not flight or flight.stage not in (Stage.VOLUMES, Stage.RETRY):
                del self._timed[uid]
        return list(self._timed.values())

    def due(self, now: float) -> list[Flight]:
        """Flights whose time is up."""
        return [each for each in self._waiting() if each.deadline <= now]

    def wake_at(self) -> float | None:
        """When the next time is up."""
        return min((each.deadline for each in self._waiting()), default=None)

    def awaiting(self, kind: type, key: str) -> Iterator[Flight]:
        """Flights that wait for this claim, or for a volume, to be bound."""
        for flight in self._waiting():
            if flight.stage is Stage.VOLUMES and (kind is PersistentVolume or key in claim_keys(flight.pod)):
                yield flight


def claim_keys(pod: Pod) -> set[str]:
    """Keys of the PersistentVolumeClaims that a pod uses."""
    return {f"{pod.namespace}/{use.claim}" for use in uses(pod)}


def unbound(store: Store, pod: Pod) -> list[PersistentVolumeClaim]:
    """The pod's claims whose volume is not there yet; one that is gone fails the attempt that follows."""
    volumes = store.facts.get(PersistentVolume, {})
    return [claim for claim in _claims(store, pod) if not claim.bound or claim.volume not in volumes]


def unusable(store: Store, flight: Flight) -> str | None:
    """A claim that is gone, or whose volume, bound by others than had been decided, is out of reach (upstream: `checkBindings`)."""
    gone = sorted(claim_keys(flight.pod) - store.facts.get(PersistentVolumeClaim, {}).keys())
    if gone:
        return not_found(gone[0].rpartition("/")[2])
    row = store.row_of.get(flight.node)
    if row is None:
        return None
    node, volumes = store.nodes[row], store.facts.get(PersistentVolume, {})
    for claim in _claims(store, flight.pod):
        volume = volumes.get(claim.volume)
        if volume is not None and volume.affinity is not None and not volume.affinity.matches(node.name, node.labels):
            return f'pv "{volume.name}" node affinity doesn\'t match node "{node.name}": no matching NodeSelectorTerms'
    return None


def _claims(store: Store, pod: Pod) -> list[PersistentVolumeClaim]:
    claims = store.facts.get(PersistentVolumeClaim, {})
    return [claims[key] for key in sorted(claim_keys(pod)) if key in claims]


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


def patience(profile: Profile | None) -> float:
    """Seconds to wait for volumes (`bindTimeoutSeconds`)."""
    args = None if profile is None else profile.args.get("VolumeBinding")
    return float(args.bind_timeout_seconds) if isinstance(args, VolumeBindingArgs) else 600.0
