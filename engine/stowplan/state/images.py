"""Images that nodes hold: size and spread of an image name over the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stowplan.objects import Node
from stowplan.state.columns import Mask, Storage

if TYPE_CHECKING:
    from stowplan.state.cluster import Cluster
    from stowplan.state.store import Store

NO_NAMES: frozenset[str] = frozenset()


class ImageStorage(Storage["Images"]):
    """Rows that hold each image name. A name keeps the size that the first node gave it, as in kube-scheduler's cache."""

    def __init__(self, store: Store) -> None:
        self._names: list[frozenset[str]] = []
        self.holders: dict[str, set[int]] = {}
        self.sizes: dict[str, int] = {}
        for row, node in enumerate(store.nodes):
            self.set_node(row, node)

    def grow(self, capacity: int) -> None:
        """Nothing here is sized by rows."""

    def set_node(self, row: int, node: Node) -> None:
        if not node.images and row >= len(self._names):
            self._names.append(NO_NAMES)
            return
        names: set[str] = set()
        for aliases, size in node.images:
            for name in aliases:
                names.add(name)
                self.sizes.setdefault(name, size)
                self.holders.setdefault(name, set()).add(row)
        if row < len(self._names):
            self._drop(row, self._names[row] - names)
            self._names[row] = frozenset(names)
        else:
            self._names.append(frozenset(names))

    def move(self, source: int, target: int) -> None:
        self._drop(target, self._names[target])
        names = self._names.pop()
        if source != target:
            self._names[target] = names
            for name in names:
                self.holders[name].add(target)
            self._drop(source, names)

    def _drop(self, row: int, names: frozenset[str]) -> None:
        for name in names:
            self.holders[name].discard(row)
            if not self.holders[name]:
                del self.holders[name], self.sizes[name]

    def view(self, cluster: Cluster) -> Images:
        return Images(self, cluster)


class Images:
    """View of the images."""

    __slots__ = ("_cluster", "_storage")

    def __init__(self, storage: ImageStorage, cluster: Cluster) -> None:
        self._storage, self._cluster = storage, cluster

    def size(self, name: str) -> int:
        """Bytes of an image; 0 where no node holds it."""
        return self._storage.sizes.get(name, 0)

    def spread(self, name: str) -> int:
        """Number of nodes of the whole cluster that hold the image."""
        return len(self._storage.holders.get(name, ()))

    def held(self, name: str) -> Mask:
        """Mask of the asked rows that hold the image."""
        mask = np.zeros(self._cluster.capacity, dtype=np.bool_)
        holders = self._storage.holders.get(name)
        if holders:
            mask[list(holders)] = True
        return self._cluster.gather(mask)
