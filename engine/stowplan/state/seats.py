"""A column that tells rows apart by the pods on them: any pod that comes or goes makes a row different from all others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stowplan.objects import Pod
from stowplan.state.columns import Numbers, Storage, widened

if TYPE_CHECKING:
    from stowplan.state.cluster import Cluster
    from stowplan.state.store import Store


class Seats:
    """View of the numbers of the asked rows: equal numbers, equal pods."""

    __slots__ = ("codes",)

    def __init__(self, codes: Numbers) -> None:
        self.codes = codes


class SeatStorage(Storage[Seats]):
    """A number for each row, new with each of its pods; 0 for rows that never had one."""

    pods_matter = True

    def __init__(self, store: Store) -> None:
        self._stamps: Numbers = np.zeros(store.capacity, dtype=np.int64)
        self._last = 0
        for row, pods in enumerate(store.seats):
            if pods:
                self._stamp(row)

    def _stamp(self, row: int) -> None:
        self._last += 1
        self._stamps[row] = self._last

    def current(self) -> Numbers:
        """The number of every row of the store, as it stands."""
        return self._stamps

    def grow(self, capacity: int) -> None:
        self._stamps = widened(self._stamps, capacity)

    def move(self, source: int, target: int) -> None:
        self._stamps[target] = self._stamps[source]
        self._stamps[source] = 0

    def count_pod(self, row: int, pod: Pod, sign: int) -> None:  # noqa: ARG002
        self._stamp(row)

    def view(self, cluster: Cluster) -> Seats:
        if cluster.watch is not None:
            cluster.watch.tells_apart(self)
        return Seats(cluster.gather(self._stamps))
