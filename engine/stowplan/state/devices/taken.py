"""What claims hold of all devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from stowplan.objects import DeviceID, ResourceClaim

NOTHING: Mapping[str, int] = {}


class Taken:
    """Devices in use, whole or in part (upstream `AllocatedState`). Devices held with admin access are not in use."""

    def __init__(self) -> None:
        self._whole: Counter[DeviceID] = Counter()
        self._shares: Counter[DeviceID] = Counter()
        self._consumed: dict[DeviceID, Counter[str]] = {}

    def count(self, claim: ResourceClaim, sign: int) -> Iterable[DeviceID]:
        """A claim came (+1) or went (-1). Returns the devices that this touches."""
        touched = set()
        for held in claim.allocation.devices if claim.allocation is not None else ():
            if held.admin:
                continue
            touched.add(held.id)
            counts = self._whole if held.share is None else self._shares
            counts[held.id] += sign
            if not counts[held.id]:
                del counts[held.id]
            if held.share is not None:
                self._consume(held.id, held.consumed, sign)
        return touched

    def _consume(self, device: DeviceID, amounts: Iterable[tuple[str, int]], sign: int) -> None:
        used = self._consumed.setdefault(device, Counter())
        for name, amount in amounts:
            used[name] += sign * amount
        if not self._shares[device]:
            del self._consumed[device]

    def whole(self, device: DeviceID) -> bool:
        """Does a claim hold the device for itself?"""
        return device in self._whole

    def shared(self, device: DeviceID) -> bool:
        """Does a claim hold a part of the device?"""
        return device in self._shares

    def at_all(self, device: DeviceID) -> bool:
        """Does a claim hold the device or a part of it?"""
        return device in self._whole or device in self._shares

    def used(self, device: DeviceID) -> Mapping[str, int]:
        """Capacity in use, by name."""
        return self._consumed.get(device, NOTHING)
