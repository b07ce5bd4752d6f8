"""The dry run of a preemption: on every candidate node at once, take all less important pods away and put back what can stay.

Matrices are rows x places in the node's queue, the order in which pods may be spared: those whose eviction breaks a
disruption budget first, and within that the most important first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from stowplan.objects import Pod
from stowplan.policy.compile import Policy
from stowplan.policy.decision import Status
from stowplan.policy.evaluate import filter_rows
from stowplan.policy.nominated import Attempt, with_nominated
from stowplan.state import RANKS, Changes, Cluster, Mask, Numbers, Rows, Store, Supposition, importance

PRIORITY_OFFSET = 1 << 31
"""Added to each priority in sums, so that more victims cost more whatever the sign of their priority."""


class Dry:
    """A dry run on some rows, each with at least one pod of lower priority."""

    def __init__(self, policy: Policy, store: Store, found: Attempt, rows: Rows) -> None:
        self._policy, self._store, self._found = policy, store, found
        self.rows = rows

    def queue_up(self, breaking: Callable[[Sequence[Pod]], set[str]]) -> None:
        """Order the less important pods of each row; `breaking` gives the keys whose eviction, in that order, breaks a budget."""
        ranks = Cluster(self._store, self.rows)[RANKS]
        self._kinds = ranks.kinds
        width = ranks.codes.shape[1]
        valid = np.arange(width) < ranks.counts[:, None]
        first = ((ranks.priorities >= self._found.pod.spec.priority) & valid).sum(axis=1)
        order = np.minimum(first[:, None] + np.arange(width), width - 1)
        self._valid: Mask = np.arange(width) < (ranks.counts - first)[:, None]
        self._breaks: Mask = np.zeros_like(self._valid)
        self.pods = [pods[start:] for pods, start in zip(ranks.pods, first.tolist(), strict=True)]
        for place, pods in enumerate(self.pods):
            keys = breaking(pods)
            if keys:
                breaks = [pod.key in keys for pod in pods]
                permuted = sorted(range(len(pods)), key=lambda i: not breaks[i])
                order[place, : len(pods)] = [int(first[place]) + i for i in permuted]
                self._breaks[place, : len(keys)] = True
                self.pods[place] = [pods[i] for i in permuted]
        self._codes = np.take_along_axis(ranks.codes, order, axis=1)
        self._priorities = np.take_along_axis(ranks.priorities, order, axis=1)
        self._starts = np.take_along_axis(ranks.starts, order, axis=1)
        self.gone: Mask = self._valid.copy()

    def remove_all(self) -> dict[int, Status]:
        """Keep the rows that the pod fits with all of these pods gone; the others give their status."""
        statuses = self._fits(np.arange(len(self.rows)))
        fits = np.array([status is None for status in statuses], dtype=np.bool_)
        refused = {row: status for row, status in zip(self.rows.tolist(), statuses, strict=True) if status is not None}
        keep = fits.nonzero()[0]
        self.rows, self.pods = self.rows[keep], [self.pods[place] for place in keep.tolist()]
        for name in ("_codes", "_priorities", "_starts", "_valid", "_breaks", "gone"):
            setattr(self, name, getattr(self, name)[keep])
        return refused

    def spare(self) -> None:
        """Put pods back in queue order as long as the incoming one still fits."""
        for rank in range(int(self._valid.sum(axis=1).max(initial=0))):
            places = self._valid[:, rank].nonzero()[0]
            self.gone[places, rank] = False
            refused = [status is not None for status in self._fits(places)]
            self.gone[places[np.array(refused, dtype=np.bool_)], rank] = True

    def _fits(self, places: NDArray[np.intp]) -> list[Status | None]:
        """What the filters say of some places without the pods that are gone, nominated pods counted."""
        opening = self._found.opening
        assert opening is not None
        if not len(places):
            return []
        profile, rows = self._policy.profiles[self._found.profile], self.rows[places]
        signs = -self.gone[places].astype(np.int8)
        changes = Changes(self._kinds, self._codes[places], signs, lambda place: self._world(int(places[place])))
        filtering = filter_rows(profile, opening, Cluster(self._store).suppose(rows, changes))
        statuses: list[Status | None] = filtering.first_statuses()
        if self._store.nominated:
            removed = {int(row): self._world(int(place)).removed for row, place in zip(rows, places, strict=True)}
            crowded = zip(*with_nominated(profile, self._policy, self._store, self._found, removed), strict=True)
            nominated = {row: status for row, status in crowded if status is not None}
            statuses = [nominated.get(row, status) for row, status in zip(rows.tolist(), statuses, strict=True)]
        return statuses

    def _world(self, place: int) -> Supposition:
        return Supposition(removed=self._evicted(place))

    def _evicted(self, place: int) -> list[Pod]:
        return [self.pods[place][i] for i in self.gone[place].nonzero()[0].tolist()]

    def victims(self, place: int) -> tuple[tuple[Pod, ...], int]:
        """Pods to evict, most important first, and how many of them break a budget."""
        evicted, breaks = self._evicted(place), self._breaks[place]
        mixed = breaks.any() and not breaks[: len(self.pods[place])].all()
        return tuple(sorted(evicted, key=importance) if mixed else evicted), int((self.gone[place] & breaks).sum())

    def costs(self, places: NDArray[np.intp]) -> tuple[Numbers | NDArray[np.float64], ...]:
        """What upstream compares, least first: violations, highest priority, sum of priorities, number, start time."""
        gone, priorities = self.gone[places], self._priorities[places]
        highest = np.where(gone, priorities, np.iinfo(np.int64).min).max(axis=1)
        total = np.where(gone, priorities + PRIORITY_OFFSET, 0).sum(axis=1)
        top = gone & (priorities == highest[:, None])
        earliest = np.where(top, self._starts[places], np.inf).min(axis=1)
        return (gone & self._breaks[places]).sum(axis=1), highest, total, gone.sum(axis=1), -earliest
