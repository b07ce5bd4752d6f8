"""Kubernetes quantities as exact integers of nano units.

Upstream: `ParseQuantity` of k8s.io/apimachinery/pkg/api/resource. It keeps nine decimals and rounds what is finer away
from zero, so a count of nano units holds every quantity exactly, sums need no decimals, and rounding to scheduler
units happens once, at the end.
"""

from __future__ import annotations

import re
from functools import lru_cache

NANO = 10**9
_MILLI = 10**6
_MOST = 2**63 - 1

_SHAPE = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_HUGE = 64  # 10**64 units are beyond int64 whatever the digits: larger exponents only cost memory

_LONGEST = 1000  # characters; CPython refuses to read integers of more than 4,300 digits


class QuantityError(ValueError):
    """A text that is not a quantity."""

    def __init__(self, text: str, why: str) -> None:
        super().__init__(f'"{text[:60]}" is not a quantity: {why}')
        self.text = text
        self.why = why


def parse(value: str | float) -> int:
    """The quantity as a count of nano units, finer values rounded away from zero; QuantityError if it is none."""
    return _parse(value if isinstance(value, str) else repr(value))


@lru_cache(maxsize=65536)
def _parse(text: str) -> int:
    match = _SHAPE.fullmatch(text)
    if match is None or len(text) > _LONGEST:
        raise QuantityError(text, _why(text))
    sign, units, fraction, suffix = match.groups(default="")
    if not units and not fraction:
        raise QuantityError(text, _why(text))  # upstream reads "m" and "." as zero, which nobody can mean
    amount = _magnitude(text, units + fraction, len(fraction), suffix)
    return -amount if sign == "-" else amount


def _magnitude(text: str, digits: str, decimals: int, suffix: str) -> int:
    """The value of digits x 10**-decimals x suffix, in nano units, rounded up."""
    number = int(digits)
    if suffix in _BINARY:
        # Only binary quantities are capped by upstream; the others overflow when they are read as int64.
        return min(_scaled(number << _BINARY[suffix], 9 - decimals), _MOST * NANO)
    exponent = _DECIMAL.get(suffix)
    if exponent is None:
        written = _EXPONENT.fullmatch(suffix)
        if written is None:
            raise QuantityError(text, f'unknown suffix "{suffix}"')
        exponent = min(int(written[1]), _HUGE + decimals)
    return _scaled(number, exponent + 9 - decimals)


def _scaled(number: int, power: int) -> int:
    """The value of number x 10**power, rounded up."""
    if not number:
        return 0
    if -power > _LONGEST:
        return 1
    tens: int = 10 ** abs(power)
    return number * tens if power >= 0 else -(-number // tens)


def _why(text: str) -> str:
    if not text:
        return "it is empty"
    if len(text) > _LONGEST:
        return "it is too long"
    if text != text.strip():
        return "it has spaces around it"
    if not text.lstrip("+-")[:1].isdigit() and not text.lstrip("+-").startswith("."):
        return "it does not start with a number"
    return "expected a number and a suffix such as m, k, M, G, Ki, Mi, Gi or e3"


def _up(nano: int, unit: int) -> int:
    """Away from zero, and no further than int64 (where upstream overflows to other numbers or zero)."""
    return min(-(-nano // unit), _MOST) if nano >= 0 else max(nano // unit, -_MOST - 1)


def milli(nano: int) -> int:
    """Nano units to milli units, rounded up (away from zero): upstream `MilliValue`."""
    return _up(nano, _MILLI)


def whole(nano: int) -> int:
    """Nano units to whole units, rounded up (away from zero): upstream `Value`."""
    return _up(nano, NANO)


def show(name: str, amount: int) -> str:
    """An amount in scheduler units as people write it: cpu milli units "1500" -> "1.5", bytes -> "1.5Gi"."""
    if name == "cpu":
        return f"{amount}m" if abs(amount) < 100 and amount % 1000 else _plain(amount / 1000)
    if name in ("memory", "ephemeral-storage") or name.startswith("hugepages-"):
        for suffix, bits in reversed(_BINARY.items()):
            if abs(amount) >= 1 << bits:
                return _plain(amount / (1 << bits)) + suffix
    return str(amount)


def _plain(value: float) -> str:
    """At most three decimals, no trailing zeros."""
    return f"{value:.3f}".rstrip("0").rstrip(".")
