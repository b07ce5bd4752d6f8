"""One scenario, run to its end: the world for a minute, then quiet, then room for everything, then an orderly stop."""

import os
import shutil
import tempfile
from dataclasses import dataclass

from controlplane.objects import node
from simulation.actors import NODES, REFUSING, Actors
from simulation.api import Api
from simulation.checks import Checks
from simulation.faults import Faults
from simulation.final import leftovers, lost
from simulation.machine import Clock, StuckError, chance
from simulation.mount import Mount
from simulation.replica import Replica
from simulation.scenario import CALM, Scenario, Step
from simulation.storage import Storage
from simulation.wire import Server
from simulation.world import World

QUIET = 150.0
"""seconds without news within which everything comes to rest: a dead watch is noticed after 80"""
STOPPING = 20.0
MENDING = 60.0
"""seconds within which the next process leads where one had to be restarted for its policy"""


@dataclass(frozen=True)
class Result:
    """`violation` is empty if all is well. `trace` has (seconds, text); the figures say what the run has exercised.

    edits, refusals  policies that came into force after the first of a process, and texts that were refused, by all processes
    """

    scenario: Scenario
    violation: str
    trace: tuple
    bindings: int
    seconds: float
    edits: int
    refusals: int


class Run:
    """A scenario while it runs. The parts are public: situations are written on them."""

    def __init__(self, scenario: Scenario, keep_trace: bool = True):
        self.scenario = scenario
        self.clock = Clock(keep_trace)
        self.storage = Storage()
        self.checks = Checks(self)
        api = Api(self.storage, self.clock, scenario.absent)
        self.server = Server(api, self.clock, Faults(scenario.faults), chance(scenario.seed, "server"))
        self.actors = Actors(api, self.clock, chance(scenario.seed, "actors"))
        self.world = World(self)
        self.replicas = [Replica(self, number) for number in range(scenario.replicas)]
        self.folder = tempfile.mkdtemp() if scenario.last_good or scenario.mounted else ""
        self.mount = self._mount() if scenario.mounted else None
        if scenario.policy:
            self.world.edit_policy(scenario.policy)
        for step in scenario.steps:
            self.clock.at(step.at, self.world.do, step)
        for replica in self.replicas:
            self.clock.at(0.0, replica.start)

    def _mount(self) -> Mount:
        """Every process reads what is there; it looks as often as it likes."""
        os.mkdir(f"{self.folder}/mount")  # noqa: PTH102 - a str

        def changed():
            for replica in self.replicas:
                if replica.machine is not None:
                    self.checks.reloads.reads(replica.identity)

        return Mount(f"{self.folder}/mount", self.scenario.mounted, self.clock, changed)

    def last_good(self, number: int) -> str:
        """The file in which a scheduler keeps its last good policy; "" for none."""
        return f"{self.folder}/{number}.yaml" if self.scenario.last_good else ""

    def replica(self, number: int) -> Replica:
        return self.replicas[number % len(self.replicas)]

    @property
    def leader(self) -> Replica | None:
        return next((replica for replica in self.replicas if replica.leads), None)

    @property
    def fine(self) -> bool:
        return not self.checks.violation

    def until(self, seconds: float) -> bool:
        """Run up to that time; False if something was violated."""
        self.clock.run(seconds)
        return self.fine

    def judge(self, when: str) -> bool:
        """What must hold after quiet time."""
        for message in leftovers(self)[:5]:
            self.checks.violated(f"{when}: {message}")
        return self.fine

    def whole(self) -> Result:
        try:
            self._acts()
        except StuckError as error:
            self.checks.violated(str(error))
        finally:
            for replica in self.replicas:
                replica.kill()
            shutil.rmtree(self.folder, ignore_errors=True)
        checks, reloads = self.checks, self.checks.reloads
        trace = tuple(self.clock.trace)
        return Result(self.scenario, checks.violation, trace, checks.bindings, self.clock.now, reloads.edits, reloads.refusals)

    def _acts(self) -> None:
        if not self.until(CALM):
            return
        self.server.rise()
        for _, name in list(self.storage.objects[NODES]):
            self.world.relabel_node(name, REFUSING, None)
        if not (self.until(CALM + QUIET) and self.judge("after quiet time")):
            return
        self.world.do(Step(self.clock.now, "mend_policy"))
        if not (self.until(self.clock.now + MENDING) and self.judge("under a good policy")):
            return
        for number in range(3):
            self.world.do(Step(self.clock.now, "create", {"item": roomy(number)}))
        if not (self.until(self.clock.now + 60.0) and self.judge("once there is room")):
            return
        for replica in self.replicas:
            replica.stop()
        if self.until(self.clock.now + STOPPING):
            for message in lost(self):
                self.checks.violated(message)


def roomy(number: int):
    made = node(f"roomy{number}", f"z{number}")
    made["metadata"]["labels"]["disk"] = "ssd"
    return made


def run(scenario: Scenario, keep_trace: bool = True) -> Result:
    return Run(scenario, keep_trace).whole()
