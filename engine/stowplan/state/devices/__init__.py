"""Devices, and the search for those that a pod's claims ask for."""

from stowplan.state.devices.allocator import AllocationError, Pick, Picks, SearchLimitError
from stowplan.state.devices.column import DEVICES, Devices, Finder
from stowplan.state.devices.selectors import DeviceTest, SelectorError
from stowplan.state.devices.totals import device_stamp, device_totals

__all__ = [
    "DEVICES",
    "AllocationError",
    "DeviceTest",
    "Devices",
    "Finder",
    "Pick",
    "Picks",
    "SearchLimitError",
    "SelectorError",
    "device_stamp",
    "device_totals",
]
