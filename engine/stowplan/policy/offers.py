"""Candidates of a preemption as extenders see them: offers to evict some pods of a node, which they may narrow or change.

Upstream: `callExtenders`, `SelectCandidate` and `HTTPExtender.convertToVictims`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stowplan.objects import Pod
from stowplan.plugins.arguments import DefaultPreemptionArgs
from stowplan.plugins.plugin import Code
from stowplan.policy.compile import Policy
from stowplan.policy.extenders import manages
from stowplan.policy.preempt import NAME, Candidate, Preemption
from stowplan.policy.victims import PRIORITY_OFFSET
from stowplan.profile import Extender
from stowplan.state import Store, started

NO_CANDIDATE = "no candidate node for preemption"


@dataclass(frozen=True, slots=True)
class Offer:
    """Pods to evict from one node, in the order of whoever chose them, and how many of them break a disruption budget."""

    victims: tuple[Pod, ...]
    violations: int = 0

    @property
    def cost(self) -> tuple[float, ...]:
        """What upstream compares, least first, as `Dry.costs`; an extender's first victim counts as its most important one."""
        priorities = [pod.spec.priority for pod in self.victims]
        earliest = min(started(pod) for pod in self.victims if pod.spec.priority == max(priorities))
        total = sum(priority + PRIORITY_OFFSET for priority in priorities)
        return self.violations, priorities[0], total, len(priorities), -earliest


Offers = Mapping[str, Offer]
"""By name of the node."""

Claim = tuple[str, tuple[str, ...], int]
"""What an extender would have: a node, the uids of pods there, and how many of them break a disruption budget."""


class OfferError(Exception):
    """An extender's answer cannot be carried out; the text is kube-scheduler's."""


def bargainers(policy: Policy, pod: Pod) -> tuple[Extender, ...]:
    """The extenders that are asked about victims for a pod, in order."""
    return tuple(each for each in policy.configuration.extenders if each.preempt_verb and manages(each, pod))


def first_offers(policy: Policy, profile: str, preemption: Preemption) -> dict[str, Offer]:
    """The candidates that extenders are shown: as many as the plugin's args let upstream find, the cheapest ones."""
    found = {node: Offer(each.victims, len(each.broken)) for node, each in preemption.candidates.items()}
    args = policy.profiles[profile].args.get(NAME)
    known = args if isinstance(args, DefaultPreemptionArgs) else DefaultPreemptionArgs()
    most = max(len(found) * known.min_candidate_nodes_percentage // 100, known.min_candidate_nodes_absolute)
    return {node: found[node] for node in sorted(found, key=lambda node: (found[node].cost, node))[:most]}


def claimed(extender: Extender, claims: Iterable[Claim], offers: Offers, store: Store) -> dict[str, Offer]:
    """What is left of the offers after an extender. OfferError.

    A pod that was offered and has gone since is one victim fewer.
    """
    found = {}
    for node, uids, violations in claims:
        row = store.row_of.get(node)
        if row is None:
            if node in offers:
                continue
            raise OfferError(f'nodeinfo not found for node name "{node}"')
        if not uids:
            if extender.ignorable:
                continue
            raise OfferError(f'expected at least one victim pod on node "{node}"')
        there = {pod.uid: pod for pod in store.seats[row].values()}
        offered = {pod.uid for pod in offers[node].victims} if node in offers else set()
        missing = next((uid for uid in uids if uid not in there and uid not in offered), None)
        if missing is not None:
            who = f"extender: {extender.url_prefix.rstrip('/')} claims to preempt pod (UID: &{{{missing}}})"
            raise OfferError(f"{who} on node: {node}, but the pod is not found on that node")
        found[node] = Offer(tuple(there[uid] for uid in uids if uid in there), violations)
    return found


def present(offers: Offers, store: Store) -> dict[str, Offer]:
    """The offers as the cluster stands; one without victims is of a node that has room now."""
    found = {}
    for node, offer in offers.items():
        row = store.row_of.get(node)
        if row is not None:
            there = {pod.uid: pod for pod in store.seats[row].values()}
            victims = tuple(there[pod.uid] for pod in offer.victims if pod.uid in there)
            found[node] = dataclasses.replace(offer, victims=victims)
    return found


def picked(preemption: Preemption, offers: Offers) -> Preemption:
    """The preemption with the cheapest offer, the first by name among equals; each has victims."""
    if not offers:
        return undone(preemption, Code.UNSCHEDULABLE, NO_CANDIDATE)
    least = min(offer.cost for offer in offers.values())
    tied = sorted(node for node, offer in offers.items() if offer.cost == least)
    known = preemption.candidates

    def candidate(node: str) -> Candidate:
        broken = known[node].broken if node in known else {}
        return Candidate(offers[node].victims, {pod.key: broken[pod.key] for pod in offers[node].victims if pod.key in broken})

    chosen = candidate(tied[0])
    message = f"preemption: found a potential placement for pod on node {tied[0]}, preempting {len(chosen.victims)} victims"
    return dataclasses.replace(
        preemption,
        message=message,
        node=tied[0],
        tied=tuple(tied) if len(offers) > 1 else (),
        chosen=chosen,
        find_all=lambda: {node: candidate(node) for node in sorted(offers)},
    )


def undone(preemption: Preemption, code: Code, text: str) -> Preemption:
    """The preemption that extenders have let come to nothing; the pod keeps the node that it is nominated to."""
    texts = [each.text for each in preemption.releases] if code is Code.UNSCHEDULABLE else []
    return Preemption(code, ", ".join([*texts, f"preemption: {text}"]), releases=preemption.releases)
