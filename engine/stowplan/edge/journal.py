"""What the loop does, told as attempts: a pod was tried, with this result. Metrics, logs and traces are written from it.

The journal watches events go in and effects come out, and looks into the queue for what only the loop knows (how often a pod
was tried, since when it waits). It changes nothing, and a scheduler without it decides the same.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from stowplan.loop.effects import Bind, Consult, Effect, Evict, Mark, Note, Prepare, Why
from stowplan.loop.events import Event, Failure, NotBound, PodGone, PolicyChanged, Prepared
from stowplan.loop.flights import Flights
from stowplan.loop.ledger import Outcome
from stowplan.loop.waiting import SchedulingQueue
from stowplan.objects import Pod
from stowplan.policy.compile import Policy
from stowplan.state import Store

SCHEDULED = "Scheduled"
"""The reason of the Event that tells of a bound pod."""


class Inside(Protocol):
    """The parts of the loop that are looked into, never changed."""

    @property
    def queue(self) -> SchedulingQueue: ...

    @property
    def flights(self) -> Flights: ...

    @property
    def store(self) -> Store: ...

    @property
    def policy(self) -> Policy: ...

    @property
    def generation(self) -> int: ...

    @property
    def no_values(self) -> Mapping[tuple[str, str, bool], int]: ...

    @property
    def outcome(self) -> Outcome | None: ...


class Result(enum.StrEnum):
    """How an attempt ended; the values are kube-scheduler's."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt that has ended. Moments are epoch seconds, spans of time seconds.

    number      1 for the first attempt at this pod; 0 where nobody knows any more
    generation  of the policy that was in force when it ended
    thought     what deciding took
    since       when the pod first became active
    decided, prepared  when a node was found, and when what had to be written before binding was written; None if never
    """

    pod: Pod
    number: int
    generation: int
    result: Result
    node: str
    message: str
    started: float
    ended: float
    thought: float
    since: float | None
    decided: float | None = None
    prepared: float | None = None
    failure: Failure | None = None
    """why it is not bound to the node that was found"""
    feasible: int | None = None
    """nodes that passed all filters"""
    preempted: bool = False
    """whether victims were looked for"""
    victims: int = 0
    version: str = ""
    """name of the profile where that is not the scheduler name of the pod"""

    @property
    def profile(self) -> str:
        """Name of the profile that tried the pod."""
        return self.version or self.pod.spec.scheduler_name


class Listener(Protocol):
    """Who is told. Must be quick, and never raise: it stands between two decisions."""

    def attempted(self, attempt: Attempt) -> None:
        """An attempt has ended."""
        ...

    def preempted(self, preemptor: Pod, node: str, victims: Sequence[Pod]) -> None:
        """Pods are about to be evicted for another one."""
        ...

    def policy(self, generation: int, seconds: float, now: float) -> None:
        """A policy is in force; putting it there took so long."""
        ...


@dataclass(slots=True)
class _Flying:
    """A pod that a node was found for."""

    pod: Pod
    node: str
    number: int
    since: float | None
    started: float
    thought: float
    decided: float
    feasible: int | None = None
    version: str = ""
    prepared: float | None = None

    def ended(self, generation: int, result: Result, message: str, now: float, failure: Failure | None = None) -> Attempt:
        """The attempt that this was."""
        told = (result, self.node, message, self.started, now, self.thought, self.since, self.decided, self.prepared)
        return Attempt(self.pod, self.number, generation, *told, failure, self.feasible, version=self.version)


class Journal:
    """Told of every event that the loop has handled; tells listeners of attempts."""

    def __init__(self, inside: Inside, listeners: Iterable[Listener]) -> None:
        self._inside, self._listeners = inside, tuple(listeners)
        self._flying: dict[str, _Flying] = {}
        self._asked: dict[str, float] = {}
        """when extenders were asked about a pod, by uid"""

    def handled(self, event: Event, effects: Sequence[Effect], now: float, seconds: float) -> None:
        """The loop was given the event at `now`, in epoch seconds, and came back with the effects after so many seconds."""
        if isinstance(event, Prepared):
            flying = self._flying.get(event.uid)
            if flying is not None:
                flying.prepared = now
        elif isinstance(event, PolicyChanged):
            for listener in self._listeners:
                listener.policy(event.generation, seconds, now)
        for effect in effects:
            self._wanted(effect, event, now, seconds)
        if isinstance(event, NotBound | PodGone) and event.uid in self._flying:
            self._lost(event, now)
        if isinstance(event, PodGone):  # extenders may never answer about it
            self._asked.pop(event.uid, None)

    def _wanted(self, effect: Effect, event: Event, now: float, seconds: float) -> None:
        if isinstance(effect, Prepare | Bind):
            self._decided(effect, now, seconds)
        elif isinstance(effect, Mark):
            self._failed(effect, event, now, seconds)
        elif isinstance(effect, Note):
            if effect.reason == SCHEDULED:
                flying = self._flying.pop(effect.pod.uid, None)
                if flying is not None:
                    self._tell(flying.ended(self._inside.generation, Result.SCHEDULED, "", now))
        elif isinstance(effect, Evict):
            for listener in self._listeners:
                listener.preempted(effect.preemptor, effect.node, effect.victims)
        elif isinstance(effect, Consult):
            self._asked[effect.pod.uid] = now

    def _decided(self, effect: Prepare | Bind, now: float, seconds: float) -> None:
        pod = effect.pod
        if pod.uid in self._flying:  # prepared, and now to be bound; or bound once more, unanswered the first time
            return
        entry = self._inside.queue.pods.get(pod.key)
        number, since = (0, None) if entry is None else (entry.attempts, entry.since)
        outcome = self._outcome(pod)
        feasible, version = (None, "") if outcome is None else (outcome.feasible, outcome.version)
        started = self._asked.pop(pod.uid, now)
        told = (number, since, started, seconds, now + seconds, feasible, version)
        self._flying[pod.uid] = _Flying(pod, effect.node, *told)

    def _failed(self, mark: Mark, event: Event, now: float, seconds: float) -> None:
        pod, generation = mark.pod, self._inside.generation
        result = Result.UNSCHEDULABLE if mark.why is Why.UNSCHEDULABLE else Result.ERROR
        flying = self._flying.pop(pod.uid, None)
        if flying is not None:  # a node was found, and then it was not bound
            failure = event.failure if isinstance(event, NotBound) and event.uid == pod.uid else None
            self._tell(flying.ended(generation, result, mark.message, now, failure))
            return
        entry, outcome = self._inside.queue.pods.get(pod.key), self._outcome(pod)
        number, since = (0, None) if entry is None else (entry.attempts, entry.since)
        started, ended, node = self._asked.pop(pod.uid, now), now + seconds, mark.nominated or ""
        attempt = Attempt(pod, number, generation, result, node, mark.message, started, ended, seconds, since)
        if outcome is not None:
            attempt = replace(attempt, feasible=outcome.feasible, preempted=outcome.preempted, victims=outcome.victims)
            attempt = replace(attempt, version=outcome.version) if outcome.version else attempt
        self._tell(attempt)

    def _lost(self, event: NotBound | PodGone, now: float) -> None:
        """The pod of a decision is gone, or another's. One that nobody can tell about is asked for again."""
        if event.uid in self._inside.flights.by_uid:
            return
        flying = self._flying.pop(event.uid)
        failure, message = (event.failure, event.message) if isinstance(event, NotBound) else (Failure.GONE, "deleted")
        self._tell(flying.ended(self._inside.generation, Result.ERROR, message, now, failure))

    def _outcome(self, pod: Pod) -> Outcome | None:
        """What the loop says about its last attempt, if that was at this pod."""
        outcome = self._inside.outcome
        return outcome if outcome is not None and outcome.pod.uid == pod.uid else None

    def _tell(self, attempt: Attempt) -> None:
        for listener in self._listeners:
            listener.attempted(attempt)
