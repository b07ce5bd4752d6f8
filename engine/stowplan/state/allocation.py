"""What a node has of a resource and what it has given out, as scores compare it; and Go's integer division."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from stowplan.objects import Amounts, is_scalar
from stowplan.state.catalogue import ALLOCATABLE, NONZERO_REQUESTED, REQUESTED
from stowplan.state.cluster import Cluster
from stowplan.state.columns import Mask, Numbers
from stowplan.state.devices import DeviceTest, device_totals

NONZERO = frozenset({"cpu", "memory"})


def quotient(numerator: Numbers, denominator: Numbers) -> Numbers:
    """Go's int64 division by a number >= 0: truncates toward zero, wraps as int64 does. Dividing by 0 gives the numerator."""
    divisor = np.maximum(denominator, 1)
    floor = numerator // divisor
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
class Share:
    """One configured resource over the asked rows."""

    weight: int
    counts: Mask
    """rows where the resource takes part"""
    allocatable: Numbers
    used: Numbers
    wanted: int
    """what the pod asks"""
    everywhere: bool
    """whether it takes part on every row"""

    @property
    def divisor(self) -> Numbers:
        """Allocatable amounts to divide by; 1 on the rows where the resource takes no part."""
        return self.allocatable if self.everywhere else np.maximum(self.allocatable, 1)


def shares(
    resources: Iterable[Weighted], pod: Amounts, cluster: Cluster, *, nonzero: bool, counted: DeviceTest | None = None
) -> Iterator[Share]:
    """The resources that take part in scoring (resourceAllocationScorer.calculateResourceAllocatableRequest).

    `nonzero` counts cpu and memory of running pods with the defaults for silent containers. `counted` tells which devices
    stand for an extended resource on nodes that list none of it; None where none do.
    """
    for resource in resources:
        name, wanted = resource.name, pod.get(resource.name)
        scalar = is_scalar(name)
        if (scalar and wanted == 0) or not (scalar or name in NONZERO or name == "ephemeral-storage"):
            continue
        allocatable = cluster[ALLOCATABLE][name]
        used = cluster[NONZERO_REQUESTED if nonzero and name in NONZERO else REQUESTED][name]
        counts, everywhere = cluster[ALLOCATABLE].known(name)
        if counted is not None and (totals := device_totals(name, cluster, counted)) is not None:
            backed = (allocatable == 0) & (totals[0] > 0)
            allocatable, used = np.where(backed, totals[0], allocatable), np.where(backed, totals[1], used)
            counts, everywhere = allocatable != 0, False
        yield Share(resource.weight, counts, allocatable, used, wanted, everywhere)
