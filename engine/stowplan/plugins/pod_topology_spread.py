"""PodTopologySpread: the pods of a set are spread evenly over zones, racks or nodes.

rejects  a node where a hard constraint's skew would exceed its maximum, or that lacks the topology label
scores   a node by the matching pods in its domains under the soft constraints; fewer is better
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stowplan.objects import Labels, NodeSelector, Pod, Requirement, Selector, SpreadConstraint, Tolerations, Workload, conjunction
from stowplan.plugins.arguments import DefaultConstraint, PodTopologySpreadArgs
from stowplan.plugins.plugin import FILTERS_AND_SCORES, MAX_SCORE, Area, Detail, Plugin, Reason, Rejections
from stowplan.state import (
    IGNORED,
    LABELS,
    MATCHING,
    NAME,
    TAINTS,
    Cluster,
    Domains,
    Feasible,
    Mask,
    Numbers,
    label,
    meeting,
    selected,
)
from stowplan.state.hashed import HashedOnce, hashed_once
from stowplan.text import some

HOSTNAME = "kubernetes.io/hostname"
NO_LABEL = Reason("node(s) didn't match pod topology spread constraints (missing required label)", final=True)
SKEWED = Reason("node(s) didn't match pod topology spread constraints")
HALF = np.array(0.5)
NAMED = 3
"""Domains that are named before the rest is counted."""


@hashed_once
@dataclass(frozen=True, slots=True)
class Matches(HashedOnce):
    """Pods of a namespace that a selector matches and that are not being deleted."""

    namespace: str
    selector: Selector

    def holds(self, namespace: str, labels: Labels, *, terminating: bool) -> bool:
        # an empty selector counts no pod here, though it matches the incoming one (upstream: countPodsMatchSelector)
        return not terminating and not self.selector.empty and self.supposed(namespace, labels)

    def supposed(self, namespace: str, labels: Labels) -> bool:
        # upstream's updateWithPod looks neither at deletion nor for emptiness
        return namespace == self.namespace and self.selector.matches(labels)


@hashed_once
@dataclass(frozen=True, slots=True)
class Eligible(HashedOnce):
    """Nodes that count for a constraint: they carry all keys, and the policies admit them."""

    keys: tuple[str, ...]
    affinity: tuple[tuple[Requirement, ...], NodeSelector | None] | None
    tolerations: Tolerations | None

    def mask(self, cluster: Cluster) -> Mask:
        found = np.ones(cluster.size, dtype=np.bool_)
        for key in self.keys:
            found &= cluster[label(key)].present()
        if self.affinity is not None:
            requirements, required = self.affinity
            found &= meeting(requirements, cluster)
            if required is not None:
                found &= selected(required, cluster)
        if self.tolerations is not None:
            tolerate = self.tolerations.tolerate
            found &= cluster[TAINTS].where(lambda taints: all(not t.hard or tolerate(t) for t in taints))
        return found


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint, made ready for one pod."""

    key: str
    max_skew: int
    min_domains: int
    test: Matches
    eligible: Eligible
    matches_itself: bool


@dataclass(frozen=True, slots=True)
class Ask:
    """Constraints to filter and to score by. `require_all`: a node that lacks a key is left out of scoring."""

    hard: tuple[Constraint, ...]
    soft: tuple[Constraint, ...]
    require_all: bool


def asks(pod: Pod, args: PodTopologySpreadArgs, cluster: Cluster) -> Ask | None:
    own = [(c, c.selector_for(pod.labels)) for c in pod.spec.spread]
    chosen = own or defaults(pod, args, cluster)
    require_all = bool(own) or args.defaulting_type == "List"
    hard = prepare(pod, [c for c in chosen if c[0].hard], all_keys=True)
    soft = prepare(pod, [c for c in chosen if not c[0].hard], all_keys=require_all)
    return Ask(hard, soft, require_all) if hard or soft else None


SYSTEM = (
    DefaultConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable="ScheduleAnyway"),
    DefaultConstraint(max_skew=5, topology_key="topology.kubernetes.io/zone", when_unsatisfiable="ScheduleAnyway"),
)


def defaults(pod: Pod, args: PodTopologySpreadArgs, cluster: Cluster) -> list[tuple[SpreadConstraint, Selector]]:
    """The profile's default constraints, for pods that some Service or controller selects."""
    selector = default_selector(pod, cluster)
    if selector.empty:
        return []
    return [(as_constraint(c), selector) for c in (SYSTEM if args.defaulting_type == "System" else args.default_constraints)]


def as_constraint(default: DefaultConstraint) -> SpreadConstraint:
    """A default constraint as one of a pod; its selector is found for each pod."""
    return SpreadConstraint(
        default.topology_key,
        default.max_skew,
        default.when_unsatisfiable == "DoNotSchedule",
        Selector.NOTHING,
        default.min_domains or 1,
        default.node_affinity_policy != "Ignore",
        default.node_taints_policy == "Honor",
        (),
    )


def default_selector(pod: Pod, cluster: Cluster) -> Selector:
    """What the pod's Services and its controller select, all of it ANDed (helper.DefaultSelector)."""
    merged: dict[str, Requirement] = {}
    for service in cluster.facts(Workload).values():
        if (service.kind, service.namespace) != ("Service", pod.namespace) or service.selector is None:
            continue
        if service.selector.matches(pod.labels):
            merged |= {requirement.key: requirement for requirement in service.selector.requirements}
    controller = owner(pod, cluster)
    if controller is None or controller.selector is None:
        return conjunction(merged.values())
    if controller.kind == "ReplicationController":
        merged |= {requirement.key: requirement for requirement in controller.selector.requirements}
        return conjunction(merged.values())
    return Selector.NOTHING if controller.selector.nothing else conjunction((*merged.values(), *controller.selector.requirements))


KINDS = {("v1", "ReplicationController"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")}


def owner(pod: Pod, cluster: Cluster) -> Workload | None:
    """The pod's controller, of the kinds that default spreading knows."""
    if pod.owner is None or (pod.owner.api_version, pod.owner.kind) not in KINDS:
        return None
    return cluster.facts(Workload).get(f"{pod.owner.kind}/{pod.namespace}/{pod.owner.name}")


def prepare(pod: Pod, chosen: list[tuple[SpreadConstraint, Selector]], *, all_keys: bool) -> tuple[Constraint, ...]:
    """Constraints of one action with their counters' questions."""
    keys = tuple(sorted({constraint.key for constraint, _ in chosen})) if all_keys else ()
    affinity = (pod.spec.node_selector or (), pod.spec.required)
    return tuple(
        Constraint(
            constraint.key,
            constraint.max_skew,
            constraint.min_domains,
            Matches(pod.namespace, selector),
            Eligible(
                keys, affinity if constraint.honor_affinity else None, pod.spec.tolerations if constraint.honor_taints else None
            ),
            selector.matches(pod.labels),
        )
        for constraint, selector in chosen
    )


def rejects(ask: Ask, cluster: Cluster) -> Rejections | None:
    if not ask.hard:
        return None
    unlabelled: Mask | None = None
    for constraint in ask.hard:
        domains = cluster[MATCHING].count(constraint.test).by(constraint.key, constraint.eligible)
        lacking, most = ~domains.known, constraint.max_skew - constraint.matches_itself
        above = domains.at
        if domains.number >= constraint.min_domains:
            above = above - domains.least
        if unlabelled is None:
            unlabelled, skewed = lacking, (above > most) & ~lacking
        else:
            unlabelled |= lacking & ~skewed
            skewed |= (above > most) & ~unlabelled
    assert unlabelled is not None
    return {NO_LABEL: unlabelled, SKEWED: skewed}


def scores(ask: Ask, cluster: Cluster, feasible: Feasible) -> Numbers | None:
    if not ask.soft:
        return None
    counted = [(constraint, cluster[MATCHING].count(constraint.test)) for constraint in ask.soft]
    domains = [count.by(constraint.key, constraint.eligible) for constraint, count in counted]
    ignored = left_out(ask, domains)
    total: NDArray[np.float64] | None = None
    for (constraint, count), domain in zip(counted, domains, strict=True):
        hostname = constraint.key == HOSTNAME
        size = feasible.number(ignored) if hostname else domain.distinct(feasible, ignored)
        part = (count.here() if hostname else domain.at) * weight_of(size)
        part += np.array(constraint.max_skew - 1.0)
        if not domain.complete:
            part[~domain.known] = 0.0
        total = part if total is None else total + part
    assert total is not None
    total += HALF
    found = total.astype(np.int64)  # truncates
    if ignored is not None:
        found[ignored] = IGNORED
    return found


@lru_cache(maxsize=4096)
def weight_of(size: int) -> NDArray[np.float64]:
    """What a pod counts for where there are so many domains, a number (upstream: topologyNormalizingWeight)."""
    found: NDArray[np.float64] = np.array(np.log(np.float64(size + 2)))
    return found


def left_out(ask: Ask, domains: list[Domains]) -> Mask | None:
    """Rows that scoring ignores for lack of a label; None for none."""
    ignored: Mask | None = None
    for domain in domains if ask.require_all else ():
        if not domain.complete:
            ignored = ~domain.known if ignored is None else ignored | ~domain.known
    return ignored


def normalise(_: Ask, raw: Numbers, feasible: Feasible) -> Numbers:
    """Fewest pods get most; the lowest raw score is added back, so the best node always has 100."""
    lowest, highest = feasible.lowest(raw), feasible.highest(raw, initial=0)
    return np.full_like(raw, MAX_SCORE) if highest == 0 else MAX_SCORE * (highest + lowest - raw) // highest


# What lies behind rejections: which domains hold the minimum, or why the minimum counts as 0


def details(ask: Ask, cluster: Cluster) -> Iterator[Detail]:
    for constraint in ask.hard:
        domains = cluster[MATCHING].count(constraint.test).by(constraint.key, constraint.eligible)
        missing = int((~domains.known).sum())
        if missing:
            yield Detail(f"{missing} of these nodes lack{'s' if missing == 1 else ''} the label {constraint.key}")
        enough = domains.number >= constraint.min_domains
        least = int(domains.least[0]) if enough else 0
        skewed = domains.known & (domains.at + constraint.matches_itself - least > constraint.max_skew)
        if skewed.any():
            yield too_full(constraint, domains, skewed, least)
            yield from [minimum(constraint, domains, least)] if enough else too_few(constraint, domains, cluster)


def too_full(constraint: Constraint, domains: Domains, skewed: Mask, least: int) -> Detail:
    """The domains that reject."""
    pods = dict(zip(domains.names, domains.at[domains.known].tolist(), strict=True))
    full = sorted({name for name, rejects in zip(domains.names, skewed[domains.known].tolist(), strict=True) if rejects})
    shown = some([f"{name} ({pods[name]})" for name in full], NAMED)
    head = f"{domains.kind}, maxSkew {constraint.max_skew}:"
    if constraint.matches_itself:
        return Detail(f"{head} with this pod {shown} would be too far above the minimum of {least}")
    return Detail(f"{head} {shown} too far above the minimum of {least} (the selector does not match the pod itself)")


def minimum(constraint: Constraint, domains: Domains, least: int) -> Detail:
    """The domains that hold the minimum."""
    remedies = {}
    if constraint.eligible.tolerations is None:
        remedies["TaintToleration"] = "nodeTaintsPolicy: Honor would leave it out"
    if constraint.eligible.affinity is None:
        remedies["NodeAffinity"] = "nodeAffinityPolicy: Honor would leave it out"
    lowest = [name for name, pods in domains.held().items() if pods == least]
    areas = tuple(Area(name, tuple(domains.rows(name).tolist())) for name in lowest)
    return Detail(f"the minimum at {least}", domains.kind, areas, remedies)


def too_few(constraint: Constraint, domains: Domains, cluster: Cluster) -> Iterator[Detail]:
    """Why the minimum counts as 0, and which domains might have been enough."""
    names, wanted = list(domains.held()), constraint.min_domains
    shown = f" ({some(names, NAMED)})" if names else ""
    yield Detail(f"{len(names)} domain{'' if len(names) == 1 else 's'}{shown} < minDomains {wanted}, so the minimum counts as 0")
    gone = domains.left_out()
    for name in list(gone)[:NAMED]:
        yield Detail(f"{domains.kind} {name} is left out{excluded(constraint.eligible, cluster.rows(gone[name]))}")
    if len(gone) > NAMED:
        yield Detail(f"{len(gone) - NAMED} more are left out as well")


def excluded(eligible: Eligible, cluster: Cluster) -> str:
    """Which policy leaves nodes out; nothing where no single one does."""
    relaxed = {
        "nodeTaintsPolicy: Honor": replace(eligible, tolerations=None),
        "nodeAffinityPolicy: Honor": replace(eligible, affinity=None),
    }
    return next((f": {policy}" for policy, other in relaxed.items() if other.mask(cluster).any()), "")


PLUGIN = Plugin(
    "PodTopologySpread",
    FILTERS_AND_SCORES,
    weight=2,
    args=PodTopologySpreadArgs,
    reads=(MATCHING, LABELS, NAME, TAINTS),
    asks=asks,
    rejects=rejects,
    details=details,
    scores=scores,
    normalise=normalise,
    stateless={
        "filter": 'reading "PreFilterPodTopologySpread" from cycleState: not found',
        "score": 'error reading "PreScorePodTopologySpread" from cycleState: not found',
    },
)
