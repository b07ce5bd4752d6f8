"""Classes: pods that want the same of every plugin share one incrementally kept total over all nodes.

Per row, layers keep whether the row-local filters pass it and the sum of its scores that are not normalised, patched on the
rows that changed; per group (see `groups`) the class keeps the rest. Total = layers + group score; a decision is its
maximum. Exact, because nothing normalised is ever patched. Plugins cannot tell: they answer for the rows of a view.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar

import numpy as np

from stowplan.plugins.plugin import ScoringError
from stowplan.policy.compile import Profile
from stowplan.policy.evaluate import Opening, raw_scores
from stowplan.policy.groups import Groups, Values
from stowplan.policy.layers import DENSE_SHARE, FEASIBLE_FROM, REJECTED, Fixed, Local, Plan, anyone
from stowplan.policy.wide import Wide
from stowplan.state import Cluster, Mask, Numbers, Reach, Rows, Store

L = TypeVar("L", Fixed, Local)
LEAST_BUDGET, BUDGET_PER_NODE = 128 << 20, 5 << 10
"""Bytes that classes may take: at least the one, and the other for every node."""


class PodClass:
    """Totals of one class over all rows. Valid for one `store.epoch`; asks hold all that comes from elsewhere."""

    def __init__(self, plan: Plan, opening: Opening, store: Store, layers: Layers) -> None:
        self.opening, self._store = opening, store
        self._place = len(store.log)
        self.failing = opening.refusal is not None
        """whether there is no total: the pods are refused, or scoring fails for them"""
        self.held: list[Hashable] = []
        """keys of the layers"""
        self.nbytes = 0
        try:
            if not self.failing:
                self._build(plan, layers)
        except ScoringError:
            self.failing = True

    # Building

    def _build(self, plan: Plan, layers: Layers) -> None:
        asks, profile, nothing = self.opening.asks, plan.profile, Cluster(self._store, range(0))
        for plugin in plan.prepared:
            raw_scores(profile, plugin, asks[plugin.name], nothing, anyone(0))  # raises where scoring fails
        names = self.opening.names
        wanted = tuple(asks[name] for name in plan.names[Reach.NODE])
        key: Hashable = (profile.scheduler_name, "fixed", wanted, names)
        self._fixed = layers.hold(self, key, lambda: Fixed(plan, asks, names, self._store))
        wanted = tuple(asks[name] for name in plan.names[Reach.ROW])
        key = (profile.scheduler_name, "local", wanted)
        self._local = layers.hold(self, key, lambda: Local(plan, asks, self._store))
        self._local.refresh()
        self._wide = Wide(plan, asks, self._store, (self._fixed, self._local))
        self._own: Numbers | None = None
        """the total, where it is not that of the local layer plus a constant"""
        self._ranks, self._in_order = self._store.name_ranks(), self._store.named_in_order()
        self._withheld: frozenset[int] = frozenset()
        """rows that pass, yet are not to be chosen: they count as rejected for as long as they are withheld"""
        self._make_groups()

    def _make_groups(self) -> None:
        """Part the rows by all that tells them apart, until asking about the parts touches nothing new."""
        components = [Values(raw, pods_matter=False) for raw in self._fixed.raws]
        components += [Values(raw, pods_matter=True) for raw in self._local.raws]
        known = -1
        while len(self._wide.codes) > known:
            known = len(self._wide.codes)
            self._groups = Groups((*components, *self._wide.codes), self._acceptable())
            self._wide.start(self._groups)
        self._known, self._flips = known, len(self._local.flips)
        self._rebuild()

    def _acceptable(self) -> Mask:
        base, passed = self._fixed.base, self._local.passed
        found = passed if base is None else passed & (base > FEASIBLE_FROM)
        if self._withheld:
            found = found.copy()
            found[list(self._withheld)] = False
        return found

    def _accepts(self, row: int) -> bool:
        return row not in self._withheld and self._passes(row)

    def _passes(self, row: int) -> bool:
        base = self._fixed.base
        return bool(self._local.passed[row]) and (base is None or bool(base[row] > FEASIBLE_FROM))

    # Keeping current

    def refresh(self, withheld: frozenset[int]) -> None:
        """Bring the total up to date with the store's log, these rows withheld."""
        log, size = self._store.log, self._local.size
        self._local.refresh()
        changed = log.since(self._place, max(1, size // DENSE_SHARE))
        self._place = len(log)
        rows = slice(size) if changed is None else changed
        stirred = self._count_flips()
        stirred = self._groups.follow(rows, self._accepts) or stirred
        returned = self._withheld
        if returned or withheld:
            stirred = self._withhold(withheld) or stirred
        different = self._wide.refresh(stirred=stirred)
        if len(self._wide.codes) > self._known:
            self._make_groups()
        elif different or changed is None or (withheld and self._own is None):
            self._rebuild()
        elif self._own is not None:
            self._patch(changed if returned == withheld else np.concatenate((changed, list(returned))).astype(np.intp))
        if withheld:
            assert self._own is not None
            self._own[list(withheld)] = REJECTED

    def _withhold(self, rows: frozenset[int]) -> bool:
        """Withhold these rows and no others. True if scores of groups may change."""
        stirred, before = False, self._withheld
        if rows != before:
            for row in rows ^ before:
                if self._passes(row):
                    stirred |= self._groups.flip(row, row in before)
            self._withheld = rows
        return stirred

    def _count_flips(self) -> bool:
        """Follow rows that began or ceased to pass the local layer. True if scores of groups may change."""
        flips = self._local.flips
        if self._flips == len(flips):
            return False
        flipped = flips.since(self._flips)
        self._flips = len(flips)
        if flipped is None:
            self._groups.recount(self._acceptable())
            return True
        stirred, base = False, self._fixed.base
        for code in (flipped if base is None else flipped[base[flipped >> 1] > FEASIBLE_FROM]).tolist():
            if code >> 1 not in self._withheld:
                stirred |= self._groups.flip(code >> 1, bool(code & 1))
        return stirred

    def _rebuild(self) -> None:
        """The total of all rows."""
        if len(self._groups) == 1 and self._fixed.base is None and not self._withheld:
            self._own = None
        else:
            if self._own is None:
                self._own = np.empty(self._local.size, dtype=np.int64)
            if len(self._groups) == 1:
                self._own[:] = self._wide.scores[0]
            else:
                self._wide.scores.take(self._groups.of, out=self._own, mode="clip")
            self._own += self._local.total
            self._own += self._fixed.constant if self._fixed.base is None else self._fixed.base
        self.nbytes = self._groups.nbytes + (0 if self._own is None else self._own.nbytes)

    def _patch(self, rows: Rows) -> None:
        assert self._own is not None
        total = self._local.total.take(rows)
        total += self._wide.scores[0] if len(self._groups) == 1 else self._wide.scores.take(self._groups.of.take(rows))
        total += self._fixed.constant if self._fixed.base is None else self._fixed.base.take(rows)
        self._own[rows] = total

    # Deciding

    @property
    def faulty(self) -> bool:
        """Whether a filter has failed on some row."""
        return self._local.faulty or self._wide.faulty or self._fixed.faulty

    @property
    def feasible(self) -> int:
        """Number of nodes that pass every filter."""
        return int(self._groups.weights.dot(self._wide.accepted))

    def best(self) -> tuple[int, int] | None:
        """(row, total) of the highest total; ties go to the first name. None if no node fits."""
        if not self._local.size:
            return None
        total, added = self._totals()
        row = int(total.argmax())
        highest = int(total[row]) + added
        if highest < FEASIBLE_FROM:
            return None
        if not self._in_order:
            tied = (total == total[row]).nonzero()[0]
            row = int(tied[self._ranks[tied].argmin()])
        return row, highest

    def tied(self, highest: int) -> Mask:
        """Rows with this total."""
        total, added = self._totals()
        found: Mask = total == highest - added
        return found

    def _totals(self) -> tuple[Numbers, int]:
        """Totals, and what is to be added to each of them."""
        if self._own is not None:
            return self._own, 0
        return self._local.total, self._fixed.constant + int(self._wide.scores[0])


class Layers:
    """The layers in use by some class."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[Fixed | Local, int]] = {}
        """with the number of classes"""
        self.nbytes = 0

    def hold(self, user: PodClass, key: Hashable, make: Callable[[], L]) -> L:
        """The layer of a key, kept until it is released as often as it was held."""
        layer, users = self._kept.get(key, (None, 0))
        if layer is None:
            layer = make()
            self.nbytes += layer.nbytes
        self._kept[key] = layer, users + 1
        user.held.append(key)
        return layer  # type: ignore[return-value]  # a key says of which kind its layer is

    def release(self, user: PodClass) -> None:
        """A class is forgotten."""
        for key in user.held:
            layer, users = self._kept[key]
            if users > 1:
                self._kept[key] = layer, users - 1
            else:
                self.nbytes -= layer.nbytes
                del self._kept[key]


class Classes:
    """The classes in use, most recently used last; the least recently used go when memory runs over."""

    def __init__(self, store: Store, budget: int | None = None) -> None:
        """`budget`: bytes that the arrays of all classes may take; by default it follows the number of nodes."""
        self._store, self._budget = store, budget
        self._plans: dict[str, Plan] = {}
        self._start()

    def _start(self) -> None:
        self._classes: OrderedDict[int, PodClass] = OrderedDict()
        self._layers = Layers()
        self._own_bytes = 0
        self._epoch = self._store.epoch

    @property
    def nbytes(self) -> int:
        """Memory that the arrays of all classes take."""
        return self._own_bytes + self._layers.nbytes

    def __len__(self) -> int:
        return len(self._classes)

    def get(self, key: int, profile: Profile, opened: Callable[[], Opening], withheld: frozenset[int] = frozenset()) -> PodClass:
        """The class of a number, current; `opened` tells what it asks if it is new. Rows `withheld` are not to be chosen."""
        if self._epoch != self._store.epoch:
            self._start()
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = PodClass(self._plan(profile), opened(), self._store, self._layers)
            if withheld and not found.failing:
                found.refresh(withheld)
            self._own_bytes += found.nbytes
            self._trim()
        else:
            self._classes.move_to_end(key)
            if not found.failing:
                before = found.nbytes
                found.refresh(withheld)
                self._own_bytes += found.nbytes - before
        return found

    def _plan(self, profile: Profile) -> Plan:
        name = profile.scheduler_name
        if name not in self._plans:
            self._plans[name] = Plan(profile)
        return self._plans[name]

    def _trim(self) -> None:
        budget = self._budget
        if budget is None:
            budget = max(LEAST_BUDGET, BUDGET_PER_NODE * len(self._store.nodes))
        while len(self._classes) > 1 and self.nbytes > budget:
            _, oldest = self._classes.popitem(last=False)
            self._own_bytes -= oldest.nbytes
            self._layers.release(oldest)
