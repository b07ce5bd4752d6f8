"""What the API server shows of pods: new ones wait, bound ones take their place, assumed ones are confirmed, gone ones leave."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from stowplan.loop.flights import Flight, Stage
from stowplan.loop.ledger import Ledger
from stowplan.loop.requeue import Change
from stowplan.loop.waiting import Place, Waiting
from stowplan.objects import Pod


class _Metadata(msgspec.Struct):
    annotations: msgspec.Raw = msgspec.Raw(b"null")


class _Object(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_decode = msgspec.json.Decoder(_Object).decode


def pod_changed(ledger: Ledger, pod: Pod, now: float) -> None:
    """A pod is new or has changed."""
    known = ledger.store.pod(pod.key)
    if known is not None and known.uid != pod.uid:
        pod_gone(ledger, pod.key, known.uid)
        known = None
    if pod.finished:
        pod_gone(ledger, pod.key, pod.uid)
    elif pod.node_name:
        _compare(ledger, known, pod, now)
        _placed(ledger, known, pod)
    else:
        _unplaced(ledger, pod, now)


def pod_gone(ledger: Ledger, key: str, uid: str) -> None:
    """A pod is deleted or has finished. Another pod of the same name is left alone."""
    known = ledger.store.pod(key)
    if known is None or known.uid != uid:
        return
    ledger.flights.by_uid.pop(uid, None)
    ledger.consulted.pop(uid, None)
    ledger.drop(key)
    running = ledger.store.place_of(key) is not None
    ledger.store.remove_pod(key)
    ledger.overlay.withdraw(uid)
    if running:
        ledger.requeue.note(Change.LEFT)
    elif known.nominated_node:
        ledger.requeue.note(Change.NODE)


def _compare(ledger: Ledger, known: Pod | None, pod: Pod, now: float) -> None:
    """In the shadow of another scheduler: would it have gone there as well, as the cluster stood?"""
    if ledger.shadow is not None and ledger.synced and known is not None and not known.node_name and ledger.serves(pod):
        ledger.shadow.placed(ledger.policy, ledger.store, known, pod.node_name, now)


def _placed(ledger: Ledger, known: Pod | None, pod: Pod) -> None:
    """A pod is on a node: it was put there by us, as assumed, or by somebody else."""
    flight = ledger.flights.of(pod)
    if flight is not None:
        _landed(ledger, flight, pod)
    elif ledger.consulted.pop(pod.uid, None) is not None or pod.key in ledger.queue.pods:
        ledger.drop(pod.key)
    was = ledger.store.place_of(pod.key)
    if known is not None and was == pod.node_name and alike(known, pod):
        return
    ledger.store.set_pod(pod)
    ledger.requeue.note(Change.JOINED if was is None else Change.JOINED | Change.LEFT)


def _landed(ledger: Ledger, flight: Flight, pod: Pod) -> None:
    """A pod in flight is bound: as was asked, or by somebody else, be it to the same node."""
    ours = flight.node == pod.node_name and flight.stage not in (Stage.PREPARING, Stage.VOLUMES)
    flight.seen = ours
    if not ours or flight.stage is Stage.BOUND:
        ledger.land(flight)
    if not ours:
        ledger.drop(pod.key)
        ledger.overlay.withdraw(pod.uid)
        ledger.requeue.note(Change.LEFT | Change.FACT)


def alike(old: Pod, new: Pod) -> bool:
    """Whether decisions about other pods cannot tell the two apart: a status update by the kubelet is no news."""
    return _same(old, new) and old.nonzero == new.nonzero and old.disruption == new.disruption and old.started == new.started


def _same(old: Pod, new: Pod) -> bool:
    """Whether the two are one to whoever wants a place, or has one."""
    return (
        old.spec is new.spec
        and old.labels == new.labels
        and old.owner == new.owner
        and old.requested == new.requested
        and old.terminating == new.terminating
    )


def _unplaced(ledger: Ledger, pod: Pod, now: float) -> None:
    """A pod has no node yet."""
    flight = ledger.flights.of(pod)
    if flight is not None:
        _flying(ledger, flight, pod)
        return
    entry = ledger.queue.pods.get(pod.key)
    if entry is None:
        ledger.store.set_pod(pod)
        if ledger.serves(pod) and not pod.terminating:
            entry = ledger.queue.add(pod, now)
            entry.told = pod.nominated_node
            ledger.admit(entry, now, "UnscheduledPodAdd")
        return
    old, entry.pod = entry.pod, merged(entry, pod)
    entry.told = pod.nominated_node
    ledger.store.set_pod(entry.pod)
    if entry.place is Place.GATED:
        ledger.admit(entry, now, "UnscheduledPodUpdate")
    elif entry.place is Place.POOL and not entry.busy and _differs(old, entry.pod):
        ledger.wake(entry, now, "UnscheduledPodUpdate")


def merged(entry: Waiting, pod: Pod) -> Pod:
    """The pod as shown, with the node that was reserved for it since, if its status has not changed in that."""
    if pod.nominated_node != entry.told or pod.nominated_node == entry.pod.nominated_node:
        return pod
    return replace(pod, nominated_node=entry.pod.nominated_node)


def _flying(ledger: Ledger, flight: Flight, pod: Pod) -> None:
    """An assumed pod is shown without a node still: the binding is on its way, unless the pod is being deleted meanwhile."""
    flight.entry.pod = replace(pod, nominated_node="")
    flight.entry.told = pod.nominated_node
    if pod.terminating and flight.stage in (Stage.PREPARING, Stage.VOLUMES):
        ledger.abandon(flight)
        ledger.drop(pod.key)


def _differs(old: Pod, new: Pod) -> bool:
    """Whether the pod may fare otherwise than before. Its status may say what was found out about it, which is no news."""
    return not (
        _same(old, new)
        and old.claim_statuses == new.claim_statuses
        and old.nominated_node == new.nominated_node
        and (old.raw == new.raw or _annotations(old) == _annotations(new))
    )


def _annotations(pod: Pod) -> bytes:
    return bytes(_decode(pod.raw).metadata.annotations) if pod.raw else b"null"
