"""A preemption in one line."""

from __future__ import annotations

from stowplan.policy.preempt import Preemption
from stowplan.text import some

NAMES = 4
"""Pods that are named before the rest is counted."""


def evicts(preemption: Preemption, *, done: bool = False) -> str:
    """Who has to go, from where, and which disruption budgets that breaks."""
    victims = some([victim.key for victim in preemption.victims], NAMES)
    said = "preemption has evicted" if done else "preemption would evict"
    broken = preemption.chosen.broken if preemption.chosen is not None else {}
    against = [f"{key} against PodDisruptionBudget {budget.key} ({budget.allowed} allowed)" for key, budget in broken.items()]
    return f"{said} {victims} from {preemption.node}" + (f": {some(against, NAMES)}" if against else "")
