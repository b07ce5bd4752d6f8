"""Rows that pods of at least the same priority are nominated to, for decisions of classes: which of them that makes too full.

Kept between decisions: the nominated pods that count by priority, and for each class the rows on which its pods do not fit
beside them, asked about again only when those rows or counts of domains change.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stowplan.objects import Pod
from stowplan.plugins.plugin import Plugin
from stowplan.policy.compile import Policy, Profile
from stowplan.policy.evaluate import NO_ROWS, any_of, skips
from stowplan.policy.layers import reach_of
from stowplan.policy.nominated import counts_from, nominated_rows
from stowplan.state import Census, Cluster, Mask, Reach, Rows, Store, Supposition, Watch

FEW = 64
"""Changed rows that are looked at one by one; after more of them the filters are asked again."""


class Reservation:
    """Nominated pods that count for pods of one priority, by row. Valid for as long as they and all facts stay as they are."""

    def __init__(self, store: Store, pods: Mapping[int, list[Pod]]) -> None:
        self.store = store
        self.rows: Rows = np.array(list(pods), dtype=np.intp)
        self.at = frozenset(pods)
        worlds = [Supposition(added=others) for others in pods.values()]
        self.changes = Cluster(store).suppose(self.rows, worlds).changes
        self.classes: dict[int, Crowding] = {}


@dataclass(slots=True)
class Judgement:
    """What one filter says of those rows."""

    plugin: Plugin
    ask: Any
    prefilters: bool
    """whether it can skip"""
    watch: Watch
    rejected: Mask | None = None
    """None where it rejects nothing"""
    failed: bool = False

    def renew(self, reservation: Reservation) -> None:
        """Ask the filter."""
        self.watch.restart()
        self.rejected, self.failed = None, False
        if self.prefilters and skips(self.plugin, self.ask, Cluster(reservation.store, NO_ROWS, watch=self.watch)):
            return
        assert self.plugin.rejects is not None
        cluster = Cluster(reservation.store, reservation.rows, reservation.changes, self.watch)
        found = self.plugin.rejects(self.ask, cluster)
        if found:
            self.rejected = any_of(found, cluster.size)
            self.failed = any(reason.error and np.count_nonzero(mask) for reason, mask in found.items())


class Crowding:
    """What the filters say to pods of one class on those rows, the nominated pods supposed to run there."""

    def __init__(self, profile: Profile, asks: Mapping[str, Any], reservation: Reservation) -> None:
        self._reservation = reservation
        plugins = ((name, profile.plugins[name]) for name in profile.points["filter"])
        self._judgements = [
            Judgement(plugin, asks[name], name in profile.points["preFilter"], Watch({}, Census()))
            for name, plugin in plugins
            if asks[name] is not None and plugin.rejects is not None and reach_of(plugin) is not Reach.NODE
        ]
        """of those filters that pods can change: the others say what they say without the nominated pods"""
        self.refused: frozenset[int] = frozenset()
        """rows that do not take the pod"""
        self.faulty = False
        """whether a filter has failed"""
        self._place = len(reservation.store.log)
        self._renew(self._judgements)

    def refresh(self) -> None:
        """Ask those filters again whose answers depend on something that has changed."""
        log = self._reservation.store.log
        if self._place == len(log):
            return
        changed = log.since(self._place, FEW)
        self._place = len(log)
        if changed is None or not self._reservation.at.isdisjoint(changed.tolist()):
            self._renew(self._judgements)
        elif stale := [judgement for judgement in self._judgements if judgement.watch.stale()]:
            self._renew(stale)

    def _renew(self, stale: Sequence[Judgement]) -> None:
        for judgement in stale:
            judgement.renew(self._reservation)
        rejected = np.zeros(len(self._reservation.rows), dtype=np.bool_)
        for judgement in self._judgements:
            if judgement.rejected is not None:
                rejected |= judgement.rejected
        self.refused = frozenset(self._reservation.rows[rejected].tolist())
        self.faulty = any(judgement.failed for judgement in self._judgements)


class Reservations:
    """The reservations of one store that pods of each priority have to respect (framework's addNominatedPods)."""

    def __init__(self, policy: Policy, store: Store) -> None:
        self._policy, self._store = policy, store
        self._stamp = (-1, -1, -1)
        self._priorities: list[int] = []
        self._by_priority: dict[int, Reservation] = {}

    def against(self, priority: int) -> Reservation | None:
        """What pods of a priority that are not nominated themselves have to respect; None where nothing counts."""
        store = self._store
        stamp = (store.nominations, store.epoch, store.lookups)
        if stamp != self._stamp:
            self._stamp = stamp
            counting = (pod for _, pods in nominated_rows(store) for pod in pods if self._policy.serves(pod))
            self._priorities = sorted({pod.spec.priority for pod in counting})
            self._by_priority = {}
        place = bisect_left(self._priorities, priority)
        if place == len(self._priorities):
            return None
        found = self._by_priority.get(place)
        if found is None:
            found = self._by_priority[place] = Reservation(store, self._pods(priority))
        return found

    def _pods(self, priority: int) -> dict[int, list[Pod]]:
        found = {}
        for row, pods in nominated_rows(self._store):
            others = [pod for pod in pods if counts_from(self._policy, priority, pod)]
            if others:
                found[row] = others
        return found

    def crowding(self, number: int, profile: Profile, asks: Mapping[str, Any], priority: int) -> Crowding | None:
        """What that means for pods of a class and a priority, current; None where nothing counts."""
        reservation = self.against(priority)
        if reservation is None:
            return None
        found = reservation.classes.get(number)
        if found is None:
            found = reservation.classes[number] = Crowding(profile, asks, reservation)
        else:
            found.refresh()
        return found
