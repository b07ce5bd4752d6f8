"""Preemption: which pods would have to go so that one that fits nowhere fits somewhere (upstream: DefaultPreemption).

A dry run is the filters themselves on rows with pods supposed to be gone; all candidate nodes are tried at once, and
victims are spared rank by rank.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stowplan.objects import DisruptionBudget, Pod
from stowplan.plugins.plugin import Code, Plugin, Release
from stowplan.policy.compile import Policy
from stowplan.policy.decision import fit_error
from stowplan.policy.nominated import Attempt
from stowplan.policy.victims import Dry
from stowplan.state import RANKS, Cluster, Mask, Rows, Store

NAME = "DefaultPreemption"
NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
BY_SCHEDULER = "PreemptionByScheduler"
NEVER = "not eligible due to preemptionPolicy=Never."
TOO_DEAR = "the rules of the profile take too much work to find victims"
TERMINATING = "not eligible due to a terminating pod on the nominated node."


@dataclass(frozen=True, slots=True)
class Candidate:
    """Pods to evict from one node, most important first, and by key the disruption budgets that some of them break."""

    victims: tuple[Pod, ...]
    broken: Mapping[str, DisruptionBudget]


@dataclass(frozen=True, slots=True)
class Preemption:
    """Outcome of the PostFilter plugins."""

    code: Code
    message: str
    node: str | None = None
    tied: tuple[str, ...] = ()
    """nodes that cost the same, where there was a choice"""
    chosen: Candidate | None = None
    find_all: Callable[[], dict[str, Candidate]] = field(default=dict, repr=False)
    hopeless: bool = False
    """whether no node is a candidate: the pod then loses the node that it was nominated to"""
    releases: tuple[Release, ...] = ()
    """what other PostFilter plugins give up, whatever comes of it"""

    @property
    def candidates(self) -> dict[str, Candidate]:
        """Every node on which evictions would make room, by name."""
        return self.find_all()

    @property
    def victims(self) -> tuple[Pod, ...]:
        """Pods to evict from the chosen node."""
        return self.chosen.victims if self.chosen is not None else ()

    def to_json(self) -> dict[str, Any]:
        """In the shape of the goldens: empty members are left out."""
        candidates = {
            node: {"victims": [pod.key for pod in candidate.victims], "pdbViolations": len(candidate.broken)}
            for node, candidate in self.candidates.items()
        }
        members = {
            "node": self.node,
            "victims": [pod.key for pod in self.victims],
            "tied": list(self.tied),
            "candidates": candidates,
        }
        return {"code": self.code.value, "message": self.message} | {name: value for name, value in members.items() if value}


def post_filter(policy: Policy, store: Store, found: Attempt) -> Preemption | None:
    """Run PostFilter for a pod that no node takes; None if the profile has no such plugin."""
    profile = policy.profiles[found.profile]
    if not profile.points["postFilter"]:
        return None
    assert found.opening is not None
    for name in profile.points["postFilter"]:
        fault = profile.plugins[name].stateless.get("postFilter")
        if fault and name not in found.opening.reached:
            return Preemption(Code.ERROR, fault)
    outcome, names = _evict(policy, store, found), profile.points["postFilter"]
    if outcome.code is not Code.UNSCHEDULABLE:  # which ends the point
        names = names[: names.index(NAME)]
    releases = tuple(each for name in names if (each := _released(profile.plugins[name], store, found)) is not None)
    if not releases:
        return outcome
    texts = [each.text for each in releases] if outcome.code is Code.UNSCHEDULABLE else []
    return dataclasses.replace(outcome, message=", ".join(filter(None, [*texts, outcome.message])), releases=releases)


def _evict(policy: Policy, store: Store, found: Attempt) -> Preemption:
    """Run DefaultPreemption, if the profile has it."""
    if NAME not in policy.profiles[found.profile].points["postFilter"]:
        return Preemption(Code.UNSCHEDULABLE, "")
    if text := ineligible(store, found):
        return Preemption(Code.UNSCHEDULABLE, f"preemption: {text}")
    return search(policy, store, found)


def _released(plugin: Plugin, store: Store, found: Attempt) -> Release | None:
    """What another PostFilter plugin gives up for the pod."""
    assert found.opening is not None
    ask = found.opening.asks[plugin.name]
    if plugin.releases is None or ask is None:
        return None
    codes = [code for code, status in enumerate(found.infeasible.statuses) if status.plugin == plugin.name]
    return plugin.releases(ask, Cluster(store, np.isin(found.infeasible.codes, codes).nonzero()[0]))


def ineligible(store: Store, found: Attempt) -> str | None:
    """Why the pod may not preempt at all."""
    pod = found.pod
    if pod.spec.preemption_policy == "Never":
        return NEVER
    row = store.row_of.get(pod.nominated_node)
    if row is None or found.infeasible[row].code is Code.UNRESOLVABLE:
        return None
    leaving = (
        other.terminating and other.disruption == BY_SCHEDULER and other.spec.priority < pod.spec.priority
        for other in store.seats[row].values()
    )
    return TERMINATING if any(leaving) else None


def with_victims(store: Store, rows: Rows, priority: int) -> Mask:
    """Which of some rows have pods of lower priority."""
    ranks = Cluster(store, rows)[RANKS]
    lower = (ranks.priorities < priority) & (np.arange(ranks.codes.shape[1]) < ranks.counts[:, None])
    found: Mask = np.count_nonzero(lower, axis=1) > 0
    return found


def search(policy: Policy, store: Store, found: Attempt) -> Preemption:
    """Find the victims on every node that evictions can help, and pick the cheapest node, first by name among equals."""
    rows = found.infeasible.rows(Code.UNSCHEDULABLE)
    have = with_victims(store, rows, found.pod.spec.priority)
    budgets = list(store.facts.get(DisruptionBudget, {}).values())
    dry = Dry(policy, store, found, rows[have])
    dry.queue_up((lambda pods: violating(pods, budgets)) if budgets else None)
    refusals = dry.remove_all()
    dry.spare()
    if dry.starved:  # what rules left open must not cost a pod its place
        return Preemption(Code.UNSCHEDULABLE, f"preemption: {TOO_DEAR}")
    if dry.gone.any():
        return _picked(store, dry)
    if len(dry.rows):
        name = min(store.nodes[row].name for row in dry.rows.tolist())
        return Preemption(Code.ERROR, f'preemption: expected at least one victim pod on node "{name}"')
    without = int((~have).sum())
    others = (NOT_HELPFUL, len(store.nodes) - without - len(refusals))
    reasons = [*refusals.reasons(), (NO_VICTIMS, without), others]
    return Preemption(Code.UNSCHEDULABLE, f"preemption: {fit_error(len(store.nodes), reasons)}", hopeless=True)


def _picked(store: Store, dry: Dry) -> Preemption:
    """The cheapest candidate (preemption.pickOneNodeForPreemption)."""
    places = np.flatnonzero(dry.gone.any(axis=1))
    costs = dry.costs(places)
    least = np.lexsort(costs[::-1])[0]
    equal: Mask = np.logical_and.reduce([cost == cost[least] for cost in costs])
    names = [store.nodes[row].name for row in dry.rows[places].tolist()]
    tied = sorted(names[i] for i in np.flatnonzero(equal).tolist())
    chosen = _candidate(dry, int(places[names.index(tied[0])]))
    message = f"preemption: found a potential placement for pod on node {tied[0]}, preempting {len(chosen.victims)} victims"

    def find_all() -> dict[str, Candidate]:
        return {name: _candidate(dry, place) for name, place in sorted(zip(names, places.tolist(), strict=True))}

    return Preemption(Code.SUCCESS, message, tied[0], tuple(tied) if len(names) > 1 else (), chosen, find_all)


def _candidate(dry: Dry, place: int) -> Candidate:
    return Candidate(*dry.victims(place))


def violating(pods: Iterable[Pod], budgets: Iterable[DisruptionBudget]) -> dict[str, DisruptionBudget]:
    """The budgets that evictions exceed in this order, by key of the pod (filterPodsWithPDBViolation)."""
    budgets = list(budgets)
    left = {budget.key: budget.allowed for budget in budgets}
    found = {}
    for pod in pods:
        for budget in budgets:
            if not spends(pod, budget):
                continue
            left[budget.key] -= 1
            if left[budget.key] < 0:
                found[pod.key] = budget
                break
    return found


def spends(pod: Pod, budget: DisruptionBudget) -> bool:
    """Whether evicting the pod counts against the budget."""
    return len(pod.labels) > 0 and pod.name not in budget.disrupted and budget.covers(pod.namespace, pod.labels)
