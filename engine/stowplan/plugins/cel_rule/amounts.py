"""Resource amounts as rules see them: doubles in base units (cores, bytes, pieces), 0 for what is not there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from stowplan.objects import Amounts

MILLI = 1000.0


class AmountMap(dict[str, float]):
    """Amounts by resource. A resource that is not listed counts as 0; `in` and `has()` tell that it is not listed."""

    __slots__ = ()

    def __missing__(self, key: str) -> float:
        return 0.0


def base(name: str, amount: int) -> float:
    """An amount in scheduler units as one in base units."""
    return amount / MILLI if name == "cpu" else float(amount)


def in_base_units(amounts: Mapping[str, int]) -> AmountMap:
    """Amounts in scheduler units as amounts in base units; zeros are left out."""
    return AmountMap({name: base(name, amount) for name, amount in amounts.items() if amount})


@lru_cache(maxsize=65536)
def of_fact(amounts: Amounts) -> AmountMap:
    """The same for the shared amounts of a fact; do not change it."""
    return in_base_units(amounts)
