"""Classes: pods that want the same of every plugin share one incrementally kept total over all nodes.

A class keeps, per row, whether the row-local filters pass it and the sum of its scores that are not normalised, patched on
the rows that changed; and per group (see `groups`) the rest. Total = local + group score; a decision is its maximum. Exact,
because nothing normalised is ever patched. Plugins cannot tell: they answer for the rows of a view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from stowplan.plugins.plugin import Plugin, ScoringError
from stowplan.policy.compile import Profile
from stowplan.policy.evaluate import Opening, any_of, normalise, raw_scores
from stowplan.policy.groups import Component, Groups
from stowplan.state import Cluster, Feasible, Mask, Numbers, Reach, Rows, Store, Watch

REJECTED = np.int64(-(1 << 60))
"""Total of a row that some filter rejects; far below any sum of scores, and two of them still fit int64."""
BLOCK = 32768
"""Rows that are evaluated at once where all are."""
DENSE_SHARE = 3
"""With more than one in three rows changed, evaluating all rows is cheaper than patching."""
NOBODY = Feasible(np.zeros(0, dtype=np.int64))


def reach_of(plugin: Plugin) -> Reach:
    """How far a change of what the plugin reads can be felt."""
    reaches = {column.reach for column in plugin.reads}
    return next((reach for reach in (Reach.DOMAIN, Reach.ROW) if reach in reaches), Reach.NODE)


class PodClass:
    """Totals of one class over all rows. Valid for one `store.epoch`; asks hold all that comes from elsewhere."""

    def __init__(self, profile: Profile, opening: Opening, store: Store) -> None:
        self.profile, self.opening, self._store = profile, opening, store
        self.version = store.epoch
        self._place = len(store.log)
        self._size = len(store.nodes)
        self.error: str | None = None
        """why scoring fails for these pods"""
        self.faulty = False
        """whether a filter has failed on some row: that ends an attempt, unless another filter rejects the row before"""
        try:
            self._sort_plugins()
            self._fixed()
            self._rest()
        except ScoringError as error:
            self.error = str(error)

    # Building

    def _sort_plugins(self) -> None:
        """Assign each answer of each plugin to where it can change: never, on its row, or by group."""
        self._filters: dict[Reach, list[Plugin]] = {reach: [] for reach in Reach}
        self._scores: dict[Reach, list[Plugin]] = {reach: [] for reach in Reach}
        self._normalised: list[Plugin] = []
        asks = self.opening.asks
        for name in self.profile.points["filter"]:
            plugin = self.profile.plugins[name]
            reach = reach_of(plugin)
            # what pods elsewhere make of a node may come later, though nothing is there to be checked now
            skipped = name in self.opening.skipped and reach is not Reach.DOMAIN
            if not skipped and plugin.rejects is not None and asks[name] is not None:
                self._filters[reach].append(plugin)
        nothing = Cluster(self._store, np.zeros(0, dtype=np.intp))
        for name in dict.fromkeys((*self.profile.points["preScore"], *self.profile.points["score"])):
            plugin = self.profile.plugins[name]
            reach = reach_of(plugin)
            raw = raw_scores(self.profile, plugin, asks[name], nothing, NOBODY)  # raises where scoring fails
            if name not in self.profile.points["score"] or (raw is None and reach is not Reach.DOMAIN):
                continue
            if plugin.normalise is None or reach is Reach.DOMAIN:
                self._scores[reach].append(plugin)
            else:
                self._normalised.append(plugin)

    def _fixed(self) -> None:
        """What only node events change."""
        self._open = np.empty(self._size, dtype=np.bool_)
        self._base = np.empty(self._size, dtype=np.int64)
        for block in self._blocks():
            cluster, rows = Cluster(self._store, block), slice(block.start, block.stop)
            self._open[rows] = self._passed(Reach.NODE, cluster)
            self._base[rows] = self._summed(Reach.NODE, cluster)
        if self.opening.names is not None:
            wanted = np.zeros(self._size, dtype=np.bool_)
            wanted[[self._store.row_of[name] for name in self.opening.names if name in self._store.row_of]] = True
            self._open &= wanted
        if not self.profile.points["score"]:
            self._base += 1  # such a profile has no rules that score, so a point is one step
        self._ranks = self._store.name_ranks()

    def _rest(self) -> None:
        """Everything that pods change, over all rows."""
        self._acceptable = np.empty(self._size, dtype=np.bool_)
        self._local = np.empty(self._size, dtype=np.int64)
        self._raws = [np.empty(self._size, dtype=np.int64) for _ in self._normalised]
        for block in self._blocks():
            cluster, rows = Cluster(self._store, block), slice(block.start, block.stop)
            self._acceptable[rows] = self._open[rows] & self._passed(Reach.ROW, cluster)
            scores = self._base[rows] + self._summed(Reach.ROW, cluster)
            self._local[rows] = np.where(self._acceptable[rows], scores, REJECTED)
            for plugin, raw in zip(self._normalised, self._raws, strict=True):
                raw[rows] = self._raw(plugin, cluster)
        pairs = zip(self._normalised, self._raws, strict=True)
        self._moving = [(plugin, raw) for plugin, raw in pairs if reach_of(plugin) is Reach.ROW]
        """normalised scores whose raw values pods change"""
        self._watch = Watch()
        self._make_groups()

    def _blocks(self) -> Iterator[range]:
        """All rows, in pieces whose temporary arrays stay in the processor's cache."""
        return (range(start, min(start + BLOCK, self._size)) for start in range(0, self._size, BLOCK))

    def _make_groups(self) -> None:
        components: list[Component] = [_same(raw) for raw in self._raws]
        components += [source.current for source in self._watch.codes]
        self._groups = Groups(components, self._acceptable)
        self._known = len(self._watch.codes)
        self._restless = self._known > 0 or bool(self._moving)
        """whether pods can move a row to another group"""
        self._evaluate_groups()
        if len(self._watch.codes) > self._known:
            self._make_groups()
            return
        self.total: Numbers = self._local + self._group_scores[self._groups.of]

    def _passed(self, reach: Reach, cluster: Cluster) -> Mask:
        passed = np.ones(cluster.size, dtype=np.bool_)
        for plugin in self._filters[reach]:
            passed &= ~self._rejected(plugin, cluster)
        return passed

    def _rejected(self, plugin: Plugin, cluster: Cluster) -> Mask:
        assert plugin.rejects is not None
        rejections = plugin.rejects(self.opening.asks[plugin.name], cluster) or {}
        for reason, mask in rejections.items():
            if reason.error and mask.any():
                self.faulty = True
        return any_of(rejections, cluster.size)

    def _summed(self, reach: Reach, cluster: Cluster) -> Numbers:
        total = np.zeros(cluster.size, dtype=np.int64)
        for plugin in self._scores[reach]:
            total += self.profile.factor(plugin) * self._raw(plugin, cluster)
        return total

    def _raw(self, plugin: Plugin, cluster: Cluster, feasible: Feasible | None = None) -> Numbers:
        everything = feasible or Feasible(np.ones(cluster.size, dtype=np.int64))
        raw = raw_scores(self.profile, plugin, self.opening.asks[plugin.name], cluster, everything)
        return np.zeros(cluster.size, dtype=np.int64) if raw is None else raw

    # Keeping current

    def refresh(self) -> None:
        """Bring the total up to date with the store's log."""
        log = self._store.log
        changed = log[self._place :]
        self._place = len(log)
        if not changed:
            return
        if len(changed) * DENSE_SHARE > self._size:
            self._rest()
            return
        rows = np.array(changed if len(changed) == 1 else sorted(set(changed)), dtype=np.intp)
        stirred = self._patch(rows)
        if stirred or self._watch.stale():
            before = self._group_scores
            self._evaluate_groups()
            if len(self._watch.codes) > self._known:
                self._make_groups()
                return
            if not np.array_equal(before, self._group_scores):
                self.total = self._local + self._group_scores[self._groups.of]
                return
        self.total[rows] = self._local[rows] + self._group_scores[self._groups.of[rows]]

    def _patch(self, rows: Rows) -> bool:
        """Re-evaluate the row-local part of some rows. True if scores of groups may change."""
        cluster = Cluster(self._store, rows)
        after = self._open[rows] & self._passed(Reach.ROW, cluster)
        self._local[rows] = np.where(after, self._base[rows] + self._summed(Reach.ROW, cluster), REJECTED)
        for plugin, raw in self._moving:
            raw[rows] = self._raw(plugin, cluster)
        before = self._acceptable[rows]
        self._acceptable[rows] = after
        flipped = before != after
        if flipped.any():
            self._watch.rows_changed()
        elif not self._restless:
            return False
        return self._groups.update(rows, before, after)

    def _evaluate_groups(self) -> None:
        """Filters, scores and normalisation that reach beyond a row, on one representative per group."""
        groups = self._groups
        self._watch.restart()
        cluster = Cluster(self._store, groups.representatives, watch=self._watch)
        rejected = ~self._passed(Reach.DOMAIN, cluster) | (groups.weights == 0)
        feasible = Feasible(np.where(rejected, 0, groups.weights), self._watch)
        scores = np.zeros(len(groups), dtype=np.int64)
        asks, factor = self.opening.asks, self.profile.factor
        for index, plugin in enumerate(self._normalised):
            scores += factor(plugin) * normalise(plugin, asks[plugin.name], groups.values(index), feasible)
        for plugin in self._scores[Reach.DOMAIN]:
            raw = raw_scores(self.profile, plugin, asks[plugin.name], cluster, feasible)
            if raw is not None:
                scores += factor(plugin) * normalise(plugin, asks[plugin.name], raw, feasible)
        self._group_scores: Numbers = np.where(rejected, REJECTED, scores)
        self._feasible = feasible

    # Deciding

    @property
    def feasible(self) -> int:
        """Number of nodes that pass every filter."""
        accepted = self._group_scores > REJECTED
        return int(self._groups.weights[accepted].sum())

    def best(self) -> tuple[int, int, Mask] | None:
        """(row, total, mask of the rows with that total); ties go to the first name. None if no node fits."""
        if not self._size:
            return None
        total = self.total
        highest = int(total[total.argmax()])
        if highest <= REJECTED // 2:
            return None
        tied = total == highest
        rows = tied.nonzero()[0]
        row = rows[0] if len(rows) == 1 else rows[self._ranks[rows].argmin()]
        return int(row), highest, tied


def _same(array: Numbers) -> Callable[[], Numbers]:
    return lambda: array


class Classes:
    """The classes in use, most recently used last; the least recently used go when memory runs over."""

    def __init__(self, store: Store, budget: int = 512 << 20) -> None:
        """`budget`: bytes that the arrays of all classes may take."""
        self._store, self._budget = store, budget
        self._classes: dict[int, PodClass] = {}

    def get(self, key: int, make: Callable[[], PodClass]) -> PodClass:
        """The class of a number, current."""
        found = self._classes.pop(key, None)
        if found is None or found.version != self._store.epoch:
            found = make()
        elif found.error is None:
            found.refresh()
        self._classes[key] = found
        room = max(2, self._budget // (40 * max(1, len(self._store.nodes))))
        while len(self._classes) > room:
            del self._classes[next(iter(self._classes))]
        return found
