"""A policy tried on the cluster as it is, before it decides anything: what is strange about it, and whether it can decide at all.

The scheduler decides nothing meanwhile, so the trial ends after two tenths of a second, whatever it has not looked at yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from time import perf_counter
from typing import NamedTuple

import numpy as np

from stowplan.objects import Pod, read_as
from stowplan.plugins.cel_rule import errors, expressions_of
from stowplan.plugins.cel_rule.columns import suits
from stowplan.plugins.cel_rule.compiled import Ask
from stowplan.plugins.plugin import Plugin
from stowplan.policy.attempt import attempt
from stowplan.policy.compile import Policy, Profile
from stowplan.policy.rule_lints import MOST_PODS, unknown_labels
from stowplan.state import Cluster, Feasible, Store
from stowplan.text import Code, Diagnostic, Severity, counted, some

SECONDS = 0.2
"""After so long nothing more is looked at."""
QUICK, LIGHT = 0.03, 200_000
"""Seconds and units on all nodes that are worth a look: what a busy machine says alone is not to be relied on."""
FEW, MORE = 8, 64
"""Nodes on which a rule is timed before it is tried on all: an expression that goes row by row takes seconds on thousands."""
COLUMNS = 32
"""So many times as many nodes, where rules are evaluated for all of them at once."""
SLOW = 0.25
"""Seconds for one decision, spent on one rule, that are worth a warning."""


class Cost(NamedTuple):
    """What a rule will take for one decision on all nodes."""

    seconds: float
    units: float

    @property
    def quick(self) -> bool:
        """Whether there is time for it."""
        return self.seconds <= QUICK and self.units <= LIGHT


@dataclass(frozen=True, slots=True)
class Trial:
    """What is tried, until when, and what time it is."""

    policy: Policy
    store: Store
    timer: Callable[[], float]
    end: float

    def late(self) -> bool:
        """Is the time over?"""
        return self.timer() > self.end

    def run(self) -> Iterator[Diagnostic]:
        """Findings, none of them an error. Raises whatever the policy raises."""
        if not self.store.nodes:
            return
        for profile in self.policy.profiles.values():
            pods = list(islice((pod for pod in self.store.pending.values() if self._of(pod, profile)), MOST_PODS))
            yield from self._rules(profile, pods)
        for profile in self.policy.profiles.values():
            for rule in _rules(profile):
                expressions = expressions_of(rule)
                if self.late() or expressions is None:
                    return
                yield from unknown_labels(expressions, self.store)

    def _rules(self, profile: Profile, pods: list[Pod]) -> Iterator[Diagnostic]:
        """Filter rules, then scores, on all nodes, as far as that is quick; all of them together; and one whole decision."""
        costs: list[Cost] = []
        rules = [*_filters(profile), *_scores(profile)]
        for rule in rules:
            subjects = pods or _blank(rule, profile)
            if self.late() or not subjects:
                continue
            cost = self._cost(profile, rule, subjects[0])
            costs.append(cost)
            if cost.seconds > SLOW:
                yield self._slow(rule, cost.seconds)
            elif cost.quick:
                profile.begin(len(self.store.nodes))
                yield from self._verdict(rule, subjects)
        yield from self._together(profile, costs, len(rules))
        quick = not self.late() and Cost(*map(sum, zip(*costs, strict=True))).quick if costs else not self.late()
        for pod in pods[:1]:
            attempt(self.policy, self.store if quick else _sample(self.store, FEW), pod, gated=False)

    def _slow(self, rule: Plugin, seconds: float) -> Diagnostic:
        expressions = expressions_of(rule)
        message = f"rule {rule.name} takes about {seconds:.1f} s for one decision on {counted(len(self.store.nodes), 'node')}"
        note = "`stowplan eval` says what keeps it from being evaluated for all nodes at once"
        return Diagnostic(Code.FAILING, Severity.WARNING, message, expressions.span if expressions else None, "", (note,))

    def _together(self, profile: Profile, costs: list[Cost], number: int) -> Iterator[Diagnostic]:
        """Whether rules will have no value because all of them take too much; those without time are taken for average."""
        if not costs or profile.allowance is None:
            return
        units = sum(cost.units for cost in costs) * number / len(costs)
        seconds = sum(cost.seconds for cost in costs) * number / len(costs)
        profile.begin(len(self.store.nodes))
        if units <= profile.allowance.limit:
            return
        nodes, allowed = counted(len(self.store.nodes), "node"), profile.allowance.limit
        message = (
            f"the {counted(number, 'rule')} of profile {profile.scheduler_name} would take about {seconds:.1f} s for one decision "
            f"on {nodes}: about {units:,.0f} units of work, {allowed:,} are allowed"
        )
        note = "those that are evaluated last have no value: such filters reject every node, unless onError says otherwise"
        yield Diagnostic(Code.FAILING, Severity.WARNING, message, None, "", (note,))

    def _cost(self, profile: Profile, rule: Plugin, pod: Pod) -> Cost:
        """What a rule will take on all nodes, from what some nodes more take."""
        expressions, nodes = expressions_of(rule), len(self.store.nodes)
        many = COLUMNS if expressions is not None and suits(expressions.reading) else 1
        few, more = min(FEW * many, nodes // 2), min(MORE * many, nodes)
        if few == more or not few:
            return Cost(0.0, 0.0)
        self._timed(profile, rule, pod, few)  # what is found out once and kept
        least, most = (self._timed(profile, rule, pod, size) for size in (few, more))
        return Cost(*(max(b - a, 0.0) / (more - few) * nodes for a, b in zip(least, most, strict=True)))

    def _timed(self, profile: Profile, rule: Plugin, pod: Pod, size: int) -> Cost:
        """What it takes on some nodes, evenly spread."""
        profile.begin(len(self.store.nodes))
        rows = np.arange(size, dtype=np.intp) * (len(self.store.nodes) // max(size, 1))
        begun, cluster = self.timer(), Cluster(self.store, rows)
        ask = rule.asks(pod, None, cluster)
        if isinstance(ask, Ask):
            if rule.rejects is not None:
                rule.rejects(ask, cluster)
            if rule.scores is not None:
                rule.scores(ask, cluster, Feasible(np.ones(size, dtype=np.int64)))
        return Cost(self.timer() - begun, 0.0 if profile.allowance is None else profile.allowance.spent)

    def _of(self, pod: Pod, profile: Profile) -> bool:
        return self.policy.profile_of(pod, self.store) == profile.scheduler_name

    def _verdict(self, rule: Plugin, pods: list[Pod]) -> Iterator[Diagnostic]:
        """Whether a rule rejects, or has no value for, every node for all pods that it applies to."""
        cluster, expressions = Cluster(self.store), expressions_of(rule)
        concerned, codes, why = list[Pod](), set[Code](), ""
        for pod in pods:
            if self.late():
                break
            ask = rule.asks(pod, None, cluster)
            if not isinstance(ask, Ask):
                continue
            found = _useless(rule, ask, cluster)
            if found is None:
                return
            concerned.append(pod)
            codes.add(found[0])
            why = why or found[1]
        if len(codes) != 1 or expressions is None:
            return
        (code,) = codes
        kind = "filter" if rule.scores is None else "score"
        effect = "lets all of them pass" if rule.scores is None else "counts as 0"
        what = "lets no node pass" if code is Code.CONSTANT else f"fails on every node, which {effect}"
        message = f"rule {rule.name}: the {kind} {what} ({self._where(concerned)})" + (f": {why}" if why else "")
        yield Diagnostic(code, Severity.WARNING, message, expressions.span)

    def _where(self, pods: list[Pod]) -> str:
        named = [pod.key for pod in pods if pod.name]
        whom = f"for {some(named, 2)}" if named else "for any pod"
        return f"{counted(len(self.store.nodes), 'node')} of the live cluster, {whom}"


def _useless(rule: Plugin, ask: Ask, cluster: Cluster) -> tuple[Code, str] | None:
    """CONSTANT for a rule that rejects every node, FAILING for one that has no value for any; and what fails on the first node."""
    masks = [] if rule.rejects is None else list((rule.rejects(ask, cluster) or {}).values())
    refuses = bool(masks) and bool(np.logical_or.reduce(masks).all())
    if not refuses and any(mask.any() for mask in masks):
        return None
    failures = errors(rule, ask, cluster)
    if not refuses and not (failures and np.logical_or.reduce(list(failures.values())).all()):
        return None
    why = next((text for text, mask in failures.items() if mask[0]), "")
    return (Code.CONSTANT if refuses else Code.FAILING), why


def tried(policy: Policy, store: Store, timer: Callable[[], float] = perf_counter) -> tuple[Diagnostic, ...]:
    """What is strange about a policy on this cluster: rules that reject every node, labels that no node has.

    Raises whatever the policy raises when it decides.
    """
    return tuple(Trial(policy, store, timer, timer() + SECONDS).run())


def _sample(store: Store, size: int) -> Store:
    """A cluster of some of the nodes, evenly spread, without their pods."""
    few, step = Store(), max(len(store.nodes) // size, 1)
    for node in store.nodes[::step][:size]:
        few.set_node(node)
    return few


def _filters(profile: Profile) -> Iterator[Plugin]:
    plugins = (profile.plugins[name] for name in profile.points["filter"])
    return (plugin for plugin in plugins if plugin.rejects is not None and expressions_of(plugin) is not None)


def _scores(profile: Profile) -> Iterator[Plugin]:
    """Those that are not among the filters."""
    plugins = (profile.plugins[name] for name in profile.points["score"])
    return (plugin for plugin in plugins if plugin.rejects is None and expressions_of(plugin) is not None)


def _rules(profile: Profile) -> Iterator[Plugin]:
    names = dict.fromkeys((*profile.points["filter"], *profile.points["score"]))
    yield from (profile.plugins[name] for name in names if expressions_of(profile.plugins[name]) is not None)
    yield from profile.audits


def _blank(rule: Plugin, profile: Profile) -> list[Pod]:
    """Where no pod waits: any pod will do for a rule that looks at nodes alone."""
    expressions = expressions_of(rule)
    if expressions is None or expressions.reading.pod or expressions.reading.namespace or expressions.reading.beyond:
        return []
    pod = _empty()
    return [replace(pod, name="", spec=replace(pod.spec, scheduler_name=profile.scheduler_name))]


@cache
def _empty() -> Pod:
    fact = read_as("Pod", b'{"metadata": {"name": "any", "namespace": "default"}, "spec": {"containers": []}}').fact
    assert isinstance(fact, Pod)
    return fact
