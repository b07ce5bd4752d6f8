"""The read view of a store: some rows, possibly with pods supposed to have come or gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from stowplan.objects import Node, OtherFact, Pod
from stowplan.state.changelog import ChangeLog
from stowplan.state.changes import Changes, Supposition, changes_of
from stowplan.state.columns import Column, Numbers, Rows
from stowplan.state.store import Store

V = TypeVar("V")
G = TypeVar("G", bound=np.generic)
F = TypeVar("F", bound=OtherFact)


class Versioned(Protocol):
    """Something whose answers change when its version does."""

    @property
    def version(self) -> int: ...


class CodeSource(Protocol):
    """A column that tells rows apart: equal codes, equal answers. `pods_matter`: pods that come and go change codes."""

    @property
    def pods_matter(self) -> bool: ...

    @property
    def moves(self) -> ChangeLog | None:
        """Rows whose code pods may have changed, from now on; None where nobody keeps account."""

    def current(self) -> Numbers:
        """Code of every row of the store, as it stands."""


class Census:
    """Grows with every change of the numbers of rows that groups of rows stand for."""

    __slots__ = ("version",)

    def __init__(self) -> None:
        self.version = 0


class Watch:
    """What one answer that looks beyond a row has touched: what tells rows apart for it, and what may change it."""

    __slots__ = ("_census", "_seen", "codes")

    def __init__(self, codes: dict[CodeSource, None], census: Versioned) -> None:
        """`codes` collects everything ever touched that tells rows apart, in order of appearance; watches may share it."""
        self.codes, self._census = codes, census
        self._seen: dict[Versioned, int] = {}

    def restart(self) -> None:
        """The answer is about to be computed afresh."""
        self._seen.clear()

    def depends(self, thing: Versioned) -> None:
        """The answer depends on this thing as it is now."""
        self._seen[thing] = thing.version

    def tells_apart(self, source: CodeSource) -> None:
        """The answer differs between rows of different codes."""
        self.codes.setdefault(source)

    def counts_rows(self) -> None:
        """The answer depends on the number of feasible rows."""
        self.depends(self._census)

    def stale(self) -> bool:
        """Whether anything that the answer depends on has changed since."""
        for thing, version in self._seen.items():  # noqa: SIM110 - a generator would cost more than the comparison
            if thing.version != version:
                return True
        return False


class Cluster:
    """Rows of a store as plugins see them. Cheap to make; valid until the store changes."""

    __slots__ = ("_asked", "_store", "_views", "changes", "size", "watch")

    def __init__(
        self, store: Store, asked: Rows | range | None = None, changes: Changes | None = None, watch: Watch | None = None
    ) -> None:
        self._store, self.changes, self.watch = store, changes, watch
        self._asked: Rows | slice = slice(asked.start, asked.stop) if isinstance(asked, range) else slice(len(store.nodes))
        if asked is not None and not isinstance(asked, range):
            self._asked = asked
        self._views: dict[Column[Any], Any] = {}
        self.size = len(store.nodes) if asked is None else len(asked)

    def __getitem__(self, column: Column[V]) -> V:
        """The column over the asked rows."""
        view: V | None = self._views.get(column)
        if view is None:
            view = self._views[column] = self._store.storage(column).view(self)
        return view

    # Narrowing and supposing

    def rows(self, rows: Rows) -> Cluster:
        """The same cluster, asked about these rows of the store only."""
        return Cluster(self._store, rows)

    def suppose(self, rows: Rows, changes: Sequence[Supposition] | Changes) -> Cluster:
        """The same cluster, asked about these rows, each in a world where its changes have happened."""
        return Cluster(self._store, rows, changes if isinstance(changes, Changes) else changes_of(changes))

    # What columns need

    @property
    def capacity(self) -> int:
        """Length of arrays over all rows."""
        return self._store.capacity

    @property
    def asked(self) -> Rows:
        """Row numbers of the asked rows."""
        return np.arange(self._asked.start or 0, self._asked.stop) if isinstance(self._asked, slice) else self._asked

    def gather(self, array: NDArray[G]) -> NDArray[G]:
        """The asked rows of an array over all rows; may share memory with it."""
        return array[self._asked]

    def gather_columns(self, matrix: NDArray[G]) -> NDArray[G]:
        """The asked rows of a matrix with a column for each row of the store; may share memory with it."""
        return matrix[:, self._asked] if isinstance(self._asked, slice) else matrix.take(self._asked, axis=1)

    def supposed(self) -> list[tuple[int, Pod, int]]:
        """(place among the asked rows, pod, +1 or -1) of every supposition."""
        if self.changes is None:
            return []
        worlds = [(place, self.changes.world(place)) for place in range(self.size)]
        return [
            (place, pod, sign) for place, world in worlds for pods, sign in ((world.removed, -1), (world.added, 1)) for pod in pods
        ]

    def pods_at(self, place: int) -> list[Pod]:
        """Pods of the asked row at a place, suppositions included."""
        pods = self._store.seats[int(self.asked[place])]
        if self.changes is None:
            return list(pods.values())
        world = self.changes.world(place)
        gone = {pod.key for pod in world.removed}
        return [pod for pod in pods.values() if pod.key not in gone] + list(world.added)

    # Facts that are not columns

    @property
    def nodes(self) -> int:
        """Number of nodes in the whole cluster."""
        return len(self._store.nodes)

    @property
    def now(self) -> float:
        """Epoch seconds at which decisions are thought to be made. Only asks depend on it."""
        return self._store.now

    def node(self, row: int) -> Node:
        """The node of a row of the store."""
        return self._store.nodes[row]

    def facts(self, kind: type[F]) -> Mapping[str, F]:
        """Facts of another kind (Namespace, Workload, ...) by key. Only asks are made from them."""
        return self._store.facts.get(kind, {})
