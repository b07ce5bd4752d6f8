"""What a node has of a resource and what it has given out, as scores compare it; and Go's integer division."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from stowplan.objects import Amounts, is_scalar
from stowplan.state.amounts import PLAIN, Floats
from stowplan.state.catalogue import ALLOCATABLE, LEDGER, NONZERO_REQUESTED, REQUESTED
from stowplan.state.cluster import Cluster
from stowplan.state.columns import Mask, Numbers
from stowplan.state.devices import DeviceTest, device_totals
from stowplan.state.ledger import Entries

# NumPy takes an array of no dimensions for a constant a third of a microsecond faster than a number
ZERO: Floats = np.array(0.0)
HUNDRED: Floats = np.array(100.0)
NONZERO = frozenset({"cpu", "memory"})
MOST_WEIGHT = 1 << 40
"""Weighted sums of scores up to 100 below this are exact in float64, and so is their truncated mean."""
NATIVE = NONZERO | {"ephemeral-storage"}


def quotient(numerator: Numbers, denominator: Numbers | np.int64) -> Numbers:
    """Go's int64 division by a number >= 0: truncates toward zero, wraps as int64 does. Dividing by 0 gives the numerator."""
    divisor = np.maximum(denominator, 1)
    floor: Numbers = numerator // divisor
    if numerator.min(initial=0) < 0:
        floor += (numerator < 0) & (floor * divisor != numerator)
    return floor


class Weighted(Protocol):
    """A resource and how much it counts."""

    @property
    def name(self) -> str: ...

    @property
    def weight(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Asked:
    """The resources that are scored for one pod, and what it wants of each as a column."""

    names: tuple[str, ...]
    weights: Numbers
    wanted: Numbers
    small: bool
    """whether it wants less of each than float64 is exact for"""
    float_weights: Floats
    float_wanted: Floats
    total: Floats
    """of the weights, a number"""
    float_stages: Floats
    """nothing, then what it wants: 2 x resources x 1"""


@dataclass(slots=True)
class Shares:
    """The resources that take part in scoring everywhere, in float64: exact integers."""

    asked: Asked
    entries: Entries

    def free(self) -> Floats:
        """What would be left with the pod there, 0 where it is more than there is; may be written to."""
        free: Floats = self.entries.left - self.asked.float_wanted
        return np.maximum(free, ZERO, out=free)

    def given_out(self) -> Floats:
        """What would be given out with the pod there, no more than there is; may be written to."""
        return np.minimum(self.entries.used + self.asked.float_wanted, self.entries.allocatable)

    def odd(self) -> OddShares:
        """The same in integers."""
        allocatable = self.entries.allocatable.astype(np.int64)
        return OddShares(self.asked, allocatable, self.entries.used.astype(np.int64), np.ones(allocatable.shape, dtype=np.bool_))

    def hundredths(self, amounts: Floats) -> Floats:
        """100 * amounts / allocatable for 0 <= amounts <= allocatable, as Go divides; overwrites them."""
        amounts *= HUNDRED
        amounts /= self.entries.allocatable
        return np.floor(amounts, out=amounts)

    def mean(self, scores: Floats) -> Numbers:
        """Weighted mean of scores >= 0, truncated."""
        total: Floats = self.asked.float_weights.dot(scores)  # quicker than @ on short arrays
        total /= self.asked.total
        found: Numbers = total.astype(np.int64)
        return found


@dataclass(frozen=True, slots=True)
class OddShares:
    """As `Shares` for amounts of any size, int64, and resources that some rows lack."""

    asked: Asked
    allocatable: Numbers
    used: Numbers
    counts: Mask
    """where a resource takes part"""

    @property
    def requested(self) -> Numbers:
        """What would be given out with the pod there."""
        return self.used + self.asked.wanted

    def free(self) -> Numbers:
        """What would be left with the pod there, 0 where it is more than there is."""
        free: Numbers = np.maximum(self.allocatable - self.requested, 0)
        return free

    def given_out(self) -> Numbers:
        """What would be given out with the pod there, no more than there is."""
        return np.minimum(self.requested, self.allocatable)

    def odd(self) -> OddShares:
        """The same, which is in integers already."""
        return self

    def hundredths(self, amounts: Numbers) -> Numbers:
        """100 * amounts / allocatable for amounts >= 0, as Go divides."""
        return quotient(amounts * 100, self.allocatable)

    def mean(self, scores: Numbers) -> Numbers:
        """Weighted mean of scores >= 0 over the resources that take part on each row, truncated; 0 where none does."""
        mean: Numbers = quotient(self.asked.weights @ (scores * self.counts), self.asked.weights @ self.counts)
        return mean


@lru_cache(maxsize=4096)
def scored(resources: tuple[Weighted, ...], pod: Amounts) -> Asked:
    """What is scored: extended resources only if the pod asks for them."""
    chosen = [
        r for r in resources if (pod.get(r.name) if is_scalar(r.name) else r.name in NONZERO or r.name == "ephemeral-storage")
    ]
    wanted = np.array([pod.get(resource.name) for resource in chosen], dtype=np.int64).reshape(-1, 1)
    weights = np.array([r.weight for r in chosen], dtype=np.int64)
    small = bool(chosen) and bool(((wanted >= 0) & (wanted < PLAIN)).all()) and 0 < weights.sum() < MOST_WEIGHT
    stages = np.stack([np.zeros(wanted.shape), wanted.astype(np.float64)])
    floats = (weights.astype(np.float64), stages[1], np.array(weights.sum(), dtype=np.float64), stages)
    return Asked(_same_names(tuple(r.name for r in chosen)), weights, wanted, small, *floats)


@lru_cache(maxsize=4096)
def _same_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """One object for equal names: what is kept by name is then found by identity."""
    return names


def shares(asked: Asked, cluster: Cluster, *, nonzero: bool, counted: DeviceTest | None = None) -> Shares | OddShares:
    """What nodes have and have given out of the resources that count (resourceAllocationScorer).

    `nonzero` counts cpu and memory of running pods with the defaults for silent containers. `counted` tells which devices
    stand for an extended resource on nodes that list none of it; None where none do.
    """
    names = asked.names
    if counted is None and asked.small:
        entries = cluster[LEDGER].entries(names, nonzero=nonzero)
        if entries is not None:
            return Shares(asked, entries)
    allocatable, used = cluster[ALLOCATABLE].matrix(names), _given_out(names, cluster, nonzero=nonzero)
    for place, name in enumerate(names):
        if counted is not None and (totals := device_totals(name, cluster, counted)) is not None:
            backed = (np.arange(len(names)) == place)[:, None] & (allocatable == 0) & (totals[0] > 0)
            allocatable, used = np.where(backed, totals[0], allocatable), np.where(backed, totals[1], used)
    return OddShares(asked, allocatable, used, allocatable != 0)


def _given_out(names: tuple[str, ...], cluster: Cluster, *, nonzero: bool) -> Numbers:
    if nonzero and NONZERO.issuperset(names):
        return cluster[NONZERO_REQUESTED].matrix(names)
    used = cluster[REQUESTED].matrix(names)
    if nonzero and (places := [place for place, name in enumerate(names) if name in NONZERO]):
        used = used.copy()
        for place in places:
            used[place] = cluster[NONZERO_REQUESTED][names[place]]
    return used
