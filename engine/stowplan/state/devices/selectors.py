"""How the search asks a CEL selector about a device: a seam, since devices know no CEL."""

from __future__ import annotations

from collections.abc import Callable

from stowplan.objects import Device

DeviceTest = Callable[[str, Device], bool]
"""(CEL expression, device) -> whether the device is selected. SelectorError if that cannot be said."""


class SelectorError(Exception):
    """A CEL selector that fails; the text says how. `compiling`: for every device alike."""

    def __init__(self, text: str, *, compiling: bool = False) -> None:
        super().__init__(text)
        self.compiling = compiling
