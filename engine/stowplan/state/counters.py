"""Counters: how many pods of some kind sit on each node, and in each topology domain, kept incrementally."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import TYPE_CHECKING, Protocol

import numpy as np

from stowplan.objects import Pod
from stowplan.state.changelog import ChangeLog
from stowplan.state.columns import Mask, Numbers, Rows, widened

if TYPE_CHECKING:
    from stowplan.state.cluster import Cluster
    from stowplan.state.feasible import Feasible
    from stowplan.state.store import Store


MOVES_KEPT = 1 << 9
"""Changed rows that a counter keeps: there may be thousands of counters."""


class Among(Protocol):
    """Which nodes count: hashable, and a mask over the rows of a view that only node events change."""

    def __hash__(self) -> int: ...

    def mask(self, cluster: Cluster) -> Mask:
        """Rows that take part."""


class Counter(ABC):
    """Number of pods per row of the store, by a rule of the subclass."""

    pods_matter = True

    def __init__(self, store: Store) -> None:
        self.store = store
        self.counts: Numbers = np.zeros(store.capacity, dtype=np.int64)
        self._moves: ChangeLog | None = None
        self._tables: dict[Hashable, DomainTable] = {}

    @abstractmethod
    def weight(self, pod: Pod) -> int:
        """How often a pod counts that is thought to come or go."""

    def current(self) -> Numbers:
        """The own count of every row, as what tells rows apart."""
        return self.counts

    @property
    def moves(self) -> ChangeLog:
        """Rows whose count has changed since this was first asked for."""
        if self._moves is None:
            self._moves = ChangeLog(MOVES_KEPT)
        return self._moves

    def add(self, row: int, amount: int) -> None:
        """The count of a row changed."""
        self.counts[row] += amount
        if self._moves is not None:
            self._moves.append(row)
        for table in self._tables.values():
            table.add(row, amount)

    def grow(self, capacity: int) -> None:
        self.counts = widened(self.counts, capacity)

    def move(self, source: int, target: int) -> None:
        self.counts[target], self.counts[source] = self.counts[source], 0

    def table(self, key: str, among: Among | None) -> DomainTable:
        """Counts by the values of a label, over the nodes that take part; current."""
        found = self._tables.get((key, among))
        if found is None:
            found = self._tables[key, among] = DomainTable(self, key, among)
        if found.epoch != self.store.epoch:
            found.rebuild()
        return found


class Occupied:
    """Whether some domain holds a counted pod."""

    __slots__ = ("total",)

    def __init__(self) -> None:
        self.total = 0

    @property
    def version(self) -> int:
        """1 if there is one."""
        return int(self.total > 0)


class Holders:
    """Which domains hold a counted pod."""

    __slots__ = ("version",)

    def __init__(self) -> None:
        self.version = 0


class DomainTable:
    """Sums of a counter by topology domain."""

    pods_matter = True

    def __init__(self, counter: Counter, key: str, among: Among | None) -> None:
        self._counter, self.key, self._among = counter, key, among
        self.version = 0
        self.epoch = -1
        self.occupied = Occupied()
        self.holders = Holders()

    def rebuild(self) -> None:
        """Sum afresh: nodes have changed."""
        from stowplan.state.catalogue import domain_of  # noqa: PLC0415 - the catalogue lists columns made here
        from stowplan.state.cluster import Cluster  # noqa: PLC0415

        store = self._counter.store
        size = len(store.nodes)
        cluster = Cluster(store)
        labels = cluster[domain_of(self.key)]
        self.codes: Rows = np.where(labels.present(), labels.codes, -1)
        self.known: Mask = self.codes >= 0
        self.complete = bool(self.known.all())
        self.takes_part: Mask = self.known
        if self._among is not None:
            self.takes_part = self.known & self._among.mask(cluster)
        self.source, self.values = labels.source, labels.values
        rows = np.flatnonzero(self.takes_part)
        here = np.bincount(self.codes[rows], minlength=len(labels.values))
        self.present: Mask = here > 0
        self.places: Rows = self.present.nonzero()[0]
        self.sums = np.zeros(len(labels.values) + 1, dtype=np.int64)
        """by domain; the last number, which stands for rows without the label, stays 0"""
        np.add.at(self.sums, self.codes[rows], self._counter.counts[rows])
        self.occupied.total = int(self.sums.sum())
        self.own: Numbers | None = None
        if size and not (np.bincount(self.codes[self.codes >= 0], minlength=1) > 1).any():
            self.own = np.where(self.takes_part, self._counter.counts[:size], np.where(self.codes < 0, -2, -1))
        self.epoch = store.epoch
        self.version += 1
        self.holders.version += 1

    @property
    def moves(self) -> ChangeLog:
        """Rows whose count has changed since this was first asked for."""
        return self._counter.moves

    @property
    def unique(self) -> bool:
        """Whether every node is a domain of its own."""
        return self.own is not None

    def current(self) -> Numbers:
        """What tells rows apart where every node is a domain of its own: the own count, -1 not taking part, -2 no label."""
        assert self.own is not None
        return self.own

    def add(self, row: int, amount: int) -> None:
        """The counter of a row changed."""
        if self.epoch != self._counter.store.epoch:
            return
        if self.takes_part[row]:
            code = self.codes[row]
            total = self.sums[code] + amount
            self.sums[code] = total
            if total in (0, amount):
                self.holders.version += 1
            self.occupied.total += amount
            self.version += 1
            if self.own is not None:
                self.own[row] += amount


class Count:
    """View of a counter over the asked rows."""

    __slots__ = ("_cluster", "_counter")

    def __init__(self, counter: Counter, cluster: Cluster) -> None:
        self._counter, self._cluster = counter, cluster

    def change(self) -> Numbers | None:
        """Change of the count of each asked row by the suppositions; None where there are none."""
        changes = self._cluster.changes
        return None if changes is None else changes.weigh(self._counter, self._counter.weight)

    def by(self, key: str, among: Among | None = None) -> Domains:
        """Counts by the values of a label among the nodes that take part."""
        table = self._counter.table(key, among)
        watch = self._cluster.watch
        if watch is not None:
            # where the own count is part of what tells rows apart, only answers about all rows depend on others
            watch.tells_apart(table if table.unique else table.source)
        return Domains(self, table, self._cluster)

    def on(self, rows: Rows) -> Numbers:
        """Counts of some rows of the store, suppositions left aside."""
        return self._counter.counts[rows]

    def here(self) -> Numbers:
        """Counts of the asked rows themselves."""
        if self._cluster.watch is not None:
            self._cluster.watch.tells_apart(self._counter)
        counts, change = self._cluster.gather(self._counter.counts), self.change()
        return counts if change is None else counts + change


class Domains:
    """View of a counter's domains. With suppositions each asked row is a world of its own."""

    __slots__ = ("_cluster", "_count", "_table")

    def __init__(self, count: Count, table: DomainTable, cluster: Cluster) -> None:
        self._count, self._table, self._cluster = count, table, cluster

    @property
    def known(self) -> Mask:
        """Rows that carry the label."""
        return self._cluster.gather(self._table.known)

    @property
    def complete(self) -> bool:
        """Whether every node of the cluster carries the label."""
        return self._table.complete

    @property
    def number(self) -> int:
        """Number of domains among the nodes that take part."""
        return len(self._table.places)

    @property
    def any(self) -> bool:
        """Whether some domain holds a counted pod, in the world of any asked row."""
        if self._cluster.watch is not None:
            self._cluster.watch.depends(self._table.occupied)
        change = self._change()
        return self._table.occupied.total > 0 or (change is not None and bool((change > 0).any()))

    @property
    def anywhere(self) -> Mask:
        """Whether some domain holds a counted pod, in the world of each asked row."""
        if self._cluster.watch is not None:
            self._cluster.watch.depends(self._table.occupied)
        total, change = self._table.occupied.total, self._change()
        return np.full(self._cluster.size, total > 0) if change is None else total + change > 0

    def _change(self) -> Numbers | None:
        change = self._count.change()
        return None if change is None else np.where(self._table.takes_part[self._cluster.asked], change, 0)

    @property
    def at(self) -> Numbers:
        """Count in the domain of each asked row; 0 where the row has none."""
        if self._cluster.watch is not None and not self._table.unique:
            self._cluster.watch.depends(self._table)
        return self._at()

    @property
    def holding(self) -> Mask:
        """Whether the domain of each asked row holds a counted pod."""
        if self._cluster.watch is not None and not self._table.unique:
            self._cluster.watch.depends(self._table.holders)
        return self._at() > 0

    def _at(self) -> Numbers:
        found: Numbers = self._table.sums[self._cluster.gather(self._table.codes)]
        change = self._change()
        return found if change is None else found + change

    @property
    def least(self) -> Numbers:
        """Smallest count of a domain, per asked row (they differ only with suppositions); 0 if there is no domain."""
        table, change = self._table, self._change()
        if self._cluster.watch is not None:
            self._cluster.watch.depends(table)
        if not len(table.places):
            return np.zeros(self._cluster.size, dtype=np.int64)
        sums = table.sums[table.places]
        lowest = sums.argmin()
        smallest = int(sums[lowest])
        if change is None:
            return np.full(self._cluster.size, smallest, dtype=np.int64)
        alone = (sums == smallest).sum() == 1
        second = int(np.partition(sums, 1)[1]) if len(sums) > 1 else None
        codes = self._cluster.gather(table.codes)
        own = table.sums[codes] + change
        if second is None:
            return np.where(change != 0, own, smallest)
        others = np.where(alone & (codes == table.places[lowest]), second, smallest)
        return np.where(change != 0, np.minimum(own, others), smallest)

    # What explanations show; suppositions are left aside

    @property
    def kind(self) -> str:
        """What people call the domains: the label's key without its prefix."""
        return self._table.key.rpartition("/")[2]

    @property
    def names(self) -> list[str]:
        """Domain of each asked row that has one."""
        codes = self._cluster.gather(self._table.codes)
        return [self._table.values[code] or "" for code in codes[codes >= 0].tolist()]

    def held(self) -> dict[str, int]:
        """Count of every domain among the nodes that take part, by name."""
        found = {self._table.values[code] or "": int(self._table.sums[code]) for code in self._table.places.tolist()}
        return dict(sorted(found.items()))

    def rows(self, name: str) -> Rows:
        """Rows of the store in a domain, of the nodes that take part."""
        here: Mask = (self._table.codes == self._table.source.index[name]) & self._table.takes_part
        return here.nonzero()[0]

    def holders(self, name: str) -> Rows:
        """Those of the `rows` on which counted pods sit."""
        rows = self.rows(name)
        return rows[self._count.on(rows) > 0]

    def left_out(self) -> dict[str, Rows]:
        """Rows of the store by domain, of the domains of which no node takes part."""
        codes = np.unique(self._table.codes[self._table.codes >= 0])
        absent = [int(code) for code in codes.tolist() if not self._table.present[code]]
        return dict(sorted((self._table.values[code] or "", (self._table.codes == code).nonzero()[0]) for code in absent))

    def distinct(self, feasible: Feasible, ignored: Mask | None) -> int:
        """Number of domains on feasible rows that are not ignored; rows without the label count as one more domain."""
        codes = self._cluster.gather(self._table.codes)
        if self._table.unique:
            weights = feasible.counted() if ignored is None else feasible.counted() * ~ignored
            return int(weights[codes >= 0].sum()) + int((weights[codes < 0] > 0).any())
        taking_part = feasible.weights > 0
        if ignored is not None:
            taking_part &= ~ignored
        return int(np.count_nonzero(np.bincount(codes[taking_part] + 1)))
