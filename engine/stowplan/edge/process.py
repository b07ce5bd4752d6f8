"""The scheduler as a process: serve, follow the cluster, compete for the lease, schedule, and stop in good order.

Health and metrics are served before the first list, and until the last binding is answered. The first SIGTERM, SIGINT or SIGHUP
stops the scheduler gracefully, the second one at once; a terminal that is closed sends several SIGHUPs, which count as one.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, Protocol

from stowplan.edge.clock import Clock
from stowplan.edge.journal import Inside, Journal, Listener
from stowplan.edge.logs import ROOT, DecisionLog, level, say
from stowplan.edge.metrics import Metrics
from stowplan.edge.reporter import Reporter
from stowplan.edge.serve import Check, Page, Server
from stowplan.edge.serve.checks import Limits, healths
from stowplan.edge.stopping import Stoppable, stopping
from stowplan.profile import Configuration

_log = logging.getLogger(f"{ROOT}.process")


class PortError(Exception):
    """Nothing can be served there."""


class Driving(Protocol):
    """Whoever connects the loop with the API server."""

    @property
    def synced(self) -> bool: ...

    def staleness(self) -> Mapping[str, float]: ...

    def stop(self) -> None: ...

    async def run(self) -> None: ...


class Telling:
    """Everything that tells what the scheduler does: metrics, log lines, and spans where they are wanted."""

    def __init__(self, inside: Inside, configuration: Configuration, clock: Clock, traces: Listener | None = None) -> None:
        self.metrics = Metrics(configuration.leader_election.resource_name)
        self.metrics.look_into(inside)
        self.listeners: tuple[Listener, ...] = (self.metrics, DecisionLog(), *([] if traces is None else [traces]))
        self.reporter = Reporter(self.metrics, Journal(inside, self.listeners), clock.wall, settle)
        for listener in self.listeners:
            listener.policy(inside.generation, 0.0, clock.wall())


class Process:
    """A scheduler that is being run; what health checks look at."""

    def __init__(self, drive: Driving, reporter: Reporter, clock: Clock) -> None:
        self.stopping = False
        self._drive, self._reporter, self._clock = drive, reporter, clock

    @property
    def synced(self) -> bool:
        return self._drive.synced

    @property
    def leading(self) -> bool:
        return self._reporter.leads

    def staleness(self) -> Mapping[str, float]:
        """Seconds since the API server last said anything, by kind."""
        return self._drive.staleness()

    def unrenewed(self) -> float:
        """Seconds since the lease was last renewed."""
        return self._clock.wall() - self._reporter.renewed_at

    def server(self, limits: Limits, pages: tuple[Page, ...], more: tuple[Check, ...] = ()) -> Server:
        """Health checks of this process, and pages."""
        return Server(healths(self, limits, more), pages)

    async def run(self, server: Server, address: str, port: int) -> None:
        """Serve, unless the port is 0, and drive until a signal comes.

        Raises PortError where the port cannot be had, and what the drive raises.
        """
        await listen(server, address, port)
        try:
            with signals(self._stop):
                await self._drive.run()
        finally:
            self.stopping = True
            await server.close()

    def _stop(self, name: str) -> None:
        self.stopping = True
        say(_log, level(0), "stopping", signal=name)
        self._drive.stop()


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The loop of uvloop where that is installed, as it takes a sixth less processor time a pod; None: asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None

    class Loop(uvloop.Loop):
        def time(self) -> float:
            """As asyncio's: uvloop tells when the present turn began, and whoever has a long turn wants to know how long."""
            return time.monotonic()

    return Loop


async def listen(server: Server, address: str, port: int) -> None:
    """Serve, unless the port is 0. Raises PortError where it cannot be had."""
    if not port:
        return
    try:
        await server.start(address, port)
    except OSError as error:
        raise PortError(f"cannot serve health and metrics on {address} port {port}: {error.strerror or error}") from None
    say(_log, level(0), "serving health and metrics", port=server.port)


async def alongside(main: Coroutine[Any, Any, None], *others: Coroutine[Any, Any, None]) -> None:
    """Run `main` to its end and the others until then. One of them that fails, which only a bug makes it do, ends all."""
    chief, tasks = asyncio.ensure_future(main), [asyncio.ensure_future(each) for each in others]
    try:
        await asyncio.wait((chief, *tasks), return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done() and not chief.done():
                task.result()
        await chief
    finally:
        for task in (chief, *tasks):
            task.cancel()
        await asyncio.gather(chief, *tasks, return_exceptions=True)


@contextlib.contextmanager
def signals(stop: Callable[[str], None]) -> Iterator[None]:
    """Have the first signal that ends a process call `stop` with its name; within Stoppable, where there is one."""
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in stopping()}
    owner = getattr(before[signal.SIGTERM], "__self__", None)
    stoppable = owner if isinstance(owner, Stoppable) else Stoppable()
    stoppable.last_words = lambda name: say(_log, logging.WARNING, "stopped at once by a second signal", signal=name)

    def heard(number: signal.Signals) -> None:
        if stoppable.heard(number):
            stop(number.name)

    for number in before:
        loop.add_signal_handler(number, heard, number)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


OFTEN = 1000
"""New objects between two collections, few: one decision leaves cycles behind that hold arrays over all nodes."""


def settle() -> None:
    """What the first lists have left stays: the garbage collector need not look at it ever again."""
    gc.collect()
    gc.freeze()
    gc.collect()  # counts anew what is old: next to nothing
    gc.set_threshold(OFTEN)
