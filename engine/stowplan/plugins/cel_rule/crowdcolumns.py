"""The pods on nodes as columns: what follows from the kind of a pod is computed once a kind."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from stowplan.cel.column import Column, Elements, Rows, View
from stowplan.plugins.cel_rule.members import Derive
from stowplan.plugins.cel_rule.podview import SeatedView
from stowplan.state import CROWD, Cluster, Crowd
from stowplan.state.changes import Kinds

OF_KIND = frozenset(("labels", "namespace", "priority", "requests"))
"""members that all pods of one kind share"""


class CrowdColumns(View):
    """All pods on the asked nodes, one after the other."""

    __slots__ = ("_cluster", "_crowd", "_now")

    def __init__(self, cluster: Cluster, now: float) -> None:
        self._cluster, self._now = cluster, now
        self._crowd: Crowd = cluster[CROWD]

    def __len__(self) -> int:
        return int(self._crowd.offsets[-1])

    def section(self, first: int, last: int) -> View:
        rows = np.searchsorted(self._crowd.offsets, (first, last))  # sections consist of whole nodes
        return CrowdColumns(self._cluster.rows(self._cluster.asked[slice(*rows)]), self._now)

    def derive(self, tag: Hashable, function: Derive) -> View:
        if isinstance(tag, tuple) and tag[0] == "field" and tag[1] in OF_KIND:
            return Spread(_by_kind(self._crowd.kinds, tag[1]), self._crowd.codes)
        return Rows([self.row(index) for index in range(len(self))]).derive(tag, function)

    def column(self) -> Column:
        return Rows([self.row(index) for index in range(len(self))]).column()

    def elements(self, names: int) -> Elements | None:  # noqa: ARG002
        return None

    def row(self, index: int) -> Any:
        return SeatedView(self._crowd.pod(index), self._now)


class Spread(View):
    """Values that are kept for each kind of pod, over pods: what is derived is computed by kind, once."""

    __slots__ = ("_codes", "_of_kinds")

    def __init__(self, of_kinds: View, codes: NDArray[np.int32]) -> None:
        self._of_kinds, self._codes = of_kinds, codes

    def __len__(self) -> int:
        return len(self._codes)

    def derive(self, tag: Hashable, function: Derive) -> View:
        return Spread(self._of_kinds.derive(tag, function), self._codes)

    def column(self) -> Column:
        return self._of_kinds.column().take(self._codes)

    def elements(self, names: int) -> Elements | None:
        return Rows([self.row(index) for index in range(len(self))]).elements(names)

    def row(self, index: int) -> Any:
        return self._of_kinds.row(int(self._codes[index]))


_by_kinds: WeakKeyDictionary[Kinds, dict[str, Rows]] = WeakKeyDictionary()


def _by_kind(kinds: Kinds, member: str) -> Rows:
    """A member of the pods of each kind; what is derived from it is kept with it."""
    known = _by_kinds.setdefault(kinds, {})
    found = known.get(member)
    if found is None or len(found) != len(kinds.pods):
        found = known[member] = Rows([SeatedView(pod, 0.0)[member] for pod in kinds.pods])
    return found
