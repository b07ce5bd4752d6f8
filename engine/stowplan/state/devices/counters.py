"""Counters that the devices of a pool share (partitionable devices): what is left, and what a search has taken.

Upstream: `checkAvailableCounters` of dynamic-resource-allocation/structured.
"""

from __future__ import annotations

from collections.abc import Hashable

from stowplan.objects import Device
from stowplan.state.devices.pools import Pool
from stowplan.state.devices.taken import Taken

Key = tuple[str, str]
"""counter set, counter"""


class Ledger:
    """The counters of all pools, as one search changes them."""

    def __init__(self, taken: Taken) -> None:
        self._devices = taken
        self._left: dict[Pool, dict[Key, int]] = {}
        self._charged: dict[tuple[Pool, Key], int] = {}

    def state(self) -> Hashable:
        """What the search has taken."""
        return frozenset(item for item in self._charged.items() if item[1])

    def reserve(self, pool: Pool, device: Device) -> bool:
        """Take what the device consumes, if no counter of the pool is overdrawn then, be it by others."""
        left = self._left.get(pool)
        if left is None:
            left = self._left[pool] = self._remaining(pool)
        if not left:
            return False
        self.charge(pool, device, 1)
        for name, taken in device.counters:
            for counter in taken:
                key = (name, counter)
                if left[key] < self._charged[pool, key]:
                    self.charge(pool, device, -1)
                    return False
        return True

    def _remaining(self, pool: Pool) -> dict[Key, int]:
        """Counters of a pool less what devices in use consume; nothing at all if those overdraw one."""
        remaining = dict(pool.counters)
        for device in (*(device for device, _ in pool.devices), *pool.elsewhere):
            if device.counters and self._devices.at_all(device.id):
                for name, taken in device.counters:
                    for counter, amount in taken.items():
                        remaining[name, counter] -= amount
        return {} if any(amount < 0 for amount in remaining.values()) else remaining

    def charge(self, pool: Pool, device: Device, sign: int) -> None:
        """Take (+1) what the device consumes, or give it back (-1)."""
        for name, taken in device.counters:
            for counter, amount in taken.items():
                key = (pool, (name, counter))
                self._charged[key] = self._charged.get(key, 0) + sign * amount
