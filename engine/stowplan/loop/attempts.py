"""One attempt to place a pod, from the queue to an effect (upstream: `schedulingCycle` and `handleSchedulingFailure`)."""

from __future__ import annotations

from stowplan.loop.bargain import begun, concluded, heard
from stowplan.loop.bindings import depart
from stowplan.loop.effects import Effect, Note, Tone
from stowplan.loop.events import VictimAdvice
from stowplan.loop.failures import Verdict, failed
from stowplan.loop.ledger import Ledger, Outcome
from stowplan.loop.requeue import ALL
from stowplan.loop.waiting import Waiting
from stowplan.policy.choose import Choice
from stowplan.policy.decision import NO_NODES


def attempt(ledger: Ledger, entry: Waiting, now: float) -> list[Effect]:
    """Try a pod that has left the queue."""
    choice = ledger.chooser.choose(entry.pod)
    return conclude(ledger, entry, choice, now)


def conclude(ledger: Ledger, entry: Waiting, choice: Choice, now: float) -> list[Effect]:
    """Carry out what was found: the pod goes to a node or, for now, nowhere."""
    if choice.skipped is not None:
        return _skipped(ledger, entry, choice.skipped, now)
    if choice.row is None:
        return begun(ledger, entry, choice) or _failed(ledger, entry, choice, now)
    row, tied = choice.row, 1
    if choice.tied is not None:
        rows = choice.tied.nonzero()[0]
        tied = len(rows)
        if tied > 1:
            row = int(rows[ledger.draw(tied)])
    node = ledger.store.nodes[row].name
    outcome = Outcome(entry.pod, "scheduled", entry.attempts, ledger.generation, node, choice.total, choice.feasible, tied)
    ledger.note(outcome, choice, now)
    return depart(ledger, entry, node, choice.facts_at(row), now)


def bargained(ledger: Ledger, answer: VictimAdvice, now: float) -> list[Effect]:
    """An extender has said what it makes of the victims: another one is asked, or the attempt fails as it would have."""
    entry = ledger.consulted.get(answer.uid)
    if entry is None or entry.bargain is None:
        return []
    more = heard(ledger, entry.bargain, answer)
    if more is not None:
        return [more]
    bargain, entry.bargain = entry.bargain, None
    del ledger.consulted[answer.uid]
    choice = concluded(ledger, bargain)
    if choice is None:  # what was found does not hold any more
        ledger.queue.activate(entry, now, "ClusterChanged")
        return []
    effects = _failed(ledger, entry, choice, now)
    if bargain.moved(ledger):  # while the pod was not waiting for it
        ledger.requeue.note(ALL)
    return effects


def _skipped(ledger: Ledger, entry: Waiting, why: str, now: float) -> list[Effect]:
    pod = entry.pod
    if why == "gated":
        entry.attempts -= 1  # it was never tried: a new policy had all pods looked at
    ledger.note(Outcome(pod, "skipped", entry.attempts, ledger.generation, message=why), None, now)
    if why == "gated":
        ledger.admit(entry, now, "ScheduleAttemptFailure")
        return []
    ledger.drop(pod.key)
    return [Note(pod, "FailedScheduling", "Scheduling", why, Tone.WARNING)]


def _failed(ledger: Ledger, entry: Waiting, choice: Choice, now: float) -> list[Effect]:
    """No node takes the pod, or the attempt ended with an error."""
    message, pod = choice.message or "", entry.pod
    error = not choice.rejectors and message != NO_NODES
    preemption = None if error else choice.preemption
    victims = preemption.victims if preemption is not None else ()
    result = "error" if error else "unschedulable"
    tried = preemption is not None
    outcome = Outcome(pod, result, entry.attempts, ledger.generation, message=message, victims=len(victims), preempted=tried)
    ledger.note(outcome, choice, now)
    return failed(ledger, entry, Verdict(message, None if error else choice.rejectors, preemption), now)
