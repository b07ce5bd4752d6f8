"""Simulation: the pending pods in queue order, each seeing those placed before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stowplan.loop.queue import in_order
from stowplan.objects import Pod
from stowplan.policy.choose import Choice, Chooser
from stowplan.policy.compile import Policy
from stowplan.policy.explain import API_VERSION, profiles_json
from stowplan.policy.preempt import Preemption
from stowplan.state import ALLOCATABLE, PODS, REQUESTED, Cluster, Mask, Numbers, Store, collector_off


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one pod went, or why it went nowhere."""

    pod: Pod
    skipped: str | None
    node: str | None
    score: int
    feasible: int
    message: str | None
    preemption: Preemption | None
    """what preemption would do; it is reported, not carried out"""
    tied: NDArray[np.uint8] | None
    """packed bits over the rows: nodes with the same, highest total"""


@dataclass(frozen=True, slots=True)
class Use:
    """Allocatable and requested amounts by resource, int64 over the nodes in the order of `nodes`."""

    allocatable: dict[str, Numbers]
    before: dict[str, Numbers]
    after: dict[str, Numbers]


@dataclass(frozen=True, slots=True)
class Simulation:
    """Placements in queue order, and how full the nodes were and would be."""

    policy: Policy
    nodes: tuple[str, ...]
    placements: tuple[Placement, ...]
    use: Use

    @property
    def unplaced(self) -> list[Placement]:
        """Pods that were tried and fit nowhere."""
        return [placement for placement in self.placements if placement.node is None and placement.skipped is None]

    def best(self, placement: Placement) -> list[str]:
        """Names of the nodes with the highest total for a placed pod."""
        if placement.tied is None:
            return []
        rows = np.flatnonzero(np.unpackbits(placement.tied, count=len(self.nodes)))
        return sorted(self.nodes[row] for row in rows.tolist())

    def to_json(self) -> dict[str, Any]:
        """`{"profiles": {...}, "sequence": [...]}`, the shape of a golden, as a `stowplan.io/v1alpha1 Simulation`."""
        sequence = [self._placement_json(placement) for placement in self.placements]
        return {"apiVersion": API_VERSION, "kind": "Simulation", "profiles": profiles_json(self.policy), "sequence": sequence}

    def _placement_json(self, placement: Placement) -> dict[str, Any]:
        answer: dict[str, Any] = {"pod": placement.pod.key}
        members = {
            "skipped": placement.skipped,
            "node": placement.node,
            "score": placement.score,
            "best": self.best(placement),
            "feasible": placement.feasible,
            "message": placement.message,
            "preemption": placement.preemption and placement.preemption.to_json(),
        }
        return answer | {name: value for name, value in members.items() if value}


def simulate(policy: Policy, cluster: Store, progress: Callable[[int, int], None] | None = None) -> Simulation:
    """Place every pending pod; ties go to the first node by name. The cluster is as before when this returns.

    `progress` is called with (pods done, pods in all) after each pod.
    """
    queue = in_order(policy, cluster.pending.values())
    names = tuple(node.name for node in cluster.nodes)
    waiting, before = list(cluster.pending.values()), amounts(cluster)
    chooser = Chooser(policy, cluster)
    placements: list[Placement] = []
    try:
        with collector_off():
            for done, pod in enumerate(queue, 1):
                placements.append(_place(chooser, cluster, names, pod))
                if progress is not None:
                    progress(done, len(queue))
        after = amounts(cluster)
    finally:
        for placement in reversed(placements):  # a fact may have been replaced more than once
            if placement.node is not None:
                cluster.forget(placement.pod)
        cluster.requeue(waiting)
    view = Cluster(cluster)
    allocatable = {name: view[ALLOCATABLE][name].copy() for name in before}
    return Simulation(policy, names, tuple(placements), Use(allocatable, before, after))


def _place(chooser: Chooser, store: Store, names: tuple[str, ...], pod: Pod) -> Placement:
    choice: Choice = chooser.choose(pod)
    node = None if choice.row is None else names[choice.row]
    if node is not None:
        store.assume(pod, node, choice.facts)
    return Placement(
        pod, choice.skipped, node, choice.total, choice.feasible, choice.message, choice.preemption, _packed(choice.tied)
    )


def _packed(tied: Mask | None) -> NDArray[np.uint8] | None:
    return None if tied is None else np.packbits(tied)


def amounts(store: Store) -> dict[str, Numbers]:
    """Requested amounts by resource, and the number of pods, over the nodes."""
    view = Cluster(store)
    resources = [name for name in view[ALLOCATABLE].names if name != "pods"]
    return {name: view[REQUESTED][name].copy() for name in resources} | {"pods": view[PODS]["pods"].copy()}
