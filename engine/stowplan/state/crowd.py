"""The pods of every node in one array: the kind of each pod, node after node, in the order in which they sit."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stowplan.objects import Node, Pod
from stowplan.state.changes import Kinds
from stowplan.state.columns import Numbers, Rows, Storage

if TYPE_CHECKING:
    from stowplan.state.cluster import Cluster
    from stowplan.state.store import Store

NARROW = 8


class CrowdStorage(Storage["Crowd"]):
    """A table of kinds by row and seat; rows that changed are written anew when somebody asks."""

    pods_matter = True

    def __init__(self, store: Store) -> None:
        self._store = store
        self.kinds = Kinds()
        self._shape(store.capacity, NARROW)

    def _shape(self, capacity: int, width: int) -> None:
        self.codes: NDArray[np.int32] = np.zeros((capacity, width), dtype=np.int32)
        self.counts: Numbers = np.zeros(capacity, dtype=np.int64)
        self._dirty = set(range(len(self._store.nodes)))

    def grow(self, capacity: int) -> None:
        self._shape(capacity, self.codes.shape[1])

    def set_node(self, row: int, node: Node) -> None:  # noqa: ARG002
        self._dirty.add(row)

    def move(self, source: int, target: int) -> None:
        self._dirty |= {source, target}

    def count_pod(self, row: int, pod: Pod, sign: int) -> None:  # noqa: ARG002 - the seat already shows the change
        self._dirty.add(row)

    def refresh(self) -> None:
        """Write the rows that changed."""
        seats, code = self._store.seats, self.kinds.code
        widest = max((len(seats[row]) for row in self._dirty if row < len(seats)), default=0)
        if widest > self.codes.shape[1]:
            self._shape(len(self.codes), max(widest, 2 * self.codes.shape[1]))
        for row in self._dirty:
            pods = seats[row].values() if row < len(seats) else ()
            self.counts[row] = len(pods)
            if pods:
                self.codes[row, : len(pods)] = [code(pod) for pod in pods]
        self._dirty = set()

    def view(self, cluster: Cluster) -> Crowd:
        self.refresh()
        return Crowd(self, cluster.asked, self._store)


class Crowd:
    """The pods of the asked rows, suppositions left aside; valid until the store changes."""

    def __init__(self, storage: CrowdStorage, rows: Rows, store: Store) -> None:
        self._storage, self._rows, self._store = storage, rows, store
        self.kinds = storage.kinds

    @cached_property
    def offsets(self) -> Numbers:
        """Where the pods of each asked row begin, and where the last ones end."""
        return np.concatenate(([0], np.cumsum(self._storage.counts[self._rows])))

    @cached_property
    def codes(self) -> NDArray[np.int32]:
        """The kind of each pod."""
        codes = self._storage.codes[self._rows]
        taken = np.arange(codes.shape[1]) < self._storage.counts[self._rows][:, None]
        found: NDArray[np.int32] = codes[taken]
        return found

    def pod(self, index: int) -> Pod:
        """One of the pods."""
        place = int(np.searchsorted(self.offsets, index, side="right")) - 1
        pods = list(self._store.seats[int(self._rows[place])].values())
        return pods[index - int(self.offsets[place])]
