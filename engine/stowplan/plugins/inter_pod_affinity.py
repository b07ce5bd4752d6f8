"""InterPodAffinity: pods that want to be near each other, or apart.

rejects  a node whose domain lacks a pod the incoming one needs, holds one it avoids, or one that avoids it
scores   a node by the preferred terms of the incoming pod and of the pods that run; more is better
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np

from stowplan.objects import Labels, Namespace, Pod, PodTerm, Selector
from stowplan.plugins.arguments import InterPodAffinityArgs
from stowplan.plugins.plugin import FILTERS_AND_SCORES, MAX_SCORE, Detail, Plugin, Reason, Rejections
from stowplan.state import LABELS, MATCHING, TERMS, Cluster, Domains, Feasible, Held, Mask, Numbers, held_terms
from stowplan.state.hashed import HashedOnce, hashed_once
from stowplan.text import some

NO_AFFINITY = Reason("node(s) didn't match pod affinity rules", final=True)
ANTI_AFFINITY = Reason("node(s) didn't match pod anti-affinity rules")
EXISTING = Reason("node(s) didn't satisfy existing pods anti-affinity rules")
NAMED = 3
"""Pods and domains that are named before the rest is counted."""


@hashed_once
@dataclass(frozen=True, slots=True)
class Near(HashedOnce):
    """A question about a pod: is it in one of the namespaces (None: any), and does the selector match its labels?"""

    namespaces: frozenset[str] | None
    selector: Selector

    def holds(self, namespace: str, labels: Labels, *, terminating: bool) -> bool:  # noqa: ARG002 - terminating pods count
        return self.supposed(namespace, labels)

    def __str__(self) -> str:
        spaces = self.namespaces
        where = "any namespace" if spaces is None else f"namespace {', '.join(sorted(spaces))}" if spaces else "no namespace"
        return f"{self.selector} in {where}"

    def supposed(self, namespace: str, labels: Labels) -> bool:
        return (self.namespaces is None or namespace in self.namespaces) and self.selector.matches(labels)


@hashed_once
@dataclass(frozen=True, slots=True)
class All(HashedOnce):
    """Pods for which every one of the questions holds."""

    tests: tuple[Near, ...]

    def holds(self, namespace: str, labels: Labels, *, terminating: bool) -> bool:
        return all(test.holds(namespace, labels, terminating=terminating) for test in self.tests)

    def supposed(self, namespace: str, labels: Labels) -> bool:
        return all(test.supposed(namespace, labels) for test in self.tests)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A term of the incoming pod: a question and the label key of its domains."""

    key: str
    test: Near


@hashed_once
@dataclass(frozen=True, slots=True)
class Facing(HashedOnce):
    """A question about running pods' terms: is it of these kinds, and does it match a pod like this one?"""

    kinds: frozenset[str]
    namespace: str
    labels: Labels
    namespace_labels: Labels

    def meets(self, held: Held) -> bool:
        term = held.term
        return (
            held.kind in self.kinds
            and term.selector.matches(self.labels)
            and term.selects_namespace(self.namespace, self.namespace_labels, held.namespace)
        )


@dataclass(frozen=True, slots=True)
class Ask:
    """Terms of the incoming pod, and the questions whose answers are the terms of running pods that look at it."""

    affinity: tuple[Wanted, ...]
    anti: tuple[Wanted, ...]
    preferred: tuple[tuple[int, Wanted], ...]
    """negative weights for anti-affinity"""
    repelling: Facing
    scoring: Facing
    matches_itself: bool
    hard_weight: int
    ignore_preferred: bool

    @property
    def together(self) -> All:
        """What a pod must meet to count for the required affinity: all of its terms."""
        return All(tuple(wanted.test for wanted in self.affinity))


def asks(pod: Pod, args: InterPodAffinityArgs, cluster: Cluster) -> Ask:
    spec = pod.spec
    affinity = tuple(resolve(term, pod, cluster) for term in spec.affinity)
    preferred = [(weight, resolve(term, pod, cluster)) for weight, term in spec.preferred_affinity]
    preferred += [(-weight, resolve(term, pod, cluster)) for weight, term in spec.preferred_anti_affinity]
    namespace = cluster.facts(Namespace).get(pod.namespace)
    labels = namespace.labels if namespace else Labels.EMPTY
    return Ask(
        affinity,
        tuple(resolve(term, pod, cluster) for term in spec.anti_affinity),
        tuple(preferred),
        Facing(REQUIRED_ANTI, pod.namespace, pod.labels, labels),
        Facing(SCORING, pod.namespace, pod.labels, labels),
        all(wanted.test.holds(pod.namespace, pod.labels, terminating=False) for wanted in affinity),
        args.hard_pod_affinity_weight,
        args.ignore_preferred_terms_of_existing_pods,
    )


def resolve(term: PodTerm, pod: Pod, cluster: Cluster) -> Wanted:
    """A term with its namespace selector resolved to names; an empty selector stands for every namespace, known or not."""
    if term.namespace_selector is not None and term.namespace_selector.empty:
        return Wanted(term.key, Near(None, term.selector))
    names = set(term.namespaces)
    if term.own_namespace:
        names.add(pod.namespace)
    if term.namespace_selector is not None:
        names |= {ns.name for ns in cluster.facts(Namespace).values() if term.namespace_selector.matches(ns.labels)}
    return Wanted(term.key, Near(frozenset(names), term.selector))


def facing(question: Facing, cluster: Cluster) -> Iterator[tuple[Held, Domains]]:
    """Terms of running pods that look at the incoming pod, with the domains of the pods that carry them."""
    for held, count in cluster[TERMS].meeting(question):
        yield held, count.by(held.term.key)


REQUIRED_ANTI = frozenset({"required-anti"})
SCORING = frozenset({"required", "preferred", "preferred-anti"})


def rejects(ask: Ask, cluster: Cluster) -> Rejections | None:
    existing = [domains for _, domains in facing(ask.repelling, cluster)]
    if not (ask.affinity or ask.anti or any(domains.any for domains in existing)):
        return None
    unmet = lacking(ask, cluster)
    avoided = np.zeros(cluster.size, dtype=np.bool_)
    for wanted in ask.anti:
        avoided |= cluster[MATCHING].count(wanted.test).by(wanted.key).holding
    avoided &= ~unmet
    repelled = np.zeros(cluster.size, dtype=np.bool_)
    for domains in existing:
        repelled |= domains.holding
    return {NO_AFFINITY: unmet, ANTI_AFFINITY: avoided, EXISTING: repelled & ~unmet & ~avoided}


def lacking(ask: Ask, cluster: Cluster) -> Mask:
    """Rows that some required affinity term leaves out; a pod that matches itself may be the first of its kind."""
    unmet = np.zeros(cluster.size, dtype=np.bool_)
    if not ask.affinity:
        return unmet
    count = cluster[MATCHING].count(ask.together)
    unlabelled = np.zeros(cluster.size, dtype=np.bool_)
    somewhere = np.zeros(cluster.size, dtype=np.bool_)
    for wanted in ask.affinity:
        domains = count.by(wanted.key)
        unlabelled |= ~domains.known
        unmet |= ~domains.holding
        somewhere |= domains.anywhere
    return unlabelled | (unmet & (somewhere | (not ask.matches_itself)))


def scores(ask: Ask, cluster: Cluster, _: Feasible) -> Numbers | None:
    if ask.ignore_preferred and not ask.preferred:
        return None
    total = np.zeros(cluster.size, dtype=np.int64)
    contributes = False
    for weight, domains in contributions(ask, cluster):
        contributes = contributes or domains.any
        total += weight * domains.at
    return total if contributes else None


def contributions(ask: Ask, cluster: Cluster) -> Iterator[tuple[int, Domains]]:
    """Weight and domains of every term that scores for or against a node."""
    for weight, wanted in ask.preferred:
        yield weight, cluster[MATCHING].count(wanted.test).by(wanted.key)
    for held, domains in facing(ask.scoring, cluster):
        weight = {"required": ask.hard_weight, "preferred": held.weight, "preferred-anti": -held.weight}[held.kind]
        if weight:
            yield weight, domains


def normalise(_: Ask, raw: Numbers, feasible: Feasible) -> Numbers:
    """Scale between the lowest and the highest raw score in float64, in upstream's order; all equal gives 0."""
    lowest, highest = feasible.lowest(raw), feasible.highest(raw)
    if lowest == highest:
        return np.zeros_like(raw)
    return (MAX_SCORE * ((raw - lowest) / (highest - lowest))).astype(np.int64)


# What lies behind rejections: the pods that repel, or the pods that are missed


def details(ask: Ask, cluster: Cluster) -> Iterator[Detail]:
    yield from missed(ask, cluster)
    for wanted in ask.anti:
        domains = cluster[MATCHING].count(wanted.test).by(wanted.key)
        if found := pods_in(domains, cluster, partial(meets, wanted.test)):
            yield Detail(f"the pod's anti-affinity over {domains.kind} to {wanted.test} meets {found}")
    for held, domains in facing(ask.repelling, cluster):
        if found := pods_in(domains, cluster, partial(carries, held)):
            yield Detail(f"anti-affinity over {domains.kind} to {held.term.selector} keeps it away from {found}")


def missed(ask: Ask, cluster: Cluster) -> Iterator[Detail]:
    """Where the pods are that the required affinity wants, or that there are none."""
    if not ask.affinity:
        return
    sought = " and ".join(dict.fromkeys(str(wanted.test) for wanted in ask.affinity))
    count = cluster[MATCHING].count(ask.together)
    by_key = {wanted.key: count.by(wanted.key) for wanted in ask.affinity}
    for key, domains in by_key.items():
        missing = int((~domains.known).sum())
        if missing:
            yield Detail(f"{missing} of these nodes lack{'s' if missing == 1 else ''} the label {key}")
    if not any(any(domains.held().values()) for domains in by_key.values()):
        if not ask.matches_itself:
            yield Detail(f"no pod with {sought} runs on a node with {', '.join(by_key)}, and the pod is none itself")
        return
    for key, domains in by_key.items():
        if (domains.known & (domains.at <= 0)).any():
            near = [f"{name} ({number})" for name, number in domains.held().items() if number > 0]
            where = f"are in {domains.kind} {some(near, NAMED)} only" if near else f"are on no node with {key}"
            yield Detail(f"pods with {sought} {where}")


def pods_in(domains: Domains, cluster: Cluster, test: Callable[[Pod], bool]) -> str:
    """Some of the pods that are counted in the domains of the view's rows, and how many more there are."""
    counts = domains.held()
    areas = sorted(name for name in set(domains.names) if counts.get(name, 0) > 0)
    shown = list(islice(named(domains, areas, cluster, test), NAMED))
    more = sum(counts[name] for name in areas) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 and shown else "")


def named(domains: Domains, areas: list[str], cluster: Cluster, test: Callable[[Pod], bool]) -> Iterator[str]:
    """Pods that pass a test, with their nodes and domains."""
    for area in areas:
        rows = domains.holders(area)
        view = cluster.rows(rows)
        for place, row in enumerate(rows.tolist()):
            node = cluster.node(row).name
            where = node if node == area else f"{node}, {domains.kind} {area}"
            yield from (f"{key} ({where})" for key in sorted(pod.key for pod in view.pods_at(place) if test(pod)))


def meets(test: Near, pod: Pod) -> bool:
    return test.supposed(pod.namespace, pod.labels)


def carries(held: Held, pod: Pod) -> bool:
    return held in held_terms(pod)


PLUGIN = Plugin(
    "InterPodAffinity",
    FILTERS_AND_SCORES,
    weight=2,
    args=InterPodAffinityArgs,
    reads=(MATCHING, TERMS, LABELS),
    asks=asks,
    rejects=rejects,
    details=details,
    scores=scores,
    normalise=normalise,
    stateless={
        "filter": 'error reading "PreFilterInterPodAffinity" from cycleState: not found',
        "score": 'failed to read "PreScoreInterPodAffinity" from cycleState: not found',
    },
)
