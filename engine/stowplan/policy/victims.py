"""The dry run of a preemption: on every candidate node at once, take all less important pods away and put back what can stay.

Matrices are rows x places in the node's queue, the order in which pods may be spared: those whose eviction breaks a
disruption budget first, and within that the most important first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from stowplan.objects import DisruptionBudget, Pod
from stowplan.policy.compile import Policy
from stowplan.policy.decision import Refusals
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
        self._tried = 0
        """places of the queues that have been tried"""

    def queue_up(self, breaking: Callable[[Sequence[Pod]], Mapping[str, DisruptionBudget]] | None) -> None:
        """Order the less important pods of each row; `breaking` gives, by key, the budgets that eviction in that order breaks."""
        ranks = Cluster(self._store, self.rows)[RANKS]
        self._kinds = ranks.kinds
        self._ranked = [ranks.pods[row] for row in self.rows.tolist()]  # these lists stay as they are when the store moves on
        width = ranks.codes.shape[1]
        ahead = ranks.priorities >= self._found.pod.spec.priority
        first = (ahead & (np.arange(width) < ranks.counts[:, None])).sum(axis=1)
        self._order = np.minimum(first[:, None] + np.arange(width), width - 1)
        self._valid: Mask = np.arange(width) < (ranks.counts - first)[:, None]
        self._breaks: Mask = np.zeros_like(self._valid)
        self._broken: dict[int, Mapping[str, DisruptionBudget]] = {}
        """by row, where there are any"""
        for place, ranked in enumerate(self._ranked if breaking else ()):
            assert breaking is not None
            pods = ranked[first[place] :]
            keys = breaking(pods)
            breaks = [pod.key in keys for pod in pods]
            self._order[place, : len(pods)] = first[place] + np.argsort(np.logical_not(breaks), kind="stable")
            self._breaks[place, : len(keys)] = True
            if keys:
                self._broken[int(self.rows[place])] = keys
        self._codes = np.take_along_axis(ranks.codes, self._order, axis=1)
        self._priorities = np.take_along_axis(ranks.priorities, self._order, axis=1)
        self._starts = np.take_along_axis(ranks.starts, self._order, axis=1)
        self.gone: Mask = self._valid.copy()

    def remove_all(self) -> Refusals:
        """Keep the rows that the pod fits with all of these pods gone; returns the statuses of the others, by place."""
        refusals = self._refusals(np.arange(len(self.rows)))
        keep = (refusals.codes < 0).nonzero()[0]
        self.rows, self._ranked = self.rows[keep], [self._ranked[place] for place in keep.tolist()]
        for name in ("_codes", "_priorities", "_starts", "_order", "_valid", "_breaks", "gone"):
            setattr(self, name, getattr(self, name)[keep])
        return refusals

    def spare(self) -> None:
        """Put pods back in queue order as long as the incoming one still fits."""
        for rank in range(int(self._valid.sum(axis=1).max(initial=0))):
            places = self._valid[:, rank].nonzero()[0]
            self.gone[places, rank] = False
            self._tried = rank + 1
            self.gone[places[self._refusals(places).codes >= 0], rank] = True

    def _refusals(self, places: NDArray[np.intp]) -> Refusals:
        """What the filters say of some places without the pods that are gone, nominated pods counted."""
        opening = self._found.opening
        assert opening is not None
        profile, rows = self._policy.profiles[self._found.profile], self.rows[places]
        signs = -self.gone[places].astype(np.int64)
        changes = Changes(self._kinds, self._codes[places], signs, lambda place: self._world(int(places[place])))
        refusals = filter_rows(profile, opening, Cluster(self._store).suppose(rows, changes)).refusals()
        if self._store.nominated:
            removed = {int(row): self._world(int(place)) for row, place in zip(rows, places, strict=True)}
            at = {row: place for place, row in enumerate(rows.tolist())}
            for row, status in zip(*with_nominated(profile, self._policy, self._store, self._found, removed), strict=True):
                if status is not None:
                    refusals.put(at[row], status)
        return refusals

    def _world(self, place: int) -> Supposition:
        ranked, order, gone = self._ranked[place], self._order[place], self.gone[place]
        queue = [ranked[order[i]] for i in self._valid[place].nonzero()[0].tolist()]
        tried = [(pod, -1) for pod in queue]
        for rank, pod in enumerate(queue[: self._tried]):
            tried += [(pod, 1), (pod, -1)] if gone[rank] else [(pod, 1)]
        return Supposition(removed=self._evicted(place), tried=tried)

    def _evicted(self, place: int) -> list[Pod]:
        ranked, order = self._ranked[place], self._order[place]
        return [ranked[order[i]] for i in self.gone[place].nonzero()[0].tolist()]

    def victims(self, place: int) -> tuple[tuple[Pod, ...], dict[str, DisruptionBudget]]:
        """Pods to evict, most important first, and by key the budgets that some of them break."""
        evicted, breaks = self._evicted(place), self._breaks[place]
        mixed = breaks.any() and (self._valid[place] & ~breaks).any()
        victims = tuple(sorted(evicted, key=importance) if mixed else evicted)
        broken = self._broken.get(int(self.rows[place]), {})
        return victims, {pod.key: broken[pod.key] for pod in victims if pod.key in broken}

    def costs(self, places: NDArray[np.intp]) -> tuple[Numbers | NDArray[np.float64], ...]:
        """What upstream compares, least first: violations, highest priority, sum of priorities, number, start time."""
        gone, priorities = self.gone[places], self._priorities[places]
        highest = np.where(gone, priorities, np.iinfo(np.int64).min).max(axis=1)
        total = np.where(gone, priorities + PRIORITY_OFFSET, 0).sum(axis=1)
        top = gone & (priorities == highest[:, None])
        earliest = np.where(top, self._starts[places], np.inf).min(axis=1)
        return (gone & self._breaks[places]).sum(axis=1), highest, total, gone.sum(axis=1), -earliest
