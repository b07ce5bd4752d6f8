"""What the nodes of a topology domain have and have given out together, kept incrementally."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from stowplan.objects import Pod
from stowplan.state.columns import Numbers, Rows, Storage

if TYPE_CHECKING:
    from stowplan.state.cluster import Cluster
    from stowplan.state.store import Store


class AreaStorage(Storage["Areas"]):
    """Sums by the values of labels, a table for each label that somebody asked about."""

    pods_matter = True

    def __init__(self, store: Store) -> None:
        self.store = store
        self._tables: dict[str, AreaTable] = {}

    def grow(self, capacity: int) -> None:
        """Tables are as long as there are domains."""

    def count_pod(self, row: int, pod: Pod, sign: int) -> None:
        for table in self._tables.values():
            table.add(row, pod, sign)

    def table(self, key: str) -> AreaTable:
        """Sums by the values of one label; current."""
        found = self._tables.get(key)
        if found is None:
            found = self._tables[key] = AreaTable(self.store, key)
        if found.epoch != self.store.epoch:
            found.rebuild()
        return found

    def view(self, cluster: Cluster) -> Areas:
        return Areas(self, cluster)


class AreaTable:
    """Sums over the nodes of each domain of one label; "" is a label that all nodes share."""

    def __init__(self, store: Store, key: str) -> None:
        self._store, self._key = store, key
        self.version = 0
        self.epoch = -1

    def rebuild(self) -> None:
        """Sum afresh: nodes have changed."""
        from stowplan.state.catalogue import ALLOCATABLE, REQUESTED, domain_of  # noqa: PLC0415 - it lists this column
        from stowplan.state.cluster import Cluster  # noqa: PLC0415

        cluster = Cluster(self._store)
        labels = cluster[domain_of(self._key)]
        self.source, self.values = labels.source, labels.values
        self.codes: Rows = np.where(labels.present(), labels.codes, -1)
        rows = (self.codes >= 0).nonzero()[0]
        codes, size = self.codes[rows], len(labels.values)
        self.nodes: Numbers = np.bincount(codes, minlength=size).astype(np.int64)
        allocatable, requested = cluster[ALLOCATABLE], cluster[REQUESTED]
        self.allocatable = {name: _sums(allocatable[name][rows], codes, size) for name in allocatable.names}
        self.requested = {name: _sums(requested[name][rows], codes, size) for name in requested.names}
        self.epoch = self._store.epoch
        self.version += 1

    def add(self, row: int, pod: Pod, sign: int) -> None:
        """A pod came to a row or left it."""
        if self.epoch != self._store.epoch or self.codes[row] < 0:
            return
        for name, amount in pod.requested.items():
            array = self.requested.get(name)
            if array is None:
                array = self.requested[name] = np.zeros(len(self.nodes), dtype=np.int64)
            array[self.codes[row]] += sign * amount
        self.version += 1


def _sums(amounts: Numbers, codes: Rows, size: int) -> Numbers:
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, codes, amounts)
    return total


class Areas:
    """View of the sums."""

    __slots__ = ("_cluster", "_storage")

    def __init__(self, storage: AreaStorage, cluster: Cluster) -> None:
        self._storage, self._cluster = storage, cluster

    def by(self, key: str) -> Area:
        """Sums by the values of a label; "" stands for the whole cluster."""
        table = self._storage.table(key)
        if self._cluster.watch is not None:
            self._cluster.watch.depends(table)
            self._cluster.watch.tells_apart(table.source)
        return Area(table, self._cluster)


class Area:
    """The domains of the asked rows; a row without the label is in none."""

    __slots__ = ("_cluster", "_table", "codes")

    def __init__(self, table: AreaTable, cluster: Cluster) -> None:
        self._table, self._cluster = table, cluster
        self.codes: Rows = cluster.gather(table.codes)

    def value(self, place: int) -> str | None:
        """The label's value at an asked row."""
        code = int(self.codes[place])
        return self._table.values[code] if code >= 0 else None

    def nodes(self, place: int) -> int:
        """Number of nodes in the domain of an asked row."""
        code = int(self.codes[place])
        return int(self._table.nodes[code]) if code >= 0 else 0

    def numbers(self, which: str, resource: str = "") -> Numbers:
        """`nodes`, or `allocatable` or `requested` of a resource, for each asked row; suppositions left aside."""
        sums = self._table.nodes if which == "nodes" else getattr(self._table, which).get(resource)
        if sums is None:
            return np.zeros(len(self.codes), dtype=np.int64)
        return np.where(self.codes >= 0, sums[self.codes], 0) if len(sums) else np.zeros(len(self.codes), dtype=np.int64)

    def allocatable(self, place: int) -> dict[str, int]:
        """What they have together, by resource in scheduler units."""
        return self._at(self._table.allocatable, place)

    def requested(self, place: int) -> dict[str, int]:
        """What they have given out, in the world of that row."""
        found = self._at(self._table.requested, place)
        if self._cluster.changes is not None and self.codes[place] >= 0:
            world = self._cluster.changes.world(place)
            _count(found, world.added, 1)
            _count(found, world.removed, -1)
        return found

    def _at(self, sums: dict[str, Numbers], place: int) -> dict[str, int]:
        code = int(self.codes[place])
        return {name: int(array[code]) for name, array in sums.items()} if code >= 0 else {}


def _count(amounts: dict[str, int], pods: Iterable[Pod], sign: int) -> None:
    for pod in pods:
        for name, amount in pod.requested.items():
            amounts[name] = amounts.get(name, 0) + sign * amount
