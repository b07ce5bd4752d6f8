"""The scheduling queue: which pods wait, for what, and who is next (upstream: `PriorityQueue`).

A pod that waits is active, backing off, unschedulable or gated; one that is being tried or bound is in none of these places.
Times are epoch seconds. The queue knows no cluster: who wakes a pod is `requeue`'s business.
"""

from __future__ import annotations

import enum
import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import floor
from typing import TYPE_CHECKING, Any

from stowplan.objects import Pod

if TYPE_CHECKING:
    from stowplan.loop.bargain import Bargain

POOL_SECONDS = 300.0
"""After this long among the unschedulable a pod is tried again whatever happened (podMaxInUnschedulablePodsDuration)."""
FLUSH_SECONDS = 30.0
"""How often that is looked at."""


class Place(enum.StrEnum):
    """Where a pod waits; the values are the names of kube-scheduler's metrics."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR = "errorbackoff"
    POOL = "unschedulable"
    GATED = "gated"
    OUT = "out"
    """being tried or bound"""


@dataclass(frozen=True, slots=True)
class Backoff:
    """`podInitialBackoffSeconds` and `podMaxBackoffSeconds`."""

    initial: float = 1.0
    longest: float = 10.0

    def after(self, failures: int) -> float:
        """Seconds to wait after that many failures in a row: doubled each time, up to the longest."""
        if failures == 0 or self.longest == 0:
            return 0.0
        return self.longest if self.initial > self.longest / 2.0 ** min(failures - 1, 64) else self.initial * 2.0 ** (failures - 1)


@dataclass(slots=True, eq=False)
class Waiting:
    """A pod and what became of it so far.

    since      when it first became active
    timestamp  when it entered the queue after its last attempt: its place among pods of equal priority
    rejectors  plugins that rejected some node, or the pod, in the last attempt
    gate       why it may not be tried at all
    busy       its preemption is being carried out: it is not tried meanwhile (upstream: PreEnqueue of DefaultPreemption)
    """

    pod: Pod
    timestamp: float
    place: Place = Place.OUT
    since: float | None = None
    attempts: int = 0
    rejections: int = 0
    errors: int = 0
    rejectors: frozenset[str] = frozenset()
    message: str = ""
    gate: str | None = None
    busy: bool = False
    victims: tuple[tuple[Pod, Pod], ...] = ()
    """pods that are being evicted for it, as they will be shown and as they were before"""
    bargain: Bargain | None = None
    """what extenders are being asked about victims"""
    told: str = ""
    """the node that its status nominated when it was seen last; `pod` may have another one, decided since"""
    expiry: float = 0.0
    flushed: bool = False
    ticket: int = 0
    """which of its entries in a heap counts"""

    @property
    def failures(self) -> int:
        """What backoff grows with: errors in a row, else rejections."""
        return self.errors or self.rejections


@dataclass(slots=True)
class SchedulingQueue:
    """Pods by key. `moves` counts what entered a place and why, under kube-scheduler's names."""

    backoff: Backoff = field(default_factory=Backoff)
    pods: dict[str, Waiting] = field(default_factory=dict)
    moves: Counter[tuple[str, str]] = field(default_factory=Counter)
    sizes: Counter[Place] = field(default_factory=Counter)
    _active: list[tuple[int, float, float, int, Waiting]] = field(default_factory=list)
    _backoff: list[tuple[int, int, float, int, Waiting]] = field(default_factory=list)
    _errors: list[tuple[int, int, float, int, Waiting]] = field(default_factory=list)
    _tickets: int = 0
    _flushed: float = 0.0

    # Places

    def add(self, pod: Pod, now: float) -> Waiting:
        """A pod that was not here; it waits nowhere yet."""
        entry = self.pods[pod.key] = Waiting(pod, now)
        return entry

    def remove(self, key: str) -> Waiting | None:
        """A pod is deleted, bound or another's."""
        entry = self.pods.pop(key, None)
        if entry is not None:
            self.leave(entry)
        return entry

    def leave(self, entry: Waiting) -> None:
        """Take a pod out of its place, for a while at least."""
        if entry.place is not Place.OUT:
            self.sizes[entry.place] -= 1
            entry.place, entry.ticket = Place.OUT, 0

    def activate(self, entry: Waiting, now: float, why: str) -> None:
        """To the active pods, where the most important is next, and of equals the one that waits longest."""
        self._enter(entry, Place.ACTIVE, why)
        entry.since = now if entry.since is None else entry.since
        created = entry.pod.created or 0.0
        heapq.heappush(self._active, (-entry.pod.spec.priority, entry.timestamp, created, entry.ticket, entry))

    def reject(self, entry: Waiting, now: float, rejectors: frozenset[str], why: str = "ScheduleAttemptFailure") -> None:
        """No node takes the pod: it waits among the unschedulable for something to change."""
        entry.rejections, entry.errors = entry.rejections + 1, 0
        self._failed(entry, now, rejectors)
        self._enter(entry, Place.POOL, why)

    def fail(self, entry: Waiting, now: float, why: str = "ScheduleAttemptFailure") -> None:
        """An attempt ended with an error: it is repeated after a while."""
        entry.errors += 1
        self._failed(entry, now, frozenset())
        self._back_off(entry, Place.ERROR, why)

    def gate(self, entry: Waiting, text: str) -> None:
        """A plugin keeps the pod from being tried."""
        entry.gate = text
        self._enter(entry, Place.GATED, "Gated")

    def wake(self, entry: Waiting, now: float, why: str) -> None:
        """An unschedulable or gated pod is worth another attempt; what is left of its backoff it still waits for."""
        entry.gate = None
        if backing_off(entry.expiry, now):
            self._back_off(entry, Place.BACKOFF, why)
        else:
            self.activate(entry, now, why)

    def _failed(self, entry: Waiting, now: float, rejectors: frozenset[str]) -> None:
        entry.rejectors, entry.timestamp, entry.flushed = rejectors, now, False
        entry.expiry = now + self.backoff.after(entry.failures)

    def _back_off(self, entry: Waiting, place: Place, why: str) -> None:
        self._enter(entry, place, why)
        heap = self._backoff if place is Place.BACKOFF else self._errors
        heapq.heappush(heap, (floor(entry.expiry), -entry.pod.spec.priority, entry.timestamp, entry.ticket, entry))

    def _enter(self, entry: Waiting, place: Place, why: str) -> None:
        self.leave(entry)
        self._tickets += 1
        entry.place, entry.ticket = place, self._tickets
        self.sizes[place] += 1
        self.moves[Place.BACKOFF if place is Place.ERROR else place, why] += 1

    # Time

    def flush(self, now: float) -> None:
        """Release those whose backoff is over, and those that were unschedulable for long."""
        for heap in (self._backoff, self._errors):
            while (entry := _head(heap)) is not None and not backing_off(entry.expiry, now):
                heapq.heappop(heap)
                self.activate(entry, now, "BackoffComplete")
        if now >= self._flushed + FLUSH_SECONDS:
            self._flushed = now
            for entry in list(self.at(Place.POOL)):
                if now - entry.timestamp > POOL_SECONDS and not entry.busy:
                    entry.flushed = True
                    self.wake(entry, now, "UnschedulableTimeout")

    def pop(self) -> Waiting | None:
        """The next pod to try; where none is active, one that is backing off after a rejection (SchedulerPopFromBackoffQ)."""
        entry = _head(self._active)
        if entry is not None:
            heapq.heappop(self._active)
        elif (entry := _head(self._backoff)) is not None:
            heapq.heappop(self._backoff)
            self.moves[Place.ACTIVE, "PopFromBackoffQ"] += 1
        if entry is not None:
            self.leave(entry)
            entry.attempts += 1
        return entry

    def ready(self, now: float) -> bool:
        """Whether `pop` would give a pod, or `flush` has something to look at."""
        if self.sizes[Place.ACTIVE] or self.sizes[Place.BACKOFF]:
            return True
        if self.sizes[Place.POOL] and now >= self._flushed + FLUSH_SECONDS:
            return True
        entry = _head(self._errors)
        return entry is not None and not backing_off(entry.expiry, now)

    def wake_at(self) -> float | None:
        """The next moment at which time alone moves a pod."""
        moments = [floor(entry.expiry) + 1.0 for entry in (_head(self._errors),) if entry is not None]
        if self.sizes[Place.POOL]:
            moments.append(self._flushed + FLUSH_SECONDS)
        return min(moments, default=None)

    def pending(self) -> dict[str, int]:
        """Numbers of waiting pods by place, as `scheduler_pending_pods` has them: backoff is both kinds of it."""
        sizes = self.sizes
        return {
            "active": sizes[Place.ACTIVE],
            "backoff": sizes[Place.BACKOFF] + sizes[Place.ERROR],
            "unschedulable": sizes[Place.POOL],
            "gated": sizes[Place.GATED],
        }

    def at(self, place: Place) -> Iterator[Waiting]:
        """The pods in one place, in no order."""
        return (entry for entry in self.pods.values() if entry.place is place)


def backing_off(expiry: float, now: float) -> bool:
    """Whether a pod still backs off: whole seconds are compared, so it is released on one."""
    return expiry > 0 and floor(expiry) >= floor(now)


def _head(heap: list[tuple[int, int, float, int, Waiting]] | list[tuple[int, float, float, int, Waiting]]) -> Waiting | None:
    """The first entry of a heap that still counts; those that do not are dropped."""
    some: list[Any] = heap
    while some:
        *_, ticket, entry = some[0]
        if entry.ticket == ticket:
            return entry  # type: ignore[no-any-return]
        heapq.heappop(some)
    return None
