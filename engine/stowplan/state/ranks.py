"""Scheduled pods of each node in order of importance: what preemption looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stowplan.objects import Node, Pod
from stowplan.state.changes import Kinds
from stowplan.state.columns import Numbers, Rows, Storage

if TYPE_CHECKING:
    from stowplan.state.cluster import Cluster
    from stowplan.state.store import Store

LATEST = float("inf")


def started(pod: Pod) -> float:
    """Start time; a pod that has not started counts as starting now."""
    return LATEST if pod.started is None else pod.started


def importance(pod: Pod) -> tuple[int, float]:
    """Sort key, most important first: higher priority, then earlier start (upstream: util.MoreImportantPod)."""
    return -pod.spec.priority, started(pod)


class RankStorage(Storage["Ranks"]):
    """A table of pods by row and rank: kind, priority and start, with the pods themselves beside it."""

    pods_matter = True

    def __init__(self, store: Store) -> None:
        self._store = store
        self.kinds = Kinds()
        self.pods: list[list[Pod]] = []
        self.grow(store.capacity)
        self._dirty = set(range(len(store.nodes)))

    def grow(self, capacity: int) -> None:
        self.pods += [[] for _ in range(capacity - len(self.pods))]
        self._shape(capacity, self.codes.shape[1] if hasattr(self, "codes") else 4)

    def _shape(self, capacity: int, width: int) -> None:
        self.codes: NDArray[np.intp] = np.zeros((capacity, width), dtype=np.intp)
        self.priorities: Numbers = np.zeros((capacity, width), dtype=np.int64)
        self.starts: NDArray[np.float64] = np.zeros((capacity, width))
        self.counts: Numbers = np.zeros(capacity, dtype=np.int64)
        self._dirty = set(range(len(self._store.nodes)))

    def set_node(self, row: int, node: Node) -> None:  # noqa: ARG002
        self._dirty.add(row)

    def move(self, source: int, target: int) -> None:
        self._dirty |= {source, target}

    def count_pod(self, row: int, pod: Pod, sign: int) -> None:  # noqa: ARG002 - the seat already shows the change
        self._dirty.add(row)

    def refresh(self) -> None:
        """Rank the pods of the rows that changed."""
        seats = self._store.seats
        widest = max((len(seats[row]) for row in self._dirty if row < len(seats)), default=0)
        if widest > self.codes.shape[1]:
            self._shape(len(self.pods), max(widest, 2 * self.codes.shape[1]))
        for row in self._dirty:
            self._rank(row, sorted(seats[row].values(), key=importance) if row < len(seats) else [])
        self._dirty = set()

    def _rank(self, row: int, pods: list[Pod]) -> None:
        self.pods[row] = pods
        self.counts[row] = len(pods)
        self.codes[row, : len(pods)] = [self.kinds.code(pod) for pod in pods]
        self.priorities[row, : len(pods)] = [pod.spec.priority for pod in pods]
        self.starts[row, : len(pods)] = [started(pod) for pod in pods]

    def view(self, cluster: Cluster) -> Ranks:
        self.refresh()
        return Ranks(self, cluster.asked)


class Ranks:
    """View of the ranked pods of some rows; valid until the store changes. Matrices are asked rows x ranks, padded."""

    __slots__ = ("codes", "counts", "kinds", "pods", "priorities", "starts")

    def __init__(self, storage: RankStorage, rows: Rows) -> None:
        self.kinds = storage.kinds
        self.codes, self.priorities, self.starts = storage.codes[rows], storage.priorities[rows], storage.starts[rows]
        self.counts = storage.counts[rows]
        self.pods = storage.pods
        """by row of the store"""
