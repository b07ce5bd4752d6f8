"""Keeps a loop going: events in, effects out, and others' turn every few milliseconds.

Events that belong together (a list anew) are all handled before the loop decides anything.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from stowplan.edge.clock import Clock, monotonic
from stowplan.edge.coalesce import coalesced, flattened
from stowplan.edge.observer import Observer
from stowplan.loop.effects import Effect
from stowplan.loop.events import Cycle, Event

SLICE = 0.004
"""Seconds after which others have their turn."""
LONG, BREATH = 0.1, 0.02
"""Seconds of a turn after which others get a real pause, and how long that is."""
CYCLES = 8
"""Decisions after which others have their turn, however quick they were."""
EVENTS = 256
"""The same for events; so many at once are worth coalescing."""


class Machine(Protocol):
    """The loop. `now` is in epoch seconds, and never goes back."""

    def handle(self, event: Event, now: float) -> Sequence[Effect]: ...

    def ready(self, now: float) -> bool:
        """Would a Cycle do something now?"""
        ...

    def wake_at(self) -> float | None:
        """When a Cycle will do something next, if nothing happens until then."""
        ...


class Pump:
    """Runs a loop. `take` is given its effects; nothing is decided while `may_act` says no."""

    def __init__(
        self,
        machine: Machine,
        take: Callable[[Effect], None],
        may_act: Callable[[], bool],
        clock: Clock,
        observer: Observer,
    ) -> None:
        self._machine, self._take, self._may_act = machine, take, may_act
        self._clock, self._observer = clock, observer
        self._inbox: deque[Sequence[Event]] = deque()
        self._news = asyncio.Event()
        self._halted = False

    def deliver(self, events: Sequence[Event]) -> None:
        """Tell the loop, soon; these events belong together."""
        self._inbox.append(events)
        self._news.set()

    def urge(self, event: Event) -> None:
        """Tell the loop before anything else."""
        self._inbox.appendleft((event,))
        self._news.set()

    def halt(self) -> None:
        """Let `run` return."""
        self._halted = True
        self._news.set()

    async def run(self) -> None:
        """Until halted."""
        while not self._halted:
            self._news.clear()
            await self.take_in()
            await self._let_others(self._decide())
            now = self._clock.wall()
            if self._inbox:
                await asyncio.sleep(0)
            elif self._machine.ready(now):
                await asyncio.sleep(0 if self._may_act() else SLICE)
            else:
                wake = self._machine.wake_at()
                await self._wait(None if wake is None else wake - now)

    async def take_in(self) -> None:
        """Handle all events that are there now."""
        events: Sequence[Event] = flattened(self._inbox)
        self._inbox.clear()
        if len(events) > EVENTS:
            events = coalesced(events)
        begun, place = monotonic(), 0
        for event in events:
            self.handle(event)
            place += 1
            if place == EVENTS or monotonic() - begun > SLICE:
                await asyncio.sleep(0)
                begun, place = monotonic(), 0

    def handle(self, event: Event) -> None:
        """Tell the loop now, and have done what it wants."""
        now, begun = self._clock.wall(), monotonic()
        effects = self._machine.handle(event, now)
        self._observer.handled(event, effects, now, monotonic() - begun)
        for effect in effects:
            self._take(effect)

    def _decide(self) -> float:
        """Decide as long as it is our turn; returns what that took, in seconds."""
        begun = monotonic()
        for _ in range(CYCLES):
            if not (self._may_act() and self._machine.ready(self._clock.wall())):
                break
            self.handle(Cycle())
            if monotonic() - begun > SLICE:
                break
        return monotonic() - begun

    async def _let_others(self, seconds: float) -> None:
        """After a decision that took so long, let them do all that has become due: one turn begins a renewal, but ends none."""
        if seconds > LONG:
            await asyncio.sleep(BREATH)

    async def _wait(self, seconds: float | None) -> None:
        """Until there is news, or time has come."""
        try:
            async with asyncio.timeout(seconds if seconds is None else max(seconds, 0.0)):
                await self._news.wait()
        except TimeoutError:
            return
