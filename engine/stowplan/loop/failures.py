"""What follows a failed attempt: condition, Event, nomination, preemption (upstream: `handleSchedulingFailure`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stowplan.loop.effects import Deallocate, Denominate, Effect, Evict, Mark, Note, Tone, Why
from stowplan.loop.flights import Flight, Stage
from stowplan.loop.ledger import Ledger
from stowplan.loop.waiting import Place, Waiting
from stowplan.objects import Pod, ResourceClaim
from stowplan.policy.preempt import BY_SCHEDULER, Preemption


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a pod goes nowhere. `rejectors` None: an error, not a plugin, ended the attempt."""

    message: str
    rejectors: frozenset[str] | None = None
    preemption: Preemption | None = None


def failed(ledger: Ledger, entry: Waiting, verdict: Verdict, now: float) -> list[Effect]:
    """Report a failed attempt, and let the pod wait."""
    pod, message, preemption = entry.pod, verdict.message, verdict.preemption
    nominated = nomination(preemption)
    effects: list[Effect] = [Note(pod, "FailedScheduling", "Scheduling", message, Tone.WARNING)]
    entry.message = message
    if nominated is not None:
        ledger.nominate(entry, nominated)
    if preemption is not None and preemption.node is not None:
        effects += _preempt(ledger, entry, preemption.node, preemption.victims, now)
    if verdict.rejectors is None:
        ledger.queue.fail(entry, now)
    else:
        ledger.park(entry, now, verdict.rejectors)
    for release in preemption.releases if preemption is not None else ():
        if isinstance(release.fact, ResourceClaim):
            effects.append(Deallocate(pod, release.fact))
    why = Why.ERROR if verdict.rejectors is None else Why.UNSCHEDULABLE
    effects.append(Mark(pod, why, message, nominated))
    return effects


def nomination(preemption: Preemption | None) -> str | None:
    """What becomes of the node reserved for a pod whose attempt failed; None: nothing (upstream: `NominatingInfo`)."""
    if preemption is None or preemption.hopeless:
        return ""
    return preemption.node


def _preempt(ledger: Ledger, entry: Waiting, node: str, victims: tuple[Pod, ...], now: float) -> list[Effect]:
    """Make room (upstream: `prepareCandidate`): lower pods lose their claim to the node, the victims are evicted."""
    preemptor = entry.pod
    effects: list[Effect] = []
    for other in list(ledger.store.nominated.get(node, {}).values()):
        waiting = ledger.queue.pods.get(other.key)
        if waiting is not None and other.spec.priority < preemptor.spec.priority:
            ledger.nominate(waiting, "")
            effects.append(Denominate(other))
    running = []
    for victim in victims:
        flight = ledger.flights.of(victim)
        early = flight is not None and flight.stage in (Stage.PREPARING, Stage.VOLUMES)
        if flight is not None and early:
            effects += _call_back(ledger, flight, preemptor, now)
        elif not victim.terminating:
            running.append(victim)
        else:
            continue
        text = f"Preempted by pod {preemptor.uid} on node {node}{' (in kube-scheduler memory).' if early else ''}"
        effects.append(Note(victim, "Preempted", "Preempting", text, related=preemptor, reporter=preemptor.spec.scheduler_name))
    if running:
        leaving = [replace(victim, terminating=True, disruption=BY_SCHEDULER) for victim in running]
        for victim in leaving:
            ledger.store.set_pod(victim)
        entry.busy, entry.victims = True, tuple(zip(leaving, running, strict=True))
        effects.append(Evict(preemptor, node, tuple(running)))
    return effects


def spare(ledger: Ledger, entry: Waiting) -> None:
    """An eviction failed: victims that the watch has not shown to be leaving stay as they were."""
    for leaving, victim in entry.victims:
        if ledger.store.pod(victim.key) is leaving:
            ledger.store.set_pod(victim)
    entry.victims = ()


def kept(ledger: Ledger, key: str, uid: str, now: float) -> None:
    """A claim could not be given up for a pod: upstream's attempt ends with that error, and the pod is tried again."""
    entry = ledger.queue.pods.get(key)
    if entry is not None and entry.pod.uid == uid and entry.place is Place.POOL and not entry.busy:
        ledger.requeue.leave(key)
        ledger.queue.fail(entry, now)


def _call_back(ledger: Ledger, flight: Flight, preemptor: Pod, now: float) -> list[Effect]:
    """A victim that is not bound yet goes back to the queue."""
    ledger.abandon(flight)
    return failed(ledger, flight.entry, Verdict(f"preempted to make room for pod {preemptor.key}"), now)
