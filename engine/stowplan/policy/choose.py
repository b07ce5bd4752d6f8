"""Choosing a node for one pod after the other: classes where they apply, a full evaluation where they do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stowplan.objects import Pod
from stowplan.policy.attempt import Attempt, admit, attempt
from stowplan.policy.classes import Classes, PodClass
from stowplan.policy.compile import Policy, Profile
from stowplan.policy.evaluate import ask_all, lost_state, open_pod
from stowplan.state import Cluster, Mask, Numbers, Store


@dataclass(slots=True)
class Choice:
    """Where a pod goes. `row` is None if it goes nowhere: `skipped` or `message` say why."""

    row: int | None = None
    total: int = 0
    tied: Mask | None = None
    """rows with the highest total"""
    feasible: int = 0
    message: str | None = None
    skipped: str | None = None


class Chooser:
    """Decides for pods of one policy over one store; ties go to the first node by name."""

    def __init__(self, policy: Policy, store: Store) -> None:
        self._policy, self._store = policy, store
        self._classes = Classes(store)
        self._keys: dict[Any, Any] = {}
        self._lookups = -1
        self._broken = {name for name, profile in policy.profiles.items() if broken(profile)}
        self._failures: dict[Any, tuple[int, int, str | None]] = {}

    def choose(self, pod: Pod) -> Choice:
        """Best node of one pod, as the cluster stands. Nothing is assumed."""
        skipped = admit(self._policy, pod).skipped
        if skipped is not None:
            return Choice(skipped=skipped)
        special = pod.nominated_node or self._store.nominated or pod.spec.scheduler_name in self._broken
        if special or not self._store.nodes:
            return self._fully(pod)
        key, asks = self._asks(pod)
        profile = self._policy.profiles[pod.spec.scheduler_name]
        pod_class = self._classes.get(key, lambda: PodClass(profile, open_pod(profile, asks, Cluster(self._store)), self._store))
        if pod_class.opening.refusal is not None or pod_class.error is not None:
            return self._fully(pod)
        best = pod_class.best()
        if best is None:
            return self._failed(key, pod)
        row, total, tied = best
        return Choice(row, total, tied, pod_class.feasible)

    def _asks(self, pod: Pod) -> tuple[Any, dict[str, Any]]:
        """Class key and asks, computed once per distinct spec, labels, namespace, owner and status."""
        if self._lookups != self._store.lookups:
            self._keys.clear()
            self._lookups = self._store.lookups
        shape = (pod.spec, pod.labels, pod.namespace, pod.owner, pod.requested)
        found = self._keys.get(shape)
        if found is None:
            profile = self._policy.profiles[pod.spec.scheduler_name]
            asks = ask_all(profile, pod, Cluster(self._store))
            found = self._keys[shape] = ((profile.scheduler_name, tuple(asks.values())), asks)
        return found  # type: ignore[no-any-return]

    def _failed(self, key: Any, pod: Pod) -> Choice:
        """An unschedulable pod; its message is kept for as long as no pod or node moves."""
        stamp = (self._store.epoch, len(self._store.log))
        known = self._failures.get(key)
        if known is None or known[:2] != stamp:
            known = self._failures[key] = (*stamp, attempt(self._policy, self._store, pod).message)
        return Choice(message=known[2])

    def _fully(self, pod: Pod) -> Choice:
        """Without a class: what nominated pods or a refusal make different."""
        found = attempt(self._policy, self._store, pod)
        return from_attempt(found, len(self._store.nodes))


def broken(profile: Profile) -> bool:
    """Whether some filter of the profile fails for every pod, for want of its PreFilter."""
    return any(lost_state(profile, profile.plugins[name], "filter") for name in profile.points["filter"])


def from_attempt(found: Attempt, size: int) -> Choice:
    """The choice that a full evaluation leads to."""
    if not len(found.best):
        return Choice(message=found.message, skipped=found.skipped)
    tied = np.zeros(size, dtype=np.bool_)
    tied[found.best] = True
    return Choice(int(found.best[0]), _total(found), tied, len(found.feasible))


def _total(found: Attempt) -> int:
    totals: Numbers | None = found.scoring.totals if found.scoring is not None else None
    return int(totals.max()) if totals is not None and len(totals) else 0
