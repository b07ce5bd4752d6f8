"""What one scheduling attempt found out, and pods that count because they are nominated to a node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from stowplan.objects import Pod
from stowplan.plugins.plugin import Code
from stowplan.policy.compile import Policy, Profile
from stowplan.policy.decision import Refusals, Status
from stowplan.policy.evaluate import Filtering, Opening, Scoring, filter_rows
from stowplan.state import Cluster, Rows, Store, Supposition

if TYPE_CHECKING:
    from stowplan.policy.preempt import Preemption


@dataclass(slots=True)
class Attempt:
    """All that was found out about one pending pod. Arrays are over `rows`' numbers in the store."""

    pod: Pod
    profile: str
    skipped: str | None = None
    """why the pod is not tried: no profile, gated, being deleted"""
    pre_enqueue: dict[str, Status] = field(default_factory=dict)
    opening: Opening | None = None
    filtering: Filtering | None = None
    """every filter over all rows, nominated pods not counted"""
    infeasible: Refusals = field(default_factory=lambda: Refusals(0))
    """row -> first refusal"""
    feasible: Rows = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    """rows that pass the whole chain, by node name"""
    scoring: Scoring | None = None
    best: Rows = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    """feasible rows with the highest total, by node name"""
    message: str | None = None
    preemption: Preemption | None = None

    @property
    def rejectors(self) -> frozenset[str]:
        """Plugins that rejected some node or, at PreFilter, the pod; none where an error ended the attempt.

        Upstream: `Diagnosis.UnschedulablePlugins`.
        """
        if self.opening is None:
            return frozenset()
        if self.opening.refusal is not None and self.opening.refusal.code is Code.ERROR:
            return frozenset()
        plugins = {status.plugin for status in self.infeasible.statuses if status.plugin}
        return frozenset(plugins | set(self.opening.narrowing)) if len(self.infeasible) else frozenset()


def with_nominated(
    profile: Profile, policy: Policy, store: Store, found: Attempt, removed: Mapping[int, Supposition] | None = None
) -> tuple[Sequence[int], Sequence[Status | None]]:
    """Rows on which pods of at least the same priority are nominated, and what the filters say with those pods there.

    `removed`: look at these rows only, each without some pods.
    """
    assert found.opening is not None
    rows: list[int] = []
    worlds: list[Supposition] = []
    for row, pods in nominated_rows(store):
        if removed is None or row in removed:
            others = [pod for pod in pods if counts_as_nominated(policy, found.pod, pod)]
            if others:
                rows.append(row)
                gone = removed[row] if removed else Supposition()
                worlds.append(Supposition(added=others, removed=gone.removed, tried=gone.tried))
    if not rows:
        return (), ()
    filtering = filter_rows(profile, found.opening, Cluster(store).suppose(np.array(rows, dtype=np.intp), worlds))
    return rows, [None if filtering.first[i] < 0 else filtering.first_status(i) for i in range(len(rows))]


def counts_as_nominated(policy: Policy, pod: Pod, other: Pod) -> bool:
    """Whether a nominated pod counts as running while another is tried (framework's addNominatedPods)."""
    return other.key != pod.key and counts_from(policy, pod.spec.priority, other)


def counts_from(policy: Policy, priority: int, other: Pod) -> bool:
    """Whether a nominated pod counts for all other pods of a priority."""
    return other.spec.priority >= priority and policy.serves(other)


def nominated_rows(store: Store) -> Iterator[tuple[int, Iterable[Pod]]]:
    """Rows that pods are nominated to, with those pods."""
    for name, pods in store.nominated.items():
        row = store.row_of.get(name)
        if row is not None:
            yield row, pods.values()
