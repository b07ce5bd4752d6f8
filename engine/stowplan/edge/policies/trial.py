"""A policy tried on the cluster as it is, before it decides anything: what is strange about it, and whether it can decide at all.

The scheduler decides nothing meanwhile, so the trial ends after a few hundredths of a second, whatever it has not looked at yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from time import perf_counter

import numpy as np

from stowplan.objects import Pod, read_as
from stowplan.plugins.cel_rule import errors, expressions_of
from stowplan.plugins.cel_rule.compiled import Ask
from stowplan.plugins.plugin import Plugin
from stowplan.policy.attempt import attempt
from stowplan.policy.compile import Policy, Profile
from stowplan.policy.rule_lints import MOST_PODS, unknown_labels
from stowplan.state import Cluster, Store
from stowplan.text import Code, Diagnostic, Severity, counted, some

SECONDS = 0.03
"""After so long nothing more is looked at; a single look at 5,000 nodes in columns takes a few milliseconds."""
FEW, MORE = 8, 64
"""Nodes on which a rule is timed before it is tried on all: an expression that goes row by row takes seconds on thousands."""
SLOW = 0.25
"""Seconds for one decision, spent on one rule, that are worth a warning."""


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
        small = [_sample(self.store, size) for size in (FEW, MORE)]
        for profile in self.policy.profiles.values():
            pods = list(islice((pod for pod in self.store.pending.values() if self._of(pod, profile)), MOST_PODS))
            yield from self._rules(profile, pods, small)
        for profile in self.policy.profiles.values():
            for rule in _rules(profile):
                expressions = expressions_of(rule)
                if self.late() or expressions is None:
                    return
                yield from unknown_labels(expressions, self.store)

    def _rules(self, profile: Profile, pods: list[Pod], small: list[Store]) -> Iterator[Diagnostic]:
        """Filter rules, then scores, on all nodes, as far as that is quick; and one whole decision."""
        quick = True
        for rule in (*_filters(profile), *_scores(profile)):
            subjects = pods or _blank(rule, profile)
            if self.late() or not subjects:
                continue
            seconds = self._estimated(rule, subjects[0], small)
            if seconds > SECONDS:
                quick = False
            if seconds > SLOW:
                yield self._slow(rule, seconds)
            elif seconds <= SECONDS:
                yield from self._verdict(rule, subjects)
        for pod in pods[:1]:
            attempt(self.policy, self.store if quick and not self.late() else small[0], pod, gated=False)

    def _slow(self, rule: Plugin, seconds: float) -> Diagnostic:
        expressions = expressions_of(rule)
        message = f"rule {rule.name} takes about {seconds:.1f} s for one decision on {counted(len(self.store.nodes), 'node')}"
        note = "`stowplan eval` says what keeps it from being evaluated for all nodes at once"
        return Diagnostic(Code.FAILING, Severity.WARNING, message, expressions.span if expressions else None, "", (note,))

    def _estimated(self, rule: Plugin, pod: Pod, small: list[Store]) -> float:
        """Seconds that a rule will take on all nodes, from what some nodes more take."""
        few, more = (min(self._timed(rule, pod, store) for _ in range(2)) for store in small)
        extra = len(small[1].nodes) - len(small[0].nodes)
        return max(more - few, 0.0) / extra * len(self.store.nodes) if extra else 0.0

    def _timed(self, rule: Plugin, pod: Pod, store: Store) -> float:
        begun, cluster = self.timer(), Cluster(store)
        ask = rule.asks(pod, None, cluster)
        if isinstance(ask, Ask):
            _ = errors(rule, ask, cluster) if rule.rejects is None else rule.rejects(ask, cluster)
        return self.timer() - begun

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
