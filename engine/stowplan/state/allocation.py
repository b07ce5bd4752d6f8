"""What a node has of a resource and what it has given out, as scores compare it; and Go's integer division."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from stowplan.objects import Amounts, is_scalar
from stowplan.state.catalogue import ALLOCATABLE, NONZERO_REQUESTED, REQUESTED
from stowplan.state.cluster import Cluster
from stowplan.state.columns import Mask, Numbers
from stowplan.state.devices import DeviceTest, device_totals

NONZERO = frozenset({"cpu", "memory"})
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
class Shares:
    """The resources that take part in scoring, as matrices of resources x asked rows."""

    weights: Numbers
    """of each resource"""
    allocatable: Numbers
    used: Numbers
    wanted: Numbers
    """what the pod asks of each resource, as a column"""
    counts: Mask | None
    """where a resource takes part; None: everywhere, with plain amounts"""

    @property
    def requested(self) -> Numbers:
        """What would be given out with the pod there."""
        return self.used + self.wanted

    def hundredths(self, amounts: Numbers) -> Numbers:
        """100 * amounts / allocatable for amounts >= 0, as Go divides."""
        scaled = amounts * 100
        return quotient(scaled, self.allocatable) if self.counts is not None else scaled // self.allocatable

    def mean(self, scores: Numbers) -> Numbers:
        """Weighted mean of scores >= 0 over the resources that take part on each row, truncated; 0 where none does."""
        if self.counts is None and len(self.weights):
            total: Numbers = self.weights @ scores // self.weights.sum()
            return total
        counts = self.allocatable != 0 if self.counts is None else self.counts
        return quotient(self.weights @ (scores * counts), self.weights @ counts)


@lru_cache(maxsize=4096)
def _chosen(resources: tuple[Weighted, ...], pod: Amounts) -> tuple[tuple[str, ...], Numbers, Numbers]:
    """Names, weights and wanted amounts (a column) of the resources that are scored: extended ones only if asked for."""
    chosen = [
        r for r in resources if (pod.get(r.name) if is_scalar(r.name) else r.name in NONZERO or r.name == "ephemeral-storage")
    ]
    wanted = np.array([pod.get(resource.name) for resource in chosen], dtype=np.int64).reshape(-1, 1)
    return tuple(r.name for r in chosen), np.array([r.weight for r in chosen], dtype=np.int64), wanted


def shares(
    resources: tuple[Weighted, ...], pod: Amounts, cluster: Cluster, *, nonzero: bool, counted: DeviceTest | None = None
) -> Shares:
    """What nodes have and have given out of the resources that count (resourceAllocationScorer).

    `nonzero` counts cpu and memory of running pods with the defaults for silent containers. `counted` tells which devices
    stand for an extended resource on nodes that list none of it; None where none do.
    """
    names, weights, wanted = _chosen(resources, pod)
    have = cluster[ALLOCATABLE]
    allocatable, used = have.matrix(names), _given_out(names, cluster, nonzero=nonzero)
    if counted is None and all(have.plain(name) for name in names):
        return Shares(weights, allocatable, used, wanted, None)
    for place, name in enumerate(names):
        if counted is not None and (totals := device_totals(name, cluster, counted)) is not None:
            backed = (np.arange(len(names)) == place)[:, None] & (allocatable == 0) & (totals[0] > 0)
            allocatable, used = np.where(backed, totals[0], allocatable), np.where(backed, totals[1], used)
    return Shares(weights, allocatable, used, wanted, allocatable != 0)


def _given_out(names: tuple[str, ...], cluster: Cluster, *, nonzero: bool) -> Numbers:
    if nonzero and NONZERO.issuperset(names):
        return cluster[NONZERO_REQUESTED].matrix(names)
    used = cluster[REQUESTED].matrix(names)
    if nonzero and (places := [place for place, name in enumerate(names) if name in NONZERO]):
        used = used.copy()
        for place in places:
            used[place] = cluster[NONZERO_REQUESTED][names[place]]
    return used
