"""From a decision to a bound pod: assume, prepare, wait for volumes, bind; and the way back (upstream: `bindingCycle`)."""

from __future__ import annotations

from collections.abc import Iterable

from stowplan.loop.effects import Bind, Effect, Note, Prepare
from stowplan.loop.events import Bound, Failure, NotBound, Prepared
from stowplan.loop.failures import Verdict, failed
from stowplan.loop.flights import Flight, Stage, patience, to_write, unbound, unusable
from stowplan.loop.ledger import Ledger
from stowplan.loop.requeue import Change
from stowplan.loop.waiting import Waiting
from stowplan.objects import OtherFact, PersistentVolumeClaim
from stowplan.policy.extenders import binder

RETRY_SECONDS = 5.0
"""After this a binding that nobody could tell about is asked for again; the uid makes that harmless."""

UNSEEN_SECONDS = 100.0
"""After this what was written has been shown by any watch that is not dead."""


def depart(ledger: Ledger, entry: Waiting, node: str, facts: Iterable[OtherFact], now: float) -> list[Effect]:
    """Assume the pod on a node, and start what leads to its binding. Volumes are assumed with it, and undone with it."""
    pod, profile = entry.pod, ledger.policy.serving(entry.pod, ledger.store)
    written = to_write(profile, ledger.store, pod, facts)
    assumed = pod.on(node)
    ledger.store.set_pod(assumed)
    ledger.overlay.decide(pod.uid, written)
    ledger.requeue.note(Change.JOINED)
    flight = Flight(entry, assumed, node, written, now, profile=profile)
    ledger.flights.add(flight)
    if written:
        flight.stage = Stage.PREPARING
        return _ask(flight, Prepare(pod, node, written))
    return _proceed(ledger, flight, now)


def prepared(ledger: Ledger, answer: Prepared, now: float) -> list[Effect]:
    """Everything is written that must stand before the binding."""
    flight = ledger.flights.by_uid.get(answer.uid)
    return [] if flight is None or flight.stage is not Stage.PREPARING else _onward(ledger, flight, now)


def _onward(ledger: Ledger, flight: Flight, now: float) -> list[Effect]:
    """Go on, unless a selected node has been shown and taken back, be it while others were still being written."""
    written = {fact.key for fact in flight.facts if isinstance(fact, PersistentVolumeClaim)}
    missing = (claim for claim in unbound(ledger.store, flight.pod) if claim.key in written)
    refused = next((claim for claim in missing if claim.selected_node is None and not claim.volume), None)
    return _proceed(ledger, flight, now) if refused is None else _unprovided(ledger, flight, refused.name, now)


def _proceed(ledger: Ledger, flight: Flight, now: float) -> list[Effect]:
    """Bind, once all claims have their volumes."""
    volumes = bool(flight.pod.spec.volumes)
    if volumes and unbound(ledger.store, flight.pod):
        if flight.stage is not Stage.VOLUMES:
            flight.limit = now + patience(flight.profile)
            ledger.flights.wait(flight, Stage.VOLUMES, min(flight.limit, now + UNSEEN_SECONDS))
        return []
    fault = unusable(ledger.store, flight) if volumes else None
    if fault is not None:
        ledger.abandon(flight)
        return failed(ledger, flight.entry, Verdict(f"binding volumes: {fault}"), now)
    flight.stage = Stage.BINDING
    return _ask(flight, Bind(flight.pod, flight.node, binder(ledger.policy, flight.pod)))


def _ask(flight: Flight, effect: Effect) -> list[Effect]:
    flight.asked = effect
    return [effect]


def volumes_changed(ledger: Ledger, kind: type, key: str, now: float) -> list[Effect]:
    """A volume or claim has changed: flights that wait for it go on, or fail where nothing will be provisioned."""
    effects: list[Effect] = []
    for flight in ledger.flights.awaiting(kind, key):
        effects += _onward(ledger, flight, now)
    return effects


def _unprovided(ledger: Ledger, flight: Flight, claim: str, now: float) -> list[Effect]:
    ledger.abandon(flight)
    return failed(ledger, flight.entry, Verdict(f'binding volumes: provisioning failed for PVC "{claim}"'), now)


def overdue(ledger: Ledger, now: float) -> list[Effect]:
    """Volumes that did not come in time, and bindings to ask for again."""
    effects: list[Effect] = []
    for flight in ledger.flights.due(now):
        if flight.stage is Stage.VOLUMES:
            effects += _impatient(ledger, flight, now)
        elif flight.asked is not None:
            flight.stage = Stage.PREPARING if isinstance(flight.asked, Prepare) else Stage.BINDING
            effects.append(flight.asked)
    return effects


def _impatient(ledger: Ledger, flight: Flight, now: float) -> list[Effect]:
    """Volumes are late. A selected node that was never shown has been taken back unseen, as provisioners do that fail."""
    missing = unbound(ledger.store, flight.pod)
    if missing and ledger.overlay.unseen(flight.pod.uid):
        return _unprovided(ledger, flight, missing[0].name, now)
    if now < flight.limit:
        flight.deadline = flight.limit
        return []
    ledger.abandon(flight)
    return failed(ledger, flight.entry, Verdict("binding volumes: context deadline exceeded"), now)


def bound(ledger: Ledger, answer: Bound, now: float) -> list[Effect]:
    """The API server has taken the binding; the pod stays assumed until the watch shows it, however long that takes."""
    flight = ledger.flights.by_uid.get(answer.uid)
    if flight is None:
        return []
    if ledger.figures is not None and flight.profile is not None and flight.stage is not Stage.BOUND:
        since = flight.started if flight.entry.since is None else flight.entry.since
        ledger.figures.bound(flight.profile.scheduler_name, now - since)
    ledger.drop(flight.pod.key)
    if flight.seen:
        ledger.land(flight)
    flight.stage = Stage.BOUND
    text = f"Successfully assigned {flight.pod.key} to {flight.node}"
    return [Note(flight.pod, "Scheduled", "Binding", text)]


def not_bound(ledger: Ledger, answer: NotBound, now: float) -> list[Effect]:
    """Undo the decision, as far as it is known that nothing came of it."""
    flight = ledger.flights.by_uid.get(answer.uid)
    if flight is None or flight.stage is Stage.BOUND:
        return []
    if flight.seen:
        return bound(ledger, Bound(answer.key, answer.uid), now)
    if answer.failure is Failure.UNKNOWN:
        ledger.flights.wait(flight, Stage.RETRY, now + RETRY_SECONDS)
        return []
    ledger.abandon(flight)
    if answer.failure is Failure.REFUSED:
        return failed(ledger, flight.entry, Verdict(answer.message), now)
    ledger.queue.fail(flight.entry, now)  # the watch will say so, or else it was not true
    return []
