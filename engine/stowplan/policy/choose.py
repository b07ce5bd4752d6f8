"""Choosing a node for one pod after the other: classes where they apply, a full evaluation where they do not."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stowplan.objects import DeviceClass, OtherFact, Pod
from stowplan.plugins.plugin import Plugin
from stowplan.policy.attempt import admission_to, attempt, on_nominated
from stowplan.policy.audit import objections, without_value
from stowplan.policy.classes import Classes
from stowplan.policy.compile import Policy, Profile
from stowplan.policy.decision import Refusals
from stowplan.policy.evaluate import NO_ROWS, ask_all, forgets, lost_state, open_pod, points, skips
from stowplan.policy.failures import Failures
from stowplan.policy.nominated import Attempt
from stowplan.policy.preempt import Preemption
from stowplan.policy.reserved import Reservations
from stowplan.state import Cluster, Mask, Store

if TYPE_CHECKING:
    from stowplan.plugins.cel_rule.compiled import NoValue

MOST_NUMBERS = 4096
MOST_KEYS = 65536


@dataclass(slots=True)
class Choice:
    """Where a pod goes. `row` is None if it goes nowhere: `skipped` or `message` say why."""

    row: int | None = None
    total: float = 0
    find_tied: Callable[[], Mask] | None = None
    feasible: int = 0
    message: str | None = None
    skipped: str | None = None
    preemption: Preemption | None = None
    find_facts: Callable[[int], tuple[OtherFact, ...]] | None = None
    rejectors: frozenset[str] = frozenset()
    """plugins that rejected the pod or some node; none where the attempt ended with an error"""
    refused: Refusals | None = None
    """why each node was refused, where no node takes the pod"""
    no_values: Mapping[str, NoValue] = field(default_factory=dict)
    """rules that had no value for some node"""
    _tied: Mask | None = None

    @property
    def tied(self) -> Mask | None:
        """Rows with the highest total, found out when first asked for, which must be before anything changes or is decided."""
        if self._tied is None and self.find_tied is not None:
            self._tied = self.find_tied()
        return self._tied

    def facts_at(self, row: int) -> tuple[OtherFact, ...]:
        """Facts as binding the pod to that row will make them; to be asked for before anything changes."""
        return () if self.find_facts is None else self.find_facts(row)


class Asks(NamedTuple):
    """What pods that are alike want."""

    number: int
    """of their class"""
    asks: dict[str, Any]
    """by plugin"""
    makers: tuple[Plugin, ...]
    """Reserve plugins that may make facts for them"""


class Chooser:
    """Decides for pods of one policy over one store; ties go to the first node by name."""

    def __init__(self, policy: Policy, store: Store) -> None:
        self._policy, self._store = policy, store
        self._classes = Classes(store)
        self._keys: dict[Any, Asks] = {}
        self._numbers: dict[Any, int] = {}
        """classes by profile and asks; a number is hashed faster than all asks"""
        self._rules: dict[Any, Any] = {}
        self._ruled = any(profile.allowance is not None for profile in policy.profiles.values())
        self._lookups = self._epoch = -1
        self._reserving = {name: reserving(profile) for name, profile in policy.profiles.items()}
        self._unreservable = {name: unreservable(profile) for name, profile in policy.profiles.items()}
        self._broken = {name for name, profile in policy.profiles.items() if broken(profile)}
        self._personal = {
            name for name, profile in policy.profiles.items() if any(plugin.personal for plugin in profile.plugins.values())
        }
        self._reservations = Reservations(policy, store)
        self._failures = Failures(policy, store)

    def choose(self, pod: Pod) -> Choice:
        """Best node of one pod, as the cluster stands. Nothing is assumed."""
        name = self._policy.profile_of(pod, self._store)
        choice = self._choose(pod, name)
        if choice.row is not None and (fault := self._unreservable[name or ""]):
            choice.row, choice.message = None, fault
        return choice

    def objections(self, pod: Pod, row: int) -> Mapping[str, str]:
        """Rules in audit that would have rejected a node, with the reason."""
        profile = self._policy.serving(pod, self._store)
        return objections(profile, self._store, pod, row) if profile.audits else {}

    def version(self, pod: Pod) -> str:
        """Name of the candidate that the pod is given to; empty for any other profile, or none."""
        name = self._policy.profile_of(pod, self._store)
        return "" if name is None or name == pod.spec.scheduler_name else name

    def _choose(self, pod: Pod, name: str | None) -> Choice:
        skipped, _ = admission_to(name, self._policy, self._store, pod)
        if skipped is not None:
            return Choice(skipped=skipped)
        profile = self._policy.profiles[name or ""]
        profile.begin(len(self._store.nodes))
        if profile.scheduler_name in self._broken or not self._store.nodes:
            return self._fully(pod)
        if pod.nominated_node:
            return self._nominated(pod, name)
        key, asks, makers = self._asks(pod, name)
        crowding = self._reservations.crowding(key, profile, asks, pod.spec.priority) if self._store.nominated else None
        withheld = frozenset[int]() if crowding is None else crowding.refused
        found = self._classes.get(key, profile, lambda: open_pod(profile, asks, Cluster(self._store), briefly=True), withheld)
        unclear = crowding is not None and (crowding.faulty or self._nominated_before(pod))
        if found.failing or found.faulty or unclear:
            return self._fully(pod)
        best = found.best()
        if best is None:
            return self.concluded(self._failures.attempt(key, pod, crowded=crowding is not None))
        row, total = best
        score = total if profile.scale == 1 else points(total, profile.scale)
        facts = partial(reserve, makers, asks, self._store) if makers else None
        said = without_value(profile, asks)
        return Choice(row, score, partial(found.tied, total), found.feasible, find_facts=facts, no_values=said)

    def _nominated(self, pod: Pod, name: str | None) -> Choice:
        """The node nominated for the pod if that takes it, whatever other nodes are like."""
        found = on_nominated(self._policy, self._store, pod, self._asks(pod, name)[1])
        return self._fully(pod) if found is None else self.concluded(found)

    def _nominated_before(self, pod: Pod) -> bool:
        """Whether the pod itself is one of the nominated ones, as the store knows it."""
        known = self._store.pending.get(pod.key)
        return known is not None and bool(known.nominated_node)

    def _asks(self, pod: Pod, name: str | None) -> Asks:
        """What a pod asks, computed once per distinct spec, labels, namespace, owner and status.

        Claims that are made for one pod are found by its name, so such pods are not alike.
        """
        if self._lookups != self._store.lookups or (self._ruled and self._epoch != self._store.epoch):
            self._keys.clear()
            self._rules.clear()  # with what they know of nodes that may be others now
            self._lookups, self._epoch = self._store.lookups, self._store.epoch
        shape = self._likeness(pod, name)
        found = self._keys.get(shape)
        if found is None:
            profile, cluster = self._policy.profiles[name or ""], Cluster(self._store)
            asks = ask_all(profile, pod, cluster)
            if profile.allowance is not None:
                asks = self._known_rules(profile, asks)
            nothing = cluster.rows(NO_ROWS)
            makers = tuple(p for p in self._reserving[profile.scheduler_name] if not skips(p, asks[p.name], nothing))
            if len(self._keys) >= MOST_KEYS or len(self._rules) >= MOST_KEYS:
                self._keys.clear()
                self._rules.clear()
            key = (profile.scheduler_name, tuple(asks.values()))
            if len(self._numbers) >= MOST_NUMBERS:
                self._start_over()
            found = self._keys[shape] = Asks(self._numbers.setdefault(key, len(self._numbers)), asks, makers)
        return found

    def _known_rules(self, profile: Profile, asks: dict[str, Any]) -> dict[str, Any]:
        """The asks, those of rules being the very ones that layers hold: they know where the rule has no value."""
        mine = profile.scheduler_name  # rules of other profiles may have the same name
        rules = {name: ask for name, ask in asks.items() if ask is not None and not profile.plugins[name].default}
        return asks | {name: self._rules.setdefault((mine, ask), ask) for name, ask in rules.items()}

    def likeness(self, pod: Pod) -> Hashable:
        """What pods must have in common so that they always ask the same of every plugin."""
        return self._likeness(pod, self._policy.profile_of(pod, self._store))

    def _likeness(self, pod: Pod, name: str | None) -> Hashable:
        own = pod if self._alone(pod, name) else name
        return (pod.spec, pod.labels, pod.namespace, pod.owner, pod.requested, own)

    def _alone(self, pod: Pod, profile: str | None) -> bool:
        """Whether asks may differ from those of other pods of the same profile, spec, labels, namespace, owner and requests."""
        spec = pod.spec
        claims = spec.claims or (spec.volumes and any(volume.ephemeral is not None for volume in spec.volumes))
        backed = spec.extended and self._store.facts.get(DeviceClass)
        return bool(claims or backed) or profile in self._personal

    def _start_over(self) -> None:
        """Forget all asks: those of pods with volumes are used once and hold all volumes that could be theirs."""
        self._keys.clear()
        self._numbers.clear()
        self._rules.clear()
        self._classes, self._reservations = Classes(self._store), Reservations(self._policy, self._store)
        self._failures = Failures(self._policy, self._store)

    def _fully(self, pod: Pod) -> Choice:
        """Without a class: what a refusal makes different."""
        return self.concluded(attempt(self._policy, self._store, pod))

    def concluded(self, found: Attempt) -> Choice:
        """The choice that a full evaluation leads to."""
        choice = from_attempt(found, len(self._store.nodes))
        if found.opening is not None:
            choice.no_values = without_value(self._policy.profiles[found.profile], found.opening.asks)
        if choice.row is not None and found.opening is not None:
            choice.find_facts = partial(reserve, self._reserving[found.profile], found.opening.asks, self._store)
        return choice


def reserving(profile: Profile) -> tuple[Plugin, ...]:
    """The Reserve plugins of a profile that make facts."""
    plugins = (profile.plugins[name] for name in profile.points["reserve"])
    return tuple(plugin for plugin in plugins if plugin.reserves and not forgets(profile, plugin))


def reserve(plugins: Iterable[Plugin], asks: Mapping[str, Any], store: Store, row: int) -> tuple[OtherFact, ...]:
    """Facts as Reserve plugins will make them."""
    facts: tuple[OtherFact, ...] = ()
    for plugin in plugins:
        if (ask := asks[plugin.name]) is not None:
            assert plugin.reserves is not None
            facts += tuple(plugin.reserves(ask, Cluster(store), row))
    return facts


def broken(profile: Profile) -> bool:
    """Whether some filter of the profile fails for every pod, for want of its PreFilter."""
    return any(lost_state(profile, profile.plugins[name], "filter") for name in profile.points["filter"])


def unreservable(profile: Profile) -> str | None:
    """Why Reserve fails for every pod, for want of its plugin's PreFilter."""
    faults = ((name, lost_state(profile, profile.plugins[name], "reserve")) for name in profile.points["reserve"])
    return next((f'running Reserve plugin "{name}": {fault}' for name, fault in faults if fault), None)


def from_attempt(found: Attempt, size: int) -> Choice:
    """The choice among `size` nodes that a full evaluation leads to, without its facts."""
    if not len(found.best):
        return Choice(
            message=found.message,
            skipped=found.skipped,
            preemption=found.preemption,
            rejectors=found.rejectors,
            refused=found.infeasible,
        )
    tied = np.zeros(size, dtype=np.bool_)
    tied[found.best] = True
    return Choice(int(found.best[0]), _total(found), lambda: tied, len(found.feasible))


def _total(found: Attempt) -> float:
    scoring = found.scoring
    return 0 if scoring is None or not len(scoring.totals) else points(int(scoring.totals.max()), scoring.scale)
