"""Columns of amounts by resource: what nodes have, and sums over the pods on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stowplan.objects import Amounts, Node, Pod
from stowplan.state.columns import Numbers, Rows, Storage

if TYPE_CHECKING:
    from stowplan.state.cluster import Cluster
    from stowplan.state.store import Store

Floats = NDArray[np.float64]
_BEYOND = 1 << 63


def int64(number: int) -> int:
    """A sum as int64 holds it: one beyond its ends wraps around, as in Go, so that taking away undoes adding."""
    return number if -_BEYOND <= number < _BEYOND else (number + _BEYOND) % (2 * _BEYOND) - _BEYOND


class Amount:
    """View of amounts by resource: `amount["cpu"]` is int64 over the asked rows (zeros for a name no node knows)."""

    __slots__ = ("_block", "_cluster", "_derive", "_storage")

    def __init__(self, storage: AmountBase, cluster: Cluster, derive: Callable[[Pod], Amounts] | None = None) -> None:
        """`derive`: what a pod adds, for sums over pods."""
        self._storage, self._cluster = storage, cluster
        self._derive = None if cluster.changes is None else derive
        self._block: Numbers | None = None

    def matrix(self, names: tuple[str, ...]) -> Numbers:
        """Amounts of several resources, resources x asked rows; not to be written to."""
        places = self._storage.places(names)
        if self._derive is not None or places is None:
            return np.array([self[name] for name in names], dtype=np.int64).reshape(len(names), self._cluster.size)
        return self._gathered()[places]

    def __getitem__(self, resource: str) -> Numbers:
        place = self._storage.index.get(resource)
        found = np.zeros(self._cluster.size, dtype=np.int64) if place is None else self._gathered()[place]
        derive, changes = self._derive, self._cluster.changes
        if derive is None or changes is None:
            return found
        return found + changes.weigh((derive, resource), lambda pod: derive(pod).get(resource))

    def _gathered(self) -> Numbers:
        found = self._block
        if found is None:
            found = self._block = self._cluster.gather_columns(self._storage.matrix)
        return found

    def apart(self, resource: str) -> Numbers:
        """The amounts as something that tells rows apart, for answers that reach beyond the row."""
        if self._cluster.watch is not None:
            self._cluster.watch.tells_apart(AmountSource(self._storage, resource))
        return self[resource]

    @property
    def names(self) -> list[str]:
        """Resources that some node has or some pod asked for, sorted."""
        return sorted(self._storage.index)


@dataclass(frozen=True, slots=True)
class AmountSource:
    """One resource of a column of amounts, over all rows."""

    storage: AmountBase
    resource: str

    @property
    def pods_matter(self) -> bool:
        """Whether pods that come and go change it."""
        return self.storage.pods_matter

    @property
    def moves(self) -> None:
        """Nobody keeps account of the rows that change."""

    def current(self) -> Numbers:
        """The amount of every row, as it stands."""
        return self.storage.line(self.resource)


PLAIN = 1 << 46
"""For 0 <= a <= b < PLAIN, floor(a * 100 / b) in float64 is the integer quotient: products stay below 2**53, and quotients of
integers this small differ from a whole number by more than a rounding."""


RESERVED = {"pods": 0, "cpu": 1, "memory": 2}
"""Places of the resources that are mostly asked for together: side by side they are one piece of memory."""


class AmountBase(Storage[Amount]):
    """Amounts of some resources: an int64 matrix, resources x rows, that grows with every resource seen for the first time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.index: dict[str, int] = {}
        """place of each resource that was seen"""
        self.matrix: Numbers = np.zeros((len(RESERVED), store.capacity), dtype=np.int64)
        self.found: dict[tuple[str, ...], slice | Rows | None] = {}
        """answers of `places` so far"""

    def row_for(self, resource: str) -> int:
        """Place of a resource in the matrix, given out on first sight."""
        place = self.index.get(resource)
        if place is None:
            place = self.index[resource] = RESERVED.get(resource, len(self.matrix))
            if place == len(self.matrix):
                self.matrix = np.vstack([self.matrix, np.zeros((1, self.matrix.shape[1]), dtype=np.int64)])
            self.found.clear()
        return place

    def line(self, resource: str) -> Numbers:
        """Amounts of one resource over all rows, zeros where it is not known; not to be written to."""
        place = self.index.get(resource)
        return np.zeros(self.matrix.shape[1], dtype=np.int64) if place is None else self.matrix[place]

    @property
    def nodes(self) -> int:
        """Number of rows that are nodes."""
        return len(self._store.nodes)

    def places(self, names: tuple[str, ...]) -> slice | Rows | None:
        """Where in the matrix several resources stand; None where one of them is not known."""
        found = self.found.get(names)
        if found is None:
            found = self.found[names] = self._find(names)
        return found

    def _find(self, names: tuple[str, ...]) -> slice | Rows | None:
        if not all(name in self.index for name in names):
            return None
        found = [self.index[name] for name in names]
        first = found[0] if found else 0
        if found == list(range(first, first + len(found))):
            return slice(first, first + len(found))
        return np.array(found, dtype=np.intp)

    def grow(self, capacity: int) -> None:
        wider = np.zeros((len(self.matrix), capacity), dtype=np.int64)
        wider[:, : self.matrix.shape[1]] = self.matrix
        self.matrix = wider


class AmountStorage(AmountBase):
    """Amounts of the node itself."""

    def __init__(self, store: Store, derive: Callable[[Node], Amounts]) -> None:
        super().__init__(store)
        self._derive = derive
        for row, node in enumerate(store.nodes):
            self._write(row, derive(node))

    def _write(self, row: int, amounts: Amounts) -> None:
        for name, amount in amounts.items():
            place = self.row_for(name)  # may replace the matrix
            self.matrix[place, row] = amount

    def set_node(self, row: int, node: Node) -> None:
        self.matrix[:, row] = 0
        self._write(row, self._derive(node))

    def move(self, source: int, target: int) -> None:
        self.matrix[:, target] = self.matrix[:, source]

    def view(self, cluster: Cluster) -> Amount:
        return Amount(self, cluster)


class SumStorage(AmountBase):
    """Sum over the pods of a node."""

    pods_matter = True

    def __init__(self, store: Store, derive: Callable[[Pod], Amounts]) -> None:
        super().__init__(store)
        self.derive = derive
        self.excessive = False
        """whether some sum has ever left the range in which float64 is exact"""
        totals: dict[str, list[int]] = {}
        for row, pods in enumerate(store.seats):
            for pod in pods.values():
                for name, amount in derive(pod).items():
                    total = totals.get(name)
                    if total is None:
                        total = totals[name] = [0] * store.capacity
                    total[row] += amount
        for name, total in totals.items():
            place = self.row_for(name)
            try:
                self.matrix[place] = total
            except OverflowError:
                self.matrix[place] = [int64(amount) for amount in total]
        self.excessive = bool(((self.matrix < 0) | (self.matrix >= PLAIN)).any())

    def move(self, source: int, target: int) -> None:
        self.matrix[:, target] = self.matrix[:, source]
        self.matrix[:, source] = 0

    def count_pod(self, row: int, pod: Pod, sign: int) -> None:
        for name, amount in self.derive(pod).items():
            place = self.index.get(name)
            if place is None:
                place = self.row_for(name)
            total = self.matrix.item(place, row) + sign * amount
            if not 0 <= total < PLAIN:
                self.excessive, total = True, int64(total)
            self.matrix[place, row] = total

    def view(self, cluster: Cluster) -> Amount:
        return Amount(self, cluster, self.derive)
