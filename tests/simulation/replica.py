"""A scheduler process on a machine of its own: the loop and the edge as they are, wired to the model. It crashes and restarts."""

from functools import cache

from simulation.machine import Machine, chance
from simulation.wire import Wire
from stowplan import load_policy
from stowplan.edge.clock import Clock
from stowplan.edge.drive import Drive, LeaseLostError, Settings
from stowplan.edge.kube.lease import Seat
from stowplan.loop.loop import Loop

PACKING = [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu"}]}}}]
HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
PROFILES = (
    [{"schedulerName": "stow"}, {"schedulerName": "pack", "pluginConfig": PACKING}],
    [{"schedulerName": "stow", "pluginConfig": PACKING}, {"schedulerName": "pack"}],
)


@cache
def policy(number: int = 0):
    """One of two policies; processes start with the first."""
    return load_policy(HEAD | {"profiles": PROFILES[number]})


class Watched:
    """The loop, with everything that goes in and out of it shown to the checks."""

    def __init__(self, loop: Loop, identity: str, checks):
        self.loop, self.identity, self.checks = loop, identity, checks

    def handle(self, event, now: float):
        effects = self.loop.handle(event, now)
        self.checks.handled(self.identity, self.loop, event, effects)
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
        self.stopped = False

    def start(self) -> None:
        run = self.run
        if self.machine is not None or self.stopped:
            return
        self.life += 1
        identity = self.identity = f"replica-{self.number}.{self.life}"
        run.clock.say(f"{identity} starts")
        seed = (run.scenario.seed, identity)
        self.machine = Machine(run.clock, identity)
        wire = self.wire = Wire(run.server, self.machine, self.number, run.checks, chance(*seed, "network"))
        wire.identity, wire.crash, wire.skew = identity, self.crash, chance(*seed, "skew").uniform(-3.0, 3.0)
        ties = chance(*seed, "ties")
        self.loop = Loop(policy(), ties.randrange)
        self.task = self.machine.create_task(self._main(identity, seed))
        self.task.add_done_callback(lambda task, life=self.life: run.clock.after(0.0, self._ended, task, life))

    async def _main(self, identity: str, seed) -> None:
        clock = Clock(lambda: self.run.clock.wall + self.wire.skew, chance(*seed, "jitter"))
        seat = Seat(policy().configuration.leader_election, identity)
        settings = Settings(seat, identity)
        machine = Watched(self.loop, identity, self.run.checks)
        self.drive = Drive(machine, self.wire, clock, settings)
        await self.drive.run()

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

    def tell(self, event) -> None:
        if self.drive is not None:
            self.drive.tell(event)

    def freeze(self, seconds: float) -> None:
        if self.machine is not None:
            self.run.clock.say(f"{self.identity} is frozen for {seconds} s")
            self.machine.frozen_until = self.run.clock.now + seconds

    def stop(self) -> None:
        """Told to come to an end, in good order."""
        self.stopped = True
        if self.drive is not None:
            self.drive.stop()

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
