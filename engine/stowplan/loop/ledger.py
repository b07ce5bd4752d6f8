"""What the loop knows at one moment: the cluster, the policy in force, who waits, and who is on the way to a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from stowplan.loop.flights import Flight, Flights
from stowplan.loop.overlay import Overlay
from stowplan.loop.records import Found, Record, Records, details, reasons
from stowplan.loop.requeue import Change, Requeue
from stowplan.loop.rollout import Figures, follow
from stowplan.loop.shadow import Shadow
from stowplan.loop.waiting import Backoff, SchedulingQueue, Waiting
from stowplan.objects import Pod
from stowplan.plugins.cel_rule import expressions_of
from stowplan.policy.attempt import admission
from stowplan.policy.choose import Choice, Chooser
from stowplan.policy.compile import Policy
from stowplan.state import Store


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the last attempt, for logs, metrics and records.

    result    `scheduled` (a node was found), `unschedulable`, `error`, `skipped` or `consulting`
    feasible  number of nodes that passed; `score` the total of the chosen one, which so many have (`tied`)
    """

    pod: Pod
    result: str
    attempt: int
    generation: int
    node: str = ""
    score: float = 0.0
    feasible: int = 0
    tied: int = 0
    message: str = ""
    victims: int = 0
    preempted: bool = False
    """whether preemption was tried"""
    version: str = ""
    """name of the profile where that is not the scheduler name of the pod"""

    @property
    def profile(self) -> str:
        """Name of the profile that tried the pod."""
        return self.version or self.pod.spec.scheduler_name


@dataclass(slots=True)
class Ledger:
    """The state of the loop. `draw(n)` picks one of n nodes that are equally good, from a seeded generator."""

    policy: Policy
    draw: Callable[[int], int]
    generation: int = 0
    digest: str = ""
    store: Store = field(default_factory=Store)
    queue: SchedulingQueue = field(default_factory=SchedulingQueue)
    flights: Flights = field(default_factory=Flights)
    consulted: dict[str, Waiting] = field(default_factory=dict)
    """pods by uid about which extenders are being asked"""
    leads: bool = False
    synced: bool = False
    outcome: Outcome | None = None
    records: Records = field(default_factory=Records)
    objections: Counter[str] = field(default_factory=Counter)
    """by rule in audit, how many decisions it would have forbidden"""
    no_values: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    """decisions in which a rule had no value for some node, by profile, rule, and whether a budget was used up"""
    shadow: Shadow | None = None
    """compares with another scheduler, and keeps this one from acting"""
    figures: Figures | None = None
    """of the versions of a profile, while a rollout is in force"""
    gates_dirty: bool = False
    """a fact that gates may depend on has changed"""
    overlay: Overlay = field(init=False)
    chooser: Chooser = field(init=False)
    requeue: Requeue = field(init=False)
    _timed: bool = field(init=False)

    def __post_init__(self) -> None:
        self.overlay = Overlay(self.store)
        self.enforce(self.policy)

    def enforce(self, policy: Policy) -> None:
        """Decide by this policy from now on. Those who wait are not told."""
        self.policy, self.figures = policy, follow(self.figures, policy.rollout)
        self.chooser, self.requeue = Chooser(policy, self.store), Requeue(policy, self.store)
        settings = policy.configuration
        self.queue.backoff = Backoff(settings.pod_initial_backoff_seconds, settings.pod_max_backoff_seconds)
        rules = [expressions_of(plugin) for profile in policy.profiles.values() for plugin in profile.plugins.values()]
        self._timed = any(rule is not None and rule.reading.timed for rule in rules)

    @property
    def acts(self) -> bool:
        """Whether pods may be tried at all."""
        return self.leads and self.synced and self.shadow is None

    def serves(self, pod: Pod) -> bool:
        """Whether some profile schedules the pod."""
        return self.policy.serves(pod)

    def freeze(self, now: float) -> None:
        """Fix the moment of the decisions that follow, to the second, if some rule asks for it."""
        if self._timed:
            self.store.set_now(float(int(now)))

    def note(self, outcome: Outcome, choice: Choice | None, now: float) -> None:
        """Say what became of an attempt, and keep a record of it."""
        pod = outcome.pod
        if self.figures is not None:
            outcome = replace(outcome, version=self.chooser.version(pod))
        self.outcome = outcome
        found = Found() if choice is None else self._found(outcome, choice, now)
        if choice is not None and choice.no_values:
            self.no_values.update((outcome.profile, rule, said.exhausted) for rule, said in choice.no_values.items())
            found = found._replace(errors=tuple((rule, said.why) for rule, said in choice.no_values.items()))
        record = Record(
            pod.key, pod.uid, now, outcome.profile, self.generation, self.digest, outcome.attempt, outcome.result,
            outcome.node, outcome.score, outcome.feasible, outcome.message, *found,
        )  # fmt: skip
        self.records.add(record)
        if self.figures is not None:
            self.figures.attempted(outcome, record)

    def _found(self, outcome: Outcome, choice: Choice, now: float) -> Found:
        """What an attempt found out, as far as there is time for it."""
        if not outcome.node:
            victims = choice.preemption.victims if choice.preemption is not None else ()
            why = () if choice.refused is None else reasons(choice.refused, self.store)
            return Found(victims=tuple(victim.key for victim in victims), reasons=why, detailed=True)
        audit = tuple(self.chooser.objections(outcome.pod, self.store.row_of[outcome.node]).items())
        self.objections.update(rule for rule, _ in audit)
        if not self.records.spare(now):
            return Found(outcome.tied, audit=audit)
        best, refused = details(self.policy, self.store, outcome.pod, outcome.node)
        return Found(outcome.tied, best=best, reasons=refused, audit=audit, detailed=True)

    # Waiting pods

    def admit(self, entry: Waiting, now: float, why: str) -> None:
        """Let a pod be tried, unless a plugin gates it (PreEnqueue)."""
        skipped, statuses = admission(self.policy, self.store, entry.pod)
        if skipped == "gated":
            texts = [status.reasons[0] for status in statuses.values() if status.reasons]
            self.queue.gate(entry, ", ".join(texts))
        else:
            entry.gate = None
            self.queue.activate(entry, now, why)

    def wake(self, entry: Waiting, now: float, why: str) -> None:
        """An unschedulable pod is worth another attempt."""
        self.requeue.leave(entry.pod.key)
        self.queue.wake(entry, now, why)

    def park(self, entry: Waiting, now: float, rejectors: frozenset[str]) -> None:
        """No node takes the pod as the cluster stands."""
        self.queue.reject(entry, now, rejectors)
        self.requeue.enter(entry, self.chooser.likeness(entry.pod))

    def drop(self, key: str) -> Waiting | None:
        """The pod does not wait any more."""
        self.requeue.leave(key)
        return self.queue.remove(key)

    def land(self, flight: Flight) -> None:
        """The watch shows the pod where it was sent, or elsewhere: nothing is assumed any more."""
        del self.flights.by_uid[flight.pod.uid]
        self.overlay.fulfil(flight.pod.uid)

    def abandon(self, flight: Flight) -> None:
        """Take a pod off the node that it was assumed on, together with its volumes and devices; it waits again."""
        del self.flights.by_uid[flight.pod.uid]
        self.store.set_pod(flight.entry.pod)
        self.overlay.withdraw(flight.pod.uid)
        self.requeue.note(Change.LEFT | Change.FACT)

    def nominate(self, entry: Waiting, node: str) -> None:
        """Reserve a node for a waiting pod, or (an empty name) none."""
        if entry.pod.nominated_node != node:
            freed = entry.pod.nominated_node
            entry.pod = replace(entry.pod, nominated_node=node)
            self.store.set_pod(entry.pod)
            if freed:
                self.requeue.note(Change.NODE)
