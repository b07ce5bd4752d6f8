"""A scheduler process on a machine of its own: the loop and the edge as they are, wired to the model. It crashes and restarts.

Its policy is the ConfigMap's, followed as `stowplan run` follows it; a process without a good one waits.
"""

import asyncio
import logging
import signal
from pathlib import Path

from simulation.machine import Machine, chance
from simulation.policies import BY_TEXT, REFERENCE
from simulation.reloads import Told
from simulation.wire import Wire
from stowplan.edge.clock import Clock
from stowplan.edge.drive import Drive, LeaseLostError, Settings
from stowplan.edge.kube.calls import Caller
from stowplan.edge.kube.lease import Seat
from stowplan.edge.logs import ROOT
from stowplan.edge.observer import Observer
from stowplan.edge.policies.clerk import Clerk
from stowplan.edge.policies.following import Following, await_first
from stowplan.edge.policies.keeper import Keeper, Live
from stowplan.edge.process import alongside
from stowplan.loop.loop import Loop

CHECKING = (0.0, 0.005, 0.05, 0.5)
"""seconds that it may take to look at a text"""
logging.getLogger(ROOT).addHandler(logging.NullHandler())  # what processes log goes nowhere


class Watched:
    """The loop, with everything that goes in and out of it shown to the checks."""

    def __init__(self, replica, checks):
        self.replica, self.loop, self.checks = replica, replica.loop, checks

    def handle(self, event, now: float):
        effects = self.loop.handle(event, now)
        self.checks.handled(self.replica, event, effects)
        return effects

    def ready(self, now: float) -> bool:
        return self.loop.ready(now)

    def wake_at(self) -> float | None:
        return self.loop.wake_at()


class Replica:
    """Number `number` of the schedulers; each of its lives is a process with its own identity."""

    def __init__(self, run, number: int):
        self.run, self.number, self.life = run, number, 0
        self.machine: Machine | None = None
        self.drive: Drive | None = None
        self.loop: Loop | None = None
        self.keeper: Keeper | None = None
        self.stopped = False

    def start(self) -> None:
        run = self.run
        if self.machine is not None or self.stopped:
            return
        self.life += 1
        identity = self.identity = f"replica-{self.number}.{self.life}"
        run.clock.say(f"{identity} starts")
        seed, kept = (run.scenario.seed, identity), Path(run.last_good(self.number))
        if kept.is_file():
            run.checks.reloads.course(identity).kept = BY_TEXT[kept.read_text()]
        self.machine = Machine(run.clock, identity)
        if run.mount is not None:
            run.checks.reloads.reads(identity)
        wire = self.wire = Wire(run.server, self.machine, self.number, run.checks, chance(*seed, "network"))
        wire.identity, wire.crash, wire.skew = identity, self.crash, chance(*seed, "skew").uniform(-3.0, 3.0)
        self.loop = None
        self.task = self.machine.create_task(self._main(identity, seed))
        self.task.add_done_callback(lambda task, life=self.life: run.clock.after(0.0, self._ended, task, life))

    async def _main(self, identity: str, seed) -> None:
        clock = Clock(lambda: self.run.clock.wall + self.wire.skew, chance(*seed, "jitter"))
        kept, checking = self.run.last_good(self.number), chance(*seed, "checking")

        async def beside(examine):
            """In a thread of its own."""
            await asyncio.sleep(checking.choice(CHECKING))
            return examine()

        mount = self.run.mount
        following = Following(configmap=REFERENCE, last_good=kept) if mount is None else Following(str(mount.path), None, kept)
        keeper = self.keeper = following.keeper(clock)
        keeper.beside = beside
        keeper.listeners.append(Told(self.run.checks.reloads, identity))
        await alongside(self._schedule(following, clock, seed), following.follow(keeper, self.wire, clock, Observer()))

    async def _schedule(self, following: Following, clock: Clock, seed) -> None:
        keeper, identity = self.keeper, self.identity
        if not await await_first(keeper, following, "", 0):
            return
        now = keeper.in_force
        self.loop = Loop(now.policy, chance(*seed, "ties").randrange)
        self.loop.ledger.generation, self.loop.ledger.digest = now.generation, now.digest
        settings = Settings(Seat(now.policy.configuration.leader_election, identity), identity)
        self.drive = Drive(Watched(self, self.run.checks), self.wire, clock, settings)
        keeper.live = Live(self.loop.ledger.store, self.drive.tell)
        caller = Caller(self.wire, clock, Observer(), self.drive.may_write, asyncio.Semaphore(1))
        others = [self._looks_at_start(keeper, self.drive)]
        if following.configmap is not None:
            clerk = Clerk(keeper, REFERENCE, caller, identity)
            keeper.listeners.append(clerk)
            others.append(clerk.run())
        await alongside(self.drive.run(), *others)

    @staticmethod
    async def _looks_at_start(keeper: Keeper, drive: Drive) -> None:
        await keeper.try_start(lambda: drive.synced)
        await asyncio.Event().wait()

    @property
    def leads(self) -> bool:
        return self.drive is not None and self.drive.leading

    def _ended(self, task, life: int) -> None:
        if life != self.life or self.machine is None:
            return
        error = None if task.cancelled() else task.exception()
        if error is not None and not _lost(error):
            self.run.checks.violated(f"{self.identity} died of {_causes(error)}")
        elif error is None and not self.stopped:
            self.run.checks.violated(f"{self.identity} ended, though nobody told it to")
        self.run.clock.say(f"{self.identity} ended: {error!r}")
        self._clear()
        self.run.clock.after(1.0, self.start)

    def crash(self) -> None:
        """The process is gone without a word; another one starts soon."""
        if self.machine is None:
            return
        self.run.clock.say(f"{self.identity} CRASHES")
        self._clear()
        self.run.clock.after(2.0, self.start)

    def freeze(self, seconds: float) -> None:
        if self.machine is not None:
            self.run.clock.say(f"{self.identity} is frozen for {seconds} s")
            self.machine.frozen_until = self.run.clock.now + seconds

    def stop(self) -> None:
        """Told to come to an end, in good order."""
        self.stopped = True
        if self.drive is not None:
            self.drive.stop()
        elif self.machine is not None:
            self.machine.inside(lambda: self.machine.signal(signal.SIGTERM))

    def kill(self) -> None:
        self.stopped = True
        self._clear()

    def _clear(self) -> None:
        machine, self.machine, self.drive = self.machine, None, None
        if machine is not None:
            self.wire.dead = True
            self.run.server.feeds[:] = [feed for feed in self.run.server.feeds if feed.wire is not self.wire]
            for message in machine.errors:
                self.run.checks.violated(f"{self.identity}: {message}")
            machine.kill()


def _lost(error: BaseException) -> bool:
    return isinstance(error, LeaseLostError)


def _causes(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(map(_causes, error.exceptions))
    trace, place = error.__traceback__, ""
    while trace is not None:
        place, trace = f"{trace.tb_frame.f_code.co_filename.rpartition('stowplan/')[2]}:{trace.tb_lineno}", trace.tb_next
    return f"{error!r} at {place}"
