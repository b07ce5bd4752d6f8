"""The live edge around the loop: what happens in the cluster goes in, what the loop wants is carried out.

All tasks are watched over: one that fails, which no server and no network can make it do, ends `run` with its error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from stowplan.edge.clock import Clock
from stowplan.edge.kube.calls import Caller, Limit
from stowplan.edge.kube.extender import Extenders, Web
from stowplan.edge.kube.kinds import RESOURCES, Resource
from stowplan.edge.kube.lease import Lease, Seat, announcement
from stowplan.edge.kube.prepare import Preparations
from stowplan.edge.kube.recorder import Recorder
from stowplan.edge.kube.reflector import Reflector
from stowplan.edge.kube.transport import Transport
from stowplan.edge.kube.writer import Help, Writer
from stowplan.edge.observer import Observer
from stowplan.edge.pump import Machine, Pump
from stowplan.loop.effects import Effect, Note
from stowplan.loop.events import Event, Leading, Synced
from stowplan.profile.model import DEFAULT_SCHEDULER

CALM, EVENTS = 0.25, 0.125
"""Shares of the width for writes that nobody waits for, and for Events."""


class LeaseLostError(Exception):
    """Another process may lead now, so this one must not act any more."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to run.

    seat        the lease to compete for; None: this process leads, and nobody else does
    instance    this process, as Events name it
    reporter    whose Event it is that this process leads: the first profile's scheduler name
    grace       seconds that in-flight work gets at the end
    width       writes at a time, of bindings and what goes before them
    limit, event_limit  rates of writes, and of Events; None: none
    late        watches start when the lease is won (`delayCacheUntilActive`)
    patience    seconds that devices have to become ready for binding
    web         how extenders are reached; None if there are none
    """

    seat: Seat | None = None
    instance: str = "stowplan"
    reporter: str = DEFAULT_SCHEDULER
    resources: tuple[Resource, ...] = RESOURCES
    grace: float = 10.0
    width: int = 64
    limit: Limit | None = None
    event_limit: Limit | None = None
    late: bool = False
    patience: float = 600.0
    web: Web | None = None


class Drive:
    """Runs a loop against an API server, once. To be made within a running asyncio loop."""

    def __init__(
        self, machine: Machine, transport: Transport, clock: Clock, settings: Settings, observer: Observer | None = None
    ) -> None:
        watching = observer or Observer()
        self.settings, self.leading = settings, False
        self.lease = None if settings.seat is None else Lease(settings.seat, transport, clock, watching)
        self._stopping, self._lost = False, False
        self._competing: asyncio.Task[None] | None = None
        self._group, self._tasks = asyncio.TaskGroup(), set[asyncio.Task[None]]()

        def caller(share: float, limit: Limit | None) -> Caller:
            room = asyncio.Semaphore(max(int(settings.width * share), 1))
            return Caller(transport, clock, watching, self.may_write, room, limit)

        urgent = caller(1.0, settings.limit)
        self._extenders = Extenders(settings.web, urgent)
        self._pump = Pump(machine, self._take, self.may_decide, clock, watching)
        self._events = caller(EVENTS, settings.event_limit)
        self._recorder = Recorder(self._events, settings.instance, self._spawn)
        help_ = Help(urgent, caller(CALM, settings.limit), Preparations(urgent, settings.patience), self._extenders)
        self._writer = Writer(help_, self._pump.deliver, self._spawn)
        self.reflectors = [Reflector(each, transport, self._saw, clock, watching) for each in settings.resources]

    # What others may ask and do

    @property
    def synced(self) -> bool:
        """Are the first lists of all kinds complete?"""
        return not self.unsynced()

    def unsynced(self) -> list[str]:
        """Kinds whose first list is not complete."""
        return [each.resource.kind for each in self.reflectors if not each.synced.is_set()]

    def staleness(self) -> dict[str, float]:
        """Seconds since the server last said anything about a kind; those that it does not have are left out."""
        return {each.resource.kind: each.staleness() for each in self.reflectors if each.served}

    @property
    def stopping(self) -> bool:
        return self._stopping

    def may_write(self) -> bool:
        """May this process act, as of now?"""
        return self.lease is None or self.lease.valid()

    def may_decide(self) -> bool:
        """The same; and a renewal comes first."""
        return self.lease is None or (self.lease.valid() and not self.lease.urgent())

    def tell(self, event: Event) -> None:
        """Tell the loop, soon: of another policy, for example."""
        self._pump.deliver((event,))

    def stop(self) -> None:
        """Come to an end: `run` returns once in-flight work is done or its time is over, and the lease is released."""
        self._stopping = True
        self._pump.halt()

    # Running

    async def run(self) -> None:
        """Until `stop`. LeaseLostError where the lease is lost; an ExceptionGroup of whatever else goes wrong."""
        async with self._group:
            self._start()
            await self._pump.run()
            await self._end()
            for task in tuple(self._tasks):
                task.cancel()
        if self._lost:
            raise LeaseLostError("another process may lead now")

    def _start(self) -> None:
        self._spawn(self._recorder.run())
        if self.lease is None:
            self._led(True)
        else:
            self._competing = self._spawn(self.lease.run(self._led))
        if self.lease is None or not self.settings.late:
            self._reflect()

    def _reflect(self) -> None:
        for reflector in self.reflectors:
            self._spawn(reflector.run())
        self._spawn(self._await_lists())

    async def _await_lists(self) -> None:
        for reflector in self.reflectors:
            await reflector.synced.wait()
        self.tell(Synced())

    def _saw(self, events: Sequence[Event]) -> None:
        self._extenders.saw(events)
        self._pump.deliver(events)

    def _led(self, leads: bool) -> None:
        """The lease is won or lost; the loop learns of it before anything else."""
        self.leading = leads
        self._pump.urge(Leading(leads))
        if leads and self.lease is not None:
            self._spawn(self._announce())
            if self.settings.late:
                self._reflect()
        if not leads and not self._stopping:
            self._lost = True
            self._pump.halt()

    async def _announce(self) -> None:
        """Who leads is told to users; if that fails, only they miss something."""
        settings = self.settings
        assert settings.seat is not None
        told = announcement(settings.seat, settings.reporter, settings.instance, self._events.clock.wall())
        await self._events.once(told)

    def _take(self, effect: Effect) -> None:
        if isinstance(effect, Note):
            self._recorder.take(effect)
        else:
            self._writer.take(effect)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _end(self) -> None:
        """What was begun comes to an end, or is abandoned when its time is over, or may not be written any more."""
        self._pump.handle(Leading(False))
        grace = 0.0 if self._lost else self.settings.grace
        drained = self._spawn(self._writer.drain(grace))
        while not drained.done():
            await asyncio.wait({drained}, timeout=0.05)
            await self._pump.take_in()
        if not self._lost:
            await self._recorder.drain(min(grace / 4, 2.0))
        if self.lease is not None and self._competing is not None:
            self._competing.cancel()
            await asyncio.wait({self._competing})
            if not self._writer.busy:  # else the lease runs out by itself, as writes of this process may still arrive
                await self.lease.release()
