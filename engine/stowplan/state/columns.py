"""Kinds of column: how a fact of nodes or pods becomes arrays that keep themselves current.

A `Column` is a typed key; its `Storage` lives in the store, is made on first use and follows every later change. A view
answers for the rows that a `Cluster` asks about, suppositions included. Rows are numbered by the store; arrays may be
longer than the number of nodes.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from stowplan.objects import Node, OtherFact, Pod, Requirement

if TYPE_CHECKING:
    from stowplan.state.changelog import ChangeLog
    from stowplan.state.cluster import Cluster
    from stowplan.state.store import Store

Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]
Rows = NDArray[np.intp]
V = TypeVar("V")
T = TypeVar("T", bound=Hashable)
G = TypeVar("G", bound=np.generic)


class Reach(enum.Enum):
    """What a change of the column can alter: nothing but node events, its own row, or every row of a topology domain."""

    NODE = "node"
    ROW = "row"
    DOMAIN = "domain"


@dataclass(frozen=True, slots=True, eq=False)
class Column(Generic[V]):
    """Key of a column; equality is identity. `family` is what plugins declare in `reads`; its members differ in `key`."""

    family: str
    reach: Reach
    make: Callable[[Store], Storage[V]]
    key: Hashable = None


class Storage(ABC, Generic[V]):
    """Arrays of one column, kept current by the store."""

    pods_matter = False
    moves: ChangeLog | None = None
    """see `CodeSource`"""

    @abstractmethod
    def grow(self, capacity: int) -> None:
        """Make room for `capacity` rows."""

    def set_node(self, row: int, node: Node) -> None:
        """The node of the row is new or has changed."""

    def differs(self, row: int, node: Node) -> bool:  # noqa: ARG002
        """Whether the column would show something else of a node whose facts are the same, as it reads the raw object."""
        return False

    def move(self, source: int, target: int) -> None:
        """Row `source`, the last, takes the number `target`, whose node is gone; they are equal where the last node goes."""

    def count_pod(self, row: int, pod: Pod, sign: int) -> None:
        """A pod came to (+1) or left (-1) the row."""

    def set_fact(self, old: OtherFact | None, new: OtherFact | None) -> Iterable[int]:  # noqa: ARG002
        """A fact of another kind is new, has changed or is gone. Returns the rows for which the column's answers change."""
        return ()

    @abstractmethod
    def view(self, cluster: Cluster) -> V:
        """Answer for the rows of the view."""


def widened(array: NDArray[G], capacity: int) -> NDArray[G]:
    """Copy of a one-dimensional array with zeros up to `capacity`."""
    wider = np.zeros(capacity, dtype=array.dtype)
    wider[: len(array)] = array
    return wider


class Coded(Generic[T]):
    """View of a dictionary-encoded column: `codes` of the asked rows into `values`."""

    __slots__ = ("_index", "codes", "source", "values")

    def __init__(self, codes: Rows, source: CodedBase[T]) -> None:
        self.codes, self.source = codes, source
        self.values, self._index = source.values, source.index

    def present(self) -> Mask:
        """Mask of the rows that have a value at all."""
        nothing = self._index.get(None)  # type: ignore[arg-type]
        return np.ones(len(self.codes), dtype=np.bool_) if nothing is None else self.codes != nothing

    def where(self, test: Callable[[T], bool]) -> Mask:
        """Mask of the rows whose value passes; `test` runs once per distinct value and must depend on nothing else."""
        return self._gather(test, np.dtype(np.bool_))

    def count(self, number: Callable[[T], int]) -> Numbers:
        """`number` of each row's value, as int64."""
        return self._gather(number, np.dtype(np.int64))

    def meets(self, requirement: Requirement) -> Mask:
        """Mask of the rows whose value (None: label absent) meets a label requirement; wanted values are looked up."""
        if requirement.above is not None or requirement.below is not None:
            return self.where(requirement.accepts)  # type: ignore[arg-type]  # only columns of labels are asked
        table = np.full(len(self.values), requirement.complement, dtype=np.bool_)
        for value in (None, *requirement.values):
            code = self._index.get(value)  # type: ignore[arg-type]
            if code is not None:
                table[code] = requirement.accepts(value)
        return table[self.codes]

    def is_in(self, wanted: Iterable[T]) -> Mask:
        """Mask of the rows whose value is one of `wanted`; values are looked up, not compared one by one."""
        table = np.zeros(len(self.values), dtype=np.bool_)
        for value in wanted:
            code = self._index.get(value)
            if code is not None:
                table[code] = True
        return table[self.codes]

    def _gather(self, function: Callable[[T], object], dtype: np.dtype[G]) -> NDArray[G]:
        if not len(self.codes):
            return np.zeros(0, dtype=dtype)
        if len(self.codes) < len(self.values):
            wanted, inverse = np.unique(self.codes, return_inverse=True)
            table = np.fromiter((function(self.values[code]) for code in wanted.tolist()), dtype, len(wanted))
            return table[inverse]
        return np.fromiter(map(function, self.values), dtype, len(self.values))[self.codes]


class CodedBase(Storage[Coded[T]]):
    """A value per row, dictionary-encoded."""

    def __init__(self, store: Store) -> None:
        self.values: list[T] = []
        self.index: dict[T, int] = {}
        self.codes: Rows = np.zeros(store.capacity, dtype=np.intp)

    def code(self, value: T) -> int:
        """Code of a value, given out on first sight."""
        code = self.index.get(value)
        if code is None:
            code = self.index[value] = len(self.values)
            self.values.append(value)
        return code

    def current(self) -> Rows:
        """Code of every row of the store, as it stands."""
        return self.codes

    def grow(self, capacity: int) -> None:
        self.codes = widened(self.codes, capacity)

    def move(self, source: int, target: int) -> None:
        self.codes[target] = self.codes[source]
        self.codes[source] = 0

    def view(self, cluster: Cluster) -> Coded[T]:
        if cluster.watch is not None:
            cluster.watch.tells_apart(self)
        return Coded(cluster.gather(self.codes), self)


class CodedStorage(CodedBase[T]):
    """A fact of the node; pods do not matter."""

    def __init__(self, store: Store, derive: Callable[[Node], T]) -> None:
        super().__init__(store)
        self._derive = derive
        for row, node in enumerate(store.nodes):
            self.set_node(row, node)

    def set_node(self, row: int, node: Node) -> None:
        self.codes[row] = self.code(self._derive(node))


class SetStorage(CodedBase[frozenset[T]]):
    """Union over the pods of a node of the sets they hold."""

    pods_matter = True

    def __init__(self, store: Store, derive: Callable[[Pod], frozenset[T]]) -> None:
        super().__init__(store)
        self._derive = derive
        self._store = store
        self.code(frozenset())
        for row, pods in enumerate(store.seats):
            self._write(row, pods.values())

    def _write(self, row: int, pods: Iterable[Pod]) -> None:
        self.codes[row] = self._union(pods)

    def _union(self, pods: Iterable[Pod]) -> int:
        return self.code(frozenset().union(*(self._derive(pod) for pod in pods)))

    def count_pod(self, row: int, pod: Pod, sign: int) -> None:  # noqa: ARG002 - the seat already shows the change
        if self._derive(pod):
            self._write(row, self._store.seats[row].values())

    def view(self, cluster: Cluster) -> Coded[frozenset[T]]:
        if cluster.changes is None:
            return super().view(cluster)
        codes = cluster.gather(self.codes).copy()
        for place in cluster.changes.touched(self._derive, lambda pod: bool(self._derive(pod))).tolist():
            held = set(self.values[int(codes[place])])
            for pod, sign in cluster.changes.world(place).steps():
                # a set, as upstream: one pod that goes takes what another one holds too
                held = held | self._derive(pod) if sign > 0 else held - self._derive(pod)
            codes[place] = self.code(frozenset(held))
        return Coded(codes, self)
