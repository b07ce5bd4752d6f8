"""The dry run of a preemption: on every candidate node at once, take all less important pods away and put back what can stay.

Matrices are rows x places in the node's queue, the order in which pods may be spared: those whose eviction breaks a
disruption budget first, and within that the most important first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from stowplan.objects import DisruptionBudget, Pod
from stowplan.policy.compile import Policy, Profile
from stowplan.policy.decision import Refusals, Status
from stowplan.policy.evaluate import answer, filter_rows
from stowplan.policy.layers import reach_of
from stowplan.policy.nominated import Attempt, nominated_rows, with_nominated
from stowplan.state import RANKS, Cluster, Gone, Mask, Numbers, Reach, Rows, Store, Supposition, importance

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
        self._pods = list(ranks.pods)  # the lists in this one stay as they are when the store moves on
        width = ranks.codes.shape[1]
        ahead = (ranks.priorities >= self._found.pod.spec.priority) & (np.arange(width) < ranks.counts[:, None])
        first: Rows = np.count_nonzero(ahead, axis=1)
        self._order: NDArray[np.intp] = np.minimum(first[:, None] + np.arange(width), width - 1)
        self._valid: Mask = np.arange(width) < (ranks.counts - first)[:, None]
        self._breaks: Mask = np.zeros_like(self._valid)
        self._broken: dict[int, Mapping[str, DisruptionBudget]] = {}
        """by row, where there are any"""
        if breaking is not None:
            self._put_breaking_first(breaking, first)
        if breaking is not None or first.any():
            self._codes = np.take_along_axis(ranks.codes, self._order, axis=1)
            self._priorities = np.take_along_axis(ranks.priorities, self._order, axis=1)
            self._starts = np.take_along_axis(ranks.starts, self._order, axis=1)
        else:
            self._codes, self._priorities, self._starts = ranks.codes, ranks.priorities, ranks.starts
        self._kinds = ranks.kinds
        self._departed = Gone(ranks.kinds, self._codes, self._valid.copy())

    def _put_breaking_first(self, breaking: Callable[[Sequence[Pod]], Mapping[str, DisruptionBudget]], first: Rows) -> None:
        for place, row in enumerate(self.rows.tolist()):
            pods = self._pods[row][first[place] :]
            keys = breaking(pods)
            breaks = [pod.key in keys for pod in pods]
            self._order[place, : len(pods)] = first[place] + np.argsort(np.logical_not(breaks), kind="stable")
            self._breaks[place, : len(keys)] = True
            if keys:
                self._broken[row] = keys

    @property
    def gone(self) -> Mask:
        """Pods to be evicted, rows x places in the queue."""
        return self._departed.mask

    @property
    def starved(self) -> bool:
        """Whether some rule had no value because it took too much work."""
        allowance = self._profile.allowance
        return allowance is not None and allowance.starved_supposing

    def remove_all(self) -> Refusals:
        """Keep the rows that the pod fits with all of these pods gone; returns the statuses of the others, by place."""
        opening, places = self._found.opening, np.arange(len(self.rows))
        assert opening is not None
        refusals = filter_rows(self._profile, opening, self._supposed(places)).refusals()
        for place, status in self._crowded(places):
            refusals.put(place, status)
        keep = (refusals.codes < 0).nonzero()[0]
        if len(keep) < len(self.rows):
            for name in ("rows", "_codes", "_priorities", "_starts", "_order", "_valid", "_breaks"):
                setattr(self, name, getattr(self, name)[keep])
            self._departed = Gone(self._kinds, self._codes, self._valid.copy())
        return refusals

    def spare(self) -> None:
        """Put pods back in queue order as long as the incoming one still fits."""
        for rank in range(int(np.count_nonzero(self._valid, axis=1).max(initial=0))):
            places = self._valid[:, rank].nonzero()[0]
            self._departed.set(places, rank, gone=False)
            self._tried = rank + 1
            self._departed.set(places[self._rejected(places)], rank, gone=True)

    def _rejected(self, places: Rows) -> Mask:
        """Places, all of them acceptable with every pod gone, that are not as things stand.

        Filters that pods cannot change have nothing new to say.
        """
        opening = self._found.opening
        assert opening is not None
        cluster, rejected = self._supposed(places), np.zeros(len(places), dtype=np.bool_)
        for name in self._profile.points["filter"]:
            plugin = self._profile.plugins[name]
            if name not in opening.skipped and reach_of(plugin) is not Reach.NODE:
                for mask in answer(self._profile, plugin, opening.asks[name], cluster).values():
                    rejected |= mask
        for place, _ in self._crowded(places):
            rejected[place] = True
        return rejected

    @property
    def _profile(self) -> Profile:
        return self._policy.profiles[self._found.profile]

    def _supposed(self, places: Rows) -> Cluster:
        """Some places without the pods that are gone."""
        changes = self._departed.changes(places, lambda place: self._world(int(places[place])))
        return Cluster(self._store).suppose(self.rows[places], changes)

    def _crowded(self, places: Rows) -> Iterator[tuple[int, Status]]:
        """Places among these, with their statuses, that do not fit once nominated pods are counted."""
        if not self._store.nominated:
            return
        rows = self.rows[places].tolist()
        nominated = {row for row, _ in nominated_rows(self._store)}
        at = {row: place for place, row in enumerate(rows) if row in nominated}
        removed = {row: self._world(int(places[place])) for row, place in at.items()}
        for row, status in zip(*with_nominated(self._profile, self._policy, self._store, self._found, removed), strict=True):
            if status is not None:
                yield at[row], status

    def _world(self, place: int) -> Supposition:
        ranked, order, gone = self._pods[int(self.rows[place])], self._order[place], self.gone[place]
        queue = [ranked[order[i]] for i in self._valid[place].nonzero()[0].tolist()]
        tried = [(pod, -1) for pod in queue]
        for rank, pod in enumerate(queue[: self._tried]):
            tried += [(pod, 1), (pod, -1)] if gone[rank] else [(pod, 1)]
        return Supposition(removed=self._evicted(place), tried=tried)

    def _evicted(self, place: int) -> list[Pod]:
        ranked, order = self._pods[int(self.rows[place])], self._order[place]
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
