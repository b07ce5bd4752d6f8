"""Columns of numbers that follow from others of the same row, kept for all rows and computed anew where a row has changed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stowplan.objects import Node
from stowplan.state.cluster import Cluster
from stowplan.state.columns import Numbers, Storage
from stowplan.state.store import Store

BLOCK = 8192
"""Rows that are computed at once: temporary arrays stay in the processor's cache."""


class Derived:
    """View: the numbers, brought up to date when asked for."""

    __slots__ = ("_cluster", "_storage")

    def __init__(self, storage: DerivedStorage, cluster: Cluster) -> None:
        self._storage, self._cluster = storage, cluster

    def kept(self) -> Numbers:
        """int64 over the asked rows, not to be written to; nothing may be supposed of them."""
        assert self._cluster.changes is None
        return self._cluster.gather(self._storage.current())

    def computed(self) -> Numbers:
        """The same, computed for this view alone."""
        return self._storage.compute(self._cluster)


class DerivedStorage(Storage[Derived]):
    """Follows the store's log when asked, so that rows that change often between two questions cost no more."""

    def __init__(self, store: Store, compute: Callable[[Cluster], Numbers]) -> None:
        """`compute` gives a number for each row of a view, int64, and looks at nothing but the row."""
        self._store, self.compute = store, compute
        self._values: Numbers = np.zeros(0, dtype=np.int64)
        self._stamp = -1
        """epoch of the values; -1 where there are none"""
        self._place = 0

    def grow(self, capacity: int) -> None:
        """Nothing: the epoch changes too."""

    def set_node(self, row: int, node: Node) -> None:
        """Nothing, for the same reason."""

    def current(self) -> Numbers:
        """The numbers of all rows."""
        store, size = self._store, len(self._store.nodes)
        if self._stamp == store.epoch and self._place == len(store.log):
            return self._values
        rows = store.log.since(self._place, size // 3) if self._stamp == store.epoch else None
        if rows is not None:
            self._values[rows] = self.compute(Cluster(store, rows))
        else:
            self._values = np.empty(store.capacity, dtype=np.int64)
            for start in range(0, size, BLOCK):
                block = range(start, min(start + BLOCK, size))
                self._values[block.start : block.stop] = self.compute(Cluster(store, block))
        self._stamp, self._place = store.epoch, len(store.log)
        return self._values

    def view(self, cluster: Cluster) -> Derived:
        return Derived(self, cluster)
