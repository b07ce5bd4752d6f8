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
from stowplan.plugins.cel_rule import expressions_of
from stowplan.plugins.cel_rule.compiled import Ask
from stowplan.plugins.plugin import Plugin
from stowplan.policy.attempt import attempt
from stowplan.policy.compile import Policy, Profile
from stowplan.policy.rule_lints import MOST_PODS, unknown_labels
from stowplan.state import Cluster, Store
from stowplan.text import Code, Diagnostic, Severity, counted, some

SECONDS = 0.03
"""After so long nothing more is looked at; a single look takes a few milliseconds on 5,000 nodes."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What is tried, and until when."""

    policy: Policy
    store: Store
    late: Callable[[], bool]

    def run(self) -> Iterator[Diagnostic]:
        """Findings, none of them an error. Raises whatever the policy raises."""
        for profile in self.policy.profiles.values():
            if not self.store.nodes or self.late():
                return
            pods = list(islice((pod for pod in self.store.pending.values() if _of(pod, profile)), MOST_PODS))
            for pod in pods[:1]:
                attempt(self.policy, self.store, pod, gated=False)
            rules = [plugin for plugin in _filters(profile) if plugin.rejects is not None]
            for rule in rules:
                yield from self._verdict(rule, pods or _blank(rule, profile))
        for profile in self.policy.profiles.values():
            for rule in _rules(profile):
                expressions = expressions_of(rule)
                if self.late() or expressions is None:
                    return
                yield from unknown_labels(expressions, self.store)

    def _verdict(self, rule: Plugin, pods: list[Pod]) -> Iterator[Diagnostic]:
        """Whether a filter rejects every node for all pods that it applies to."""
        cluster, refused = Cluster(self.store), []
        expressions = expressions_of(rule)
        assert rule.rejects is not None
        for pod in pods:
            if self.late():
                break
            ask = rule.asks(pod, None, cluster)
            if not isinstance(ask, Ask):
                continue
            masks = list((rule.rejects(ask, cluster) or {}).values())
            if not masks or not np.logical_or.reduce(masks).all():
                return
            refused.append(pod)
        if refused and expressions is not None:
            named = [pod.key for pod in refused if pod.name]
            whom = f"for {some(named, 2)}" if named else "for any pod"
            where = f"{counted(len(self.store.nodes), 'node')} of the live cluster"
            message = f"rule {rule.name}: the filter lets no node pass ({where}, {whom})"
            yield Diagnostic(Code.CONSTANT, Severity.WARNING, message, expressions.span)


def tried(policy: Policy, store: Store, timer: Callable[[], float] = perf_counter) -> tuple[Diagnostic, ...]:
    """What is strange about a policy on this cluster: rules that reject every node, labels that no node has.

    Raises whatever the policy raises when it decides.
    """
    end = timer() + SECONDS
    return tuple(Trial(policy, store, lambda: timer() > end).run())


def _of(pod: Pod, profile: Profile) -> bool:
    return pod.spec.scheduler_name == profile.scheduler_name


def _filters(profile: Profile) -> Iterator[Plugin]:
    return (profile.plugins[name] for name in profile.points["filter"] if expressions_of(profile.plugins[name]) is not None)


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
