"""Consumable capacity: how much of a device a request takes, and whether that much is left.

Upstream: consumable_capacity.go of dynamic-resource-allocation/structured, gate DRAFractionalCapacityRange on. All amounts
are exact nano units; upstream's int64 arithmetic shows only in what it refuses.
"""

from __future__ import annotations

from collections.abc import Mapping

from stowplan.objects import Capacity, Device, RequestPolicy, Steps, milli, whole

Nanos = Mapping[str, int]
MOST = 2**63 - 1
MILLI = 10**6
NANO = 10**9
UNREPRESENTABLE = "capacity request cannot be represented in the device's range arithmetic"


class CapacityError(Exception):
    """A request that makes no sense for a device: it ends the whole search."""


def consumed(wanted: Nanos, device: Device) -> dict[str, int]:
    """What a request takes of every capacity of a device. CapacityError for amounts that upstream cannot handle."""
    taken: dict[str, int] = {}
    for name, capacity in device.capacity.items():
        try:
            taken[name] = amount = _taken(wanted.get(name), capacity)
        except CapacityError as error:
            raise CapacityError(f'capacity "{name}": {error}') from None
        if amount < 0:
            raise CapacityError(f'capacity "{name}": capacity value is negative')
    return taken


def fits(wanted: Nanos, device: Device, used: Nanos) -> bool:
    """Can a request be met by a device, of which `used` is taken? CapacityError as for `consumed`."""
    if any(name not in device.capacity for name in wanted):
        return False
    taken = consumed(wanted, device)
    return all(
        not _forbidden(taken[name], capacity.policy) and used.get(name, 0) + taken[name] <= capacity.value
        for name, capacity in device.capacity.items()
    )


def _taken(wanted: int | None, capacity: Capacity) -> int:
    policy = capacity.policy
    if wanted is None:
        return capacity.value if policy is None or policy.default is None else policy.default
    if policy is None:
        return wanted
    if policy.steps is not None and policy.steps.min is not None:
        return _rounded(wanted, policy.steps.min, policy.steps)
    return next((value for value in policy.values or () if wanted <= value), wanted)


def _rounded(wanted: int, lowest: int, steps: Steps) -> int:
    """The amount, or the next step above it."""
    if wanted < lowest:
        return lowest
    if not steps.step:
        return wanted
    fine = _in_milli(steps)
    if fine and not _is_milli(wanted):
        raise CapacityError(f"{UNREPRESENTABLE}: request {_text(wanted)} is not a representable milli value")
    if not fine and wanted > MOST * NANO:
        raise CapacityError(f"{UNREPRESENTABLE}: request {_text(wanted)} exceeds MaxInt64")
    units, unit = (milli, MILLI) if fine else (whole, NANO)
    low, step = units(lowest), units(steps.step)
    count = -(-(units(wanted) - low) // step)
    if (fine or low >= 0) and count > (MOST - low) // step:
        limit = "the milli-value range" if fine else "MaxInt64"
        raise CapacityError(f"{UNREPRESENTABLE}: rounding request {_text(wanted)} up to the next step passes {limit}")
    return (low + step * count) * unit


def _forbidden(amount: int, policy: RequestPolicy | None) -> bool:
    """Does the policy exclude this amount?"""
    if policy is None or amount == policy.default:
        return False
    if policy.steps is not None:
        return _outside(amount, policy.steps)
    return bool(policy.values) and amount not in (policy.values or ())


def _outside(amount: int, steps: Steps) -> bool:
    if steps.max is not None and amount > steps.max:
        return True
    if not steps.step:
        return False
    fine = _in_milli(steps)
    if fine and not _is_milli(amount):
        return True
    units = milli if fine else whole
    return bool((units(amount) - units(steps.min or 0)) % units(steps.step))


def _in_milli(steps: Steps) -> bool:
    """Upstream `useMilli`: all bounds are whole milli units within int64."""
    return all(bound is None or _is_milli(bound) for bound in (steps.min, steps.max, steps.step)) and (
        steps.step is None or steps.step >= MILLI
    )


def _is_milli(nano: int) -> bool:
    return nano % MILLI == 0 and abs(nano // MILLI) <= MOST


def _text(nano: int) -> str:
    """A quantity as upstream prints it, in powers of ten."""
    suffixes = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
    power = 0
    while nano and nano % 1000 == 0 and power < len(suffixes) - 1:
        nano, power = nano // 1000, power + 1
    return f"{nano}{suffixes[power] if nano else ''}"
