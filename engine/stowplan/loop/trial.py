"""Changes that a simulation makes to a cluster, each with its undoing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from stowplan.objects import DisruptionBudget, OtherFact, Pod
from stowplan.policy.compile import Policy
from stowplan.policy.preempt import Candidate, spends
from stowplan.state import Store


class Trial:
    """A store on trial: `undo` takes back all that was done here, in reverse order."""

    def __init__(self, policy: Policy, store: Store) -> None:
        self._policy, self._store = policy, store
        self._waiting = list(store.pending.values())
        self._undoing: list[Callable[[], object]] = []

    def place(self, pod: Pod, node: str, facts: Iterable[OtherFact]) -> None:
        """Bind a waiting pod."""
        self._undoing.append(partial(self._store.forget, pod))  # does no harm where the next line breaks off
        self._store.assume(pod, node, facts)

    def preempt(self, pod: Pod, node: str, candidate: Candidate) -> Pod:
        """Carry a preemption out; returns the pod as it waits then, nominated to the node.

        Upstream: `prepareCandidate`. Victims are gone at once, and the budgets that cover them shrink, as the disruption
        controller would have it; pods of lower priority lose their nomination to the node.
        """
        for victim in candidate.victims:
            self._spend(victim)
            seat = self._store.evict(victim)
            self._undoing.append(partial(self._store.put_back, victim, seat))
        for other in list(self._store.nominated.get(node, {}).values()):
            if other.spec.priority < pod.spec.priority and self._policy.serves(other):
                self.nominate(other, "")
        return self.nominate(pod, node)

    def nominate(self, pod: Pod, node: str) -> Pod:
        """Reserve a node for a waiting pod, or (an empty name) none; returns the pod as it waits then."""
        nominated = replace(pod, nominated_node=node)
        self._store.set_pod(nominated)
        return nominated

    def _spend(self, victim: Pod) -> None:
        budgets = self._store.facts.get(DisruptionBudget, {})
        for budget in [budget for budget in budgets.values() if budget.allowed > 0 and spends(victim, budget)]:
            self._undoing.append(partial(self._store.set_fact, budget))
            self._store.set_fact(replace(budget, allowed=budget.allowed - 1))

    def undo(self) -> None:
        """The cluster as it was."""
        while self._undoing:
            self._undoing.pop()()
        self._store.requeue(self._waiting)
