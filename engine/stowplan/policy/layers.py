"""Layers: what plugins that look at one row say of every row, shared by all classes that ask them the same.

A `Fixed` layer holds what only node events change, a `Local` one what pods on the row change; the latter is patched on the
rows that changed since somebody last looked. Valid for one `store.epoch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from stowplan.plugins.plugin import Plugin
from stowplan.policy.compile import Profile
from stowplan.policy.evaluate import forgets, lost_state, raw_scores
from stowplan.state import ChangeLog, Cluster, Feasible, Mask, Numbers, Reach, Rows, Store

REJECTED = -(1 << 60)
"""Total of a row that some filter rejects; far below any sum of scores, and four of them still fit int64."""
FEASIBLE_FROM = REJECTED >> 1
"""Totals from here on are those of rows that no filter rejects."""
BLOCK = 8192
"""Rows that are evaluated at once where all are: temporary arrays stay in the processor's cache."""
DENSE_SHARE = 3
"""With more than one in three rows changed, evaluating all rows is cheaper than patching."""

Raw = Callable[[Cluster, Feasible], Numbers | None]
Rejects = Callable[[Cluster], "Mapping[Any, Mask] | None"]


def reach_of(plugin: Plugin) -> Reach:
    """How far a change of what the plugin reads can be felt."""
    reaches = {column.reach for column in plugin.reads}
    return next((reach for reach in (Reach.DOMAIN, Reach.ROW) if reach in reaches), Reach.NODE)


class Plan:
    """The plugins of a profile by where their answers can change: never, on the row, or by group."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        plugins, points = profile.plugins, profile.points
        self._filters: dict[Reach, list[Plugin]] = {reach: [] for reach in Reach}
        self._scores: dict[Reach, list[Plugin]] = {reach: [] for reach in Reach}
        for name in points["filter"]:
            if plugins[name].rejects is not None:
                self._filters[reach_of(plugins[name])].append(plugins[name])
        for name in points["score"]:
            self._scores[reach_of(plugins[name])].append(plugins[name])
        self.prepared = [plugins[name] for name in points["preScore"] if name not in points["score"]]
        """score plugins that only prepare: they can fail all the same"""
        self.names = {reach: tuple(dict.fromkeys(p.name for p in (*self._filters[reach], *self._scores[reach]))) for reach in Reach}

    def filters(self, reach: Reach, asks: Mapping[str, Any]) -> list[tuple[Plugin, Any]]:
        """Filters that have something to say, with their asks."""
        return [(plugin, asks[plugin.name]) for plugin in self._filters[reach] if asks[plugin.name] is not None]

    def scores(self, reach: Reach, asks: Mapping[str, Any], *, normalised: bool) -> list[Score]:
        """Score plugins of one reach whose scores are normalised or not. Raises ScoringError where scoring fails."""
        chosen = [plugin for plugin in self._scores[reach] if (plugin.normalise is not None) is normalised]
        return [Score(p, asks[p.name], self.profile.factor(p), raw_of(self.profile, p, asks[p.name])) for p in chosen]


@dataclass(frozen=True, slots=True)
class Score:
    """A score plugin with the ask of a class."""

    plugin: Plugin
    ask: Any
    factor: int
    """what a step of it counts in totals"""
    raw: Raw


def raw_of(profile: Profile, plugin: Plugin, ask: Any) -> Raw:
    """`raw_scores` of one plugin, bound as early as possible. Raises ScoringError where scoring fails for any row."""
    plain = ask is not None and plugin.scores is not None and not forgets(profile, plugin)
    plain = plain and lost_state(profile, plugin, "preScore") is None and lost_state(profile, plugin, "score") is None
    if plain and (plugin.name in profile.points["preScore"] or "preScore" not in plugin.points):
        assert plugin.scores is not None
        return partial(plugin.scores, ask)
    return partial(raw_scores, profile, plugin, ask)


def blocks(size: int) -> Iterator[range]:
    """All rows, in pieces."""
    return (range(start, min(start + BLOCK, size)) for start in range(0, size, BLOCK))


class Layer:
    """Filters and scores of one reach for one set of asks."""

    def __init__(self, plan: Plan, reach: Reach, asks: Mapping[str, Any], store: Store) -> None:
        self._store = store
        self._filters = plan.filters(reach, asks)
        self._plain = plan.scores(reach, asks, normalised=False)
        self.normalised = plan.scores(reach, asks, normalised=True)
        self.size = len(store.nodes)
        self.raws: list[Numbers] = []
        """raw scores of `normalised` over all rows"""
        self.faulty = False
        """whether a filter has failed on some row: that ends an attempt, unless another filter rejects the row before"""

    def _rejected(self, cluster: Cluster) -> Mask | None:
        """Rows that some filter rejects; None for none."""
        rejected = None
        for plugin, ask in self._filters:
            assert plugin.rejects is not None
            for reason, mask in (plugin.rejects(ask, cluster) or {}).items():
                if reason.error and np.count_nonzero(mask):
                    self.faulty = True
                rejected = mask if rejected is None else rejected | mask
        return rejected

    def _summed(self, cluster: Cluster) -> Numbers | int:
        """Weighted sum of the scores that are not normalised."""
        total: Numbers | None = None
        everyone = anyone(cluster.size)
        for score in self._plain:
            raw = score.raw(cluster, everyone)
            if raw is not None:
                weighted = raw if score.factor == 1 else score.factor * raw
                total = weighted if total is None else total + weighted
        return 0 if total is None else total

    def _keep_raws(self) -> None:
        """Make room for the raw values of the normalised scores; those that skip drop out."""
        nothing = Cluster(self._store, range(0))
        self.normalised = [score for score in self.normalised if score.raw(nothing, anyone(0)) is not None]
        self.raws = [np.empty(self.size, dtype=np.int64) for _ in self.normalised]

    def _write_raws(self, cluster: Cluster, rows: Rows | slice) -> None:
        for score, raws in zip(self.normalised, self.raws, strict=True):
            raw = score.raw(cluster, anyone(cluster.size))
            raws[rows] = 0 if raw is None else raw

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return sum(raw.nbytes for raw in self.raws if raw.strides != (0,))


def _without_memory(array: Numbers) -> Numbers:
    """The array; where all numbers are the same, one that takes no memory."""
    return np.broadcast_to(array[:1].copy(), array.shape) if len(array) and (array == array[0]).all() else array


@lru_cache(maxsize=256)
def anyone(size: int) -> Feasible:
    """A feasible set for scores that do not look at it."""
    return Feasible(np.ones(size, dtype=np.int64))


class Fixed(Layer):
    """What only node events change."""

    def __init__(self, plan: Plan, asks: Mapping[str, Any], names: Iterable[str] | None, store: Store) -> None:
        """`names`: the only nodes that may be chosen, None for all."""
        super().__init__(plan, Reach.NODE, asks, store)
        self.constant = 0 if plan.profile.points["score"] else 1  # a profile without score plugins gives each node 1
        self.base: Numbers | None = None
        """sum of scores by row, REJECTED where a filter rejects; None where it is `constant` everywhere"""
        self._keep_raws()
        base = np.full(self.size, self.constant, dtype=np.int64)
        for block in blocks(self.size):
            cluster, rows = Cluster(store, block), slice(block.start, block.stop)
            rejected = self._rejected(cluster)
            base[rows] += self._summed(cluster)
            if rejected is not None:
                base[rows][rejected] = REJECTED
            self._write_raws(cluster, rows)
        if names is not None:
            wanted = [store.row_of[name] for name in names if name in store.row_of]
            kept = base[wanted]
            base[:] = REJECTED
            base[wanted] = kept
        if self.size and (base == base[0]).all() and base[0] > FEASIBLE_FROM:
            self.constant = int(base[0])
        else:
            self.base = base
        self.raws = [_without_memory(raw) for raw in self.raws]

    @property
    def nbytes(self) -> int:
        return super().nbytes + (0 if self.base is None else self.base.nbytes)


class Local(Layer):
    """What pods on the row change, patched."""

    def __init__(self, plan: Plan, asks: Mapping[str, Any], store: Store) -> None:
        super().__init__(plan, Reach.ROW, asks, store)
        self._place = len(store.log)
        self.total: Numbers = np.zeros(self.size, dtype=np.int64)
        """sum of scores by row, REJECTED where a filter rejects"""
        self.passed: Mask = np.ones(self.size, dtype=np.bool_)
        self.flips = ChangeLog()
        """rows that began (2 * row + 1) or ceased (2 * row) to pass"""
        self._all_pass = True
        """whether no row is rejected"""
        self._keep_raws()
        self._evaluate_all()

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.total.nbytes + self.passed.nbytes

    def refresh(self) -> None:
        """Ask about the rows that have changed since."""
        log = self._store.log
        if self._place == len(log):
            return
        rows = log.since(self._place, max(1, self.size // DENSE_SHARE))
        self._place = len(log)
        if rows is None:
            before = self.passed.copy()
            self._evaluate_all()
            self._note(np.arange(self.size), before)
            return
        known = None if self._all_pass else self.passed[rows]
        self._evaluate(Cluster(self._store, rows), rows)
        if not self._all_pass:
            self._note(rows, known)

    def _evaluate_all(self) -> None:
        for block in blocks(self.size):
            self._evaluate(Cluster(self._store, block), slice(block.start, block.stop))

    def _evaluate(self, cluster: Cluster, rows: Rows | slice) -> None:
        rejected = self._rejected(cluster)
        self.total[rows] = self._summed(cluster)
        if rejected is None or not np.count_nonzero(rejected):
            if not self._all_pass:
                self.passed[rows] = True
        else:
            self._all_pass = False
            self.total[rows] = np.where(rejected, REJECTED, self.total[rows])
            self.passed[rows] = ~rejected
        if self.raws:
            self._write_raws(cluster, rows)

    def _note(self, rows: Rows, before: Mask | None) -> None:
        """Write down which rows passed before (None: all) and do not now, or the other way round."""
        after = self.passed[rows]
        flipped = ~after if before is None else before != after
        if np.count_nonzero(flipped):
            changed = np.unique(rows[flipped])  # a row may have changed twice
            self.flips.extend((2 * changed + self.passed[changed]).tolist())
