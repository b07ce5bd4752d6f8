"""Device selectors over facts: what the allocation of devices asks the language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from stowplan.objects import Device
from stowplan.state.devices import SelectorError

if TYPE_CHECKING:
    from stowplan.cel.device import Device as Candidate

_views: WeakKeyDictionary[Device, Candidate] = WeakKeyDictionary()


def selects(expression: str, fact: Device) -> bool:
    """Whether a CEL selector takes a device. SelectorError with upstream's text where that cannot be said."""
    from stowplan.cel.device import CelCompileError, CelRuntimeError, device, matches  # noqa: PLC0415 - most clusters have no devices

    try:
        view = _views.get(fact)
        if view is None:
            view = _views[fact] = device(fact.id.driver, _written(fact))
        return matches(expression, view)
    except CelCompileError as error:
        raise SelectorError(str(error), compiling=True) from None
    except CelRuntimeError as error:
        raise SelectorError(str(error)) from None


def _written(fact: Device) -> dict[str, Any]:
    """The device as a ResourceSlice writes it."""
    return {
        "attributes": {name: {attribute.type: attribute.value} for name, attribute in fact.attributes.items()},
        "capacity": {name: {"value": f"{capacity.value}n"} for name, capacity in fact.capacity.items()},
        "allowMultipleAllocations": fact.shared,
    }
