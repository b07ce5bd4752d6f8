"""Constraints of a claim over the devices picked for it so far.

Upstream: `matchAttributeConstraint` and `distinctAttributeConstraint` of dynamic-resource-allocation/structured.
"""

from __future__ import annotations

from stowplan.objects import Attribute, Device, DeviceConstraint


class Tracker:
    """One constraint and the attribute values it has accepted. Every `accept` that says yes is undone by one `undo`."""

    def __init__(self, constraint: DeviceConstraint) -> None:
        self._constraint = constraint
        self._values: list[Attribute] = []

    def covers(self, request: str, subrequest: str) -> bool:
        """Is the constraint about devices of this request?"""
        named = self._constraint.requests
        return not named or request in named or (bool(subrequest) and f"{request}/{subrequest}" in named)

    def accept(self, request: str, subrequest: str, device: Device) -> bool:
        """Can the device be added? If so, it is."""
        if not self.covers(request, subrequest):
            return True
        value = device.attribute(self._constraint.attribute or "")
        if value is None or (self._values and not self._agrees(value)):
            return False
        self._values.append(value)
        return True

    def _agrees(self, value: Attribute) -> bool:
        if not value.type:
            return False
        return value not in self._values if self._constraint.distinct else value == self._values[0]

    def state(self) -> object:
        """What the answers of `accept` depend on."""
        return frozenset(self._values if self._constraint.distinct else self._values[:1])

    def undo(self, request: str, subrequest: str) -> None:
        """Take back the last device."""
        if self.covers(request, subrequest):
            self._values.pop()
