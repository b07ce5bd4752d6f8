"""The scheduling loop as a state machine: an event in, effects out. It awaits nothing and has no clock of its own.

    loop = Loop(policy, draw)
    for effect in loop.handle(PodChanged(pod), now): ...
    while loop.ready(now):
        for effect in loop.handle(Cycle(), now): ...

One `Cycle` tries at most one pod, so that whoever feeds the loop is never kept waiting for long.
"""

from __future__ import annotations

from collections.abc import Callable

from stowplan.loop import advice, attempts, bindings, failures
from stowplan.loop.effects import Effect
from stowplan.loop.events import (
    Advice,
    Bound,
    Cycle,
    Deallocated,
    Event,
    Evicted,
    FactChanged,
    FactGone,
    Leading,
    NodeChanged,
    NodeGone,
    NotBound,
    PodChanged,
    PodGone,
    PolicyChanged,
    Prepared,
    Synced,
    VictimAdvice,
)
from stowplan.loop.ledger import Ledger, Outcome
from stowplan.loop.observe import pod_changed, pod_gone
from stowplan.loop.requeue import Change
from stowplan.loop.shadow import Shadow
from stowplan.loop.waiting import Place
from stowplan.objects import Node, PersistentVolume, PersistentVolumeClaim
from stowplan.policy.compile import Policy


class Loop:
    """Decides for all profiles of a policy. `draw(n)` picks one of n equally good nodes: 0 <= draw(n) < n."""

    def __init__(self, policy: Policy, draw: Callable[[int], int], *, shadow: bool = False) -> None:
        self.ledger = Ledger(policy, draw, shadow=Shadow() if shadow else None)

    @property
    def outcome(self) -> Outcome | None:
        """What the last `Cycle` or `Advice` came to; None if no pod was tried."""
        return self.ledger.outcome

    def ready(self, now: float) -> bool:
        """Whether a `Cycle` would do something now."""
        ledger = self.ledger
        if not ledger.acts:
            return False
        idle = not ledger.queue.sizes[Place.ACTIVE]
        if ledger.gates_dirty or ledger.queue.ready(now) or ledger.requeue.due(now, idle=idle):
            return True
        moment = ledger.flights.wake_at()
        return moment is not None and moment <= now

    def wake_at(self) -> float | None:
        """The next moment at which time alone makes the loop ready; None: events have to come first."""
        ledger = self.ledger
        if not ledger.acts:
            return None
        moments = (ledger.queue.wake_at(), ledger.requeue.wake_at(), ledger.flights.wake_at())
        return min((moment for moment in moments if moment is not None), default=None)

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Take an event in, at `now` in epoch seconds; returns what is to be done about it, in order."""
        ledger = self.ledger
        ledger.outcome = None
        match event:
            case Cycle():
                return _cycle(ledger, now)
            case PodChanged(pod):
                pod_changed(ledger, pod, now)
            case PodGone(key, uid):
                pod_gone(ledger, key, uid)
            case NodeChanged(node):
                _node_changed(ledger, node)
            case NodeGone(name):
                _node_gone(ledger, name)
            case FactChanged(fact):
                ledger.overlay.observe(fact)
                return _facts_differ(ledger, type(fact), fact.key, now)
            case FactGone(kind, key):
                ledger.overlay.observe_gone(kind, key)
                return _facts_differ(ledger, kind, key, now)
            case Synced():
                ledger.synced = True
            case Leading(leads):
                ledger.leads = leads
            case PolicyChanged():
                _change_policy(ledger, event, now)
            case _:
                return _answered(ledger, event, now)
        return []


def _answered(ledger: Ledger, answer: Event, now: float) -> list[Effect]:
    """An answer to an effect."""
    match answer:
        case Prepared():
            return bindings.prepared(ledger, answer, now)
        case Bound():
            return bindings.bound(ledger, answer, now)
        case NotBound():
            return bindings.not_bound(ledger, answer, now)
        case Evicted(key, uid, message):
            _evicted(ledger, key, uid, message, now)
        case Advice():
            return advice.advised(ledger, answer, now)
        case VictimAdvice():
            return attempts.bargained(ledger, answer, now)
        case Deallocated(key, uid, message) if message:
            failures.kept(ledger, key, uid, now)
    return []


def _cycle(ledger: Ledger, now: float) -> list[Effect]:
    """Let time do its work, then try one pod."""
    if not ledger.acts:
        return []
    ledger.freeze(now)
    effects = bindings.overdue(ledger, now)
    ledger.queue.flush(now)
    if ledger.gates_dirty:
        ledger.gates_dirty = False
        for entry in list(ledger.queue.at(Place.GATED)) if ledger.queue.sizes[Place.GATED] else ():
            ledger.admit(entry, now, "GateLifted")
    if ledger.requeue.due(now, idle=not ledger.queue.sizes[Place.ACTIVE]):
        for entry in ledger.requeue.look(now):
            ledger.wake(entry, now, "ClusterChanged")
    waiting = ledger.queue.pop()
    if waiting is None:
        return effects
    ledger.requeue.leave(waiting.pod.key)
    return effects + (advice.consult(ledger, waiting) or attempts.attempt(ledger, waiting, now))


def _node_changed(ledger: Ledger, node: Node) -> None:
    before = ledger.store.epoch
    ledger.store.set_node(node)
    if ledger.store.epoch != before:
        ledger.requeue.note(Change.NODE)


def _node_gone(ledger: Ledger, name: str) -> None:
    if name in ledger.store.row_of:
        ledger.store.remove_node(name)
        ledger.requeue.note(Change.NODE)


def _facts_differ(ledger: Ledger, kind: type, key: str, now: float) -> list[Effect]:
    ledger.requeue.note(Change.FACT)
    ledger.gates_dirty = ledger.gates_dirty or ledger.queue.sizes[Place.GATED] > 0
    return bindings.volumes_changed(ledger, kind, key, now) if kind in (PersistentVolume, PersistentVolumeClaim) else []


def _evicted(ledger: Ledger, key: str, uid: str, message: str, now: float) -> None:
    """The victims are being deleted; the preemptor is tried as soon as one has left, or at once if that came to nothing."""
    entry = ledger.queue.pods.get(key)
    if entry is None or entry.pod.uid != uid or not entry.busy:
        return
    entry.busy = False
    if message:
        failures.spare(ledger, entry)
    if entry.place is Place.POOL:
        if message:
            ledger.requeue.leave(key)
            ledger.queue.activate(entry, now, "ForceActivate")
        else:
            ledger.requeue.resume()


def _change_policy(ledger: Ledger, change: PolicyChanged, now: float) -> None:
    """Swap the policy between two decisions; every pod that waits is tried under it, whatever it waited for."""
    ledger.generation, ledger.digest = change.generation, change.digest
    ledger.enforce(change.policy)
    for entry in list(ledger.queue.pods.values()):
        if entry.place is Place.OUT:
            continue
        if not ledger.serves(entry.pod):
            ledger.drop(entry.pod.key)
        elif entry.busy:
            ledger.requeue.enter(entry, ledger.chooser.likeness(entry.pod))
        else:
            ledger.queue.activate(entry, now, "PolicyChanged")  # what gates it is found when it is tried
    for pod in ledger.store.pending.values():
        if ledger.serves(pod) and not pod.terminating and pod.key not in ledger.queue.pods:
            ledger.queue.activate(ledger.queue.add(pod, now), now, "PolicyChanged")
