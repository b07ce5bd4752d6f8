"""What nodes have of every resource, what they have given out and what is left, in float64: one matrix, fetched in one go.

The integers are the truth (see `amounts`); this follows them where float64 is exact, and says where it is not. Each pod is one
column of numbers that is added to the row's, whatever is kept about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stowplan.objects import Amounts, Node, Pod
from stowplan.state.amounts import PLAIN, RESERVED, AmountBase, Floats, SumStorage
from stowplan.state.columns import Rows, Storage

if TYPE_CHECKING:
    from stowplan.state.cluster import Cluster

Places = slice | Rows
PARTS = 5
"""of the matrix: allocatable; requested and what that leaves; counted by scores and what that leaves"""
MOST_KINDS = 4096


@dataclass(frozen=True, slots=True)
class Lines:
    """Where some resources stand in each part of the matrix, in the order of their names."""

    everywhere: bool
    """whether every node has some of each"""
    allocatable: Places
    requested: Places
    free: Places
    counted: Places
    uncounted: Places


@dataclass(slots=True)
class Entries:
    """Amounts of some resources, float64 of resources x asked rows; not to be written to."""

    allocatable: Floats
    """above 0"""
    used: Floats
    left: Floats
    """allocatable less used; below 0 where more is given out than there is"""


class Ledger:
    """The view. The resource `pods` counts pods."""

    __slots__ = ("_block", "_lines", "_storage")

    def __init__(self, storage: LedgerStorage, block: Floats | None) -> None:
        """`block` None: float64 is not to be relied upon."""
        self._storage, self._block = storage, block

    def free(self, names: tuple[str, ...]) -> Floats | None:
        """Allocatable less requested, exact; not to be written to. None where only integers will do, or a name is unknown."""
        block = self._block
        lines = None if block is None else self._storage.lines(names)
        return None if block is None or lines is None else block[lines.free]

    def entries(self, names: tuple[str, ...], *, nonzero: bool) -> Entries | None:
        """What scores compare, exact, hundredths of it too; `nonzero` counts silent containers with the defaults.

        None where only integers will do, or some node lacks one of the resources.
        """
        block = self._block
        lines = None if block is None else self._storage.lines(names)
        if block is None or lines is None or not lines.everywhere:
            return None
        if nonzero:
            return Entries(block[lines.allocatable], block[lines.counted], block[lines.uncounted])
        return Entries(block[lines.allocatable], block[lines.requested], block[lines.free])

    @property
    def names(self) -> list[str]:
        """Resources that have a place, sorted."""
        return sorted(self._storage.index)


class LedgerStorage(Storage[Ledger]):
    """The matrix: `PARTS` times the known resources x rows."""

    pods_matter = True

    def __init__(self, allocatable: AmountBase, requested: SumStorage, nonzero: SumStorage, pods: SumStorage) -> None:
        """All of these are older, so that each change has reached them before it is told here."""
        self._allocatable, self._requested, self._nonzero, self._pods = allocatable, requested, nonzero, pods
        self._build()

    def _build(self) -> None:
        """Everything, from the integers."""
        known = {**RESERVED}
        for name in (*self._allocatable.index, *self._requested.index, *self._nonzero.index):
            known.setdefault(name, len(known))
        self.index = known
        """place of each resource that was seen"""
        self._lines: dict[tuple[str, ...], Lines | None] = {}
        self._deltas: dict[tuple[Amounts, Amounts], Floats] = {}
        self.matrix: Floats = np.zeros((PARTS * len(known), self._allocatable.matrix.shape[1]))
        self._fill(slice(None))

    def _fill(self, rows: slice) -> None:
        """Some rows, from the integers."""
        parts = self.matrix.reshape(PARTS, len(self.index), -1)
        for name, place in self.index.items():
            given_out = self._pods if name == "pods" else self._requested
            have, requested = self._allocatable.line(name)[rows], given_out.line(name)[rows]
            counted = self._nonzero.line(name)[rows] if name in self._nonzero.index else requested
            parts[:, place, rows] = [have, requested, have - requested, counted, have - counted]

    def lines(self, names: tuple[str, ...]) -> Lines | None:
        """Where some resources stand; None where float64 is not exact for them or one is not known."""
        if self._requested.excessive or self._nonzero.excessive:
            return None
        try:
            return self._lines[names]
        except KeyError:
            found = self._lines[names] = self._find(names)
            return found

    def _find(self, names: tuple[str, ...]) -> Lines | None:
        if not all(name in self.index for name in names):
            return None
        places = [self.index[name] for name in names]
        nodes = self._allocatable.nodes
        have = [self._allocatable.line(name)[:nodes] for name in names]
        if any(bool(((line < 0) | (line >= PLAIN)).any()) for line in have):
            return None
        spans = [_span([part * len(self.index) + place for place in places]) for part in range(PARTS)]
        return Lines(all(bool((line > 0).all()) for line in have), *spans)

    def grow(self, capacity: int) -> None:  # noqa: ARG002 - the integers have grown
        self._build()

    def set_node(self, row: int, node: Node) -> None:
        if not all(name in self.index for name in node.allocatable):
            self._build()
        self._lines.clear()
        self._fill(slice(row, row + 1))

    def move(self, source: int, target: int) -> None:
        self._lines.clear()
        self.matrix[:, target] = self.matrix[:, source]
        self.matrix[:, source] = 0

    def count_pod(self, row: int, pod: Pod, sign: int) -> None:
        asked = (self._requested.derive(pod), self._nonzero.derive(pod))
        delta = self._deltas.get(asked)
        if delta is None:
            delta = self._delta(*asked)
            if delta is None:
                self._build()  # from integers that count this pod already
                return
            if len(self._deltas) >= MOST_KINDS:
                self._deltas.clear()
            self._deltas[asked] = delta
        column = self.matrix[:, row]
        if sign > 0:
            column += delta
        else:
            column -= delta

    def _delta(self, requested: Amounts, nonzero: Amounts) -> Floats | None:
        """What one pod adds to a row; None where a resource has no place yet."""
        size = len(self.index)
        delta = [0.0] * (PARTS * size)
        given_out = dict(requested.items(), pods=1)
        for name, counted in (given_out | dict(nonzero.items())).items():
            place, amount = self.index.get(name), given_out.get(name, 0)
            if place is None:
                return None
            for part, number in enumerate((0, amount, -amount, counted, -counted)):
                delta[part * size + place] = number
        return np.array(delta)

    def view(self, cluster: Cluster) -> Ledger:
        return Ledger(self, None if cluster.changes is not None else cluster.gather_columns(self.matrix))


def _span(places: list[int]) -> Places:
    first = places[0] if places else 0
    if places == list(range(first, first + len(places))):
        return slice(first, first + len(places))
    return np.array(places, dtype=np.intp)
