"""Lists: Kubernetes' functions, those of the lists and sets extensions, and their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from stowplan.cel import limits
from stowplan.cel.errors import CelError, no_overload
from stowplan.cel.overloads import Overload, declare
from stowplan.cel.values import (
    Duration,
    Timestamp,
    UInt,
    check_int,
    check_uint,
    compare,
    equal,
    kind_of,
)

_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SORTABLE = frozenset(_COMPARABLE)


def _order(left: Any, right: Any) -> int:
    """As compare, but what cannot be compared (NaN, other types) counts as neither greater nor less."""
    try:
        return compare(left, right)
    except CelError:
        return 0


def _comparable(name: str, items: Sequence[Any]) -> None:
    for item in items:
        if kind_of(item) not in _SORTABLE:
            raise no_overload(name, "list")


def _is_sorted(items: Sequence[Any]) -> bool:
    _comparable("isSorted", items)
    return all(_order(a, b) <= 0 for a, b in pairwise(items))


def _extreme(name: str, sign: int) -> Callable[[Sequence[Any]], Any]:
    def kernel(items: Sequence[Any]) -> Any:
        if not items:
            raise CelError(f"{name} called on empty list")
        _comparable(name, items)
        best = items[0]
        for item in items[1:]:
            if _order(item, best) == sign:
                best = item
        return best

    return kernel


_ZEROS: dict[str, Any] = {"int": 0, "uint": UInt(0), "double": 0.0, "duration": Duration(0)}


def _sum(zero: Any) -> Callable[[Sequence[Any]], Any]:
    def kernel(items: Sequence[Any]) -> Any:
        if not items:
            return zero
        kind = kind_of(items[0])
        if kind not in _ZEROS or any(kind_of(item) != kind for item in items):
            raise no_overload("sum", "list")
        if kind == "double":
            total = 0.0
            for item in items:
                total += item
            return total
        amount = 0
        for item in items:  # step by step: an overflow on the way is an error even if the end fits
            amount += item.ns if kind == "duration" else int(item)
            (check_uint if kind == "uint" else check_int)(amount)
        return Duration(amount) if kind == "duration" else UInt(amount) if kind == "uint" else amount

    return kernel


def _index_of(items: Sequence[Any], value: Any) -> int:
    return next((index for index, item in enumerate(items) if equal(item, value)), -1)


def _last_index_of(items: Sequence[Any], value: Any) -> int:
    return next((index for index in range(len(items) - 1, -1, -1) if equal(items[index], value)), -1)


def _includes(container: Any, value: Any) -> bool:
    if isinstance(container, (list, tuple)):
        return any(equal(item, value) for item in container)
    return equal(container, value)


def _slice(items: Sequence[Any], start: int, end: int) -> Sequence[Any]:
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _flatten(items: Sequence[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise CelError("level must be non-negative")
    found: list[Any] = []
    for item in items:
        if depth and isinstance(item, (list, tuple)):
            found += _flatten(item, depth - 1)
        else:
            found.append(item)
        if len(found) > limits.LIST:
            raise CelError(f"a list of more than {limits.LIST} elements", absorbable=False)
    return found


def sort_by(items: Sequence[Any], keys: Sequence[Any]) -> list[Any]:
    """The items in the order of their keys; keys of equal order keep theirs."""
    if not items:
        return []
    kind = kind_of(keys[0])
    if kind not in _SORTABLE:
        raise CelError("list elements must be comparable")
    if any(kind_of(key) != kind for key in keys):
        raise CelError("list elements must have the same type")
    if kind in ("int", "string", "bytes", "bool") or isinstance(keys[0], (Timestamp, Duration)):
        places: list[int] = list(range(len(items)))
        places.sort(key=lambda place: keys[place])
        return [items[place] for place in places]

    def order(left: int, right: int) -> int:
        return _order(keys[left], keys[right])

    return [items[place] for place in sorted(range(len(items)), key=cmp_to_key(order))]


def _distinct(items: Sequence[Any]) -> list[Any]:
    if all(type(item) in (str, int) for item in items) and len({type(item) for item in items}) == 1:
        return list(dict.fromkeys(items))
    found: list[Any] = []
    for item in items:
        if not any(equal(known, item) for known in found):
            found.append(item)
    return found


def _range(count: int) -> list[int]:
    if count < 0:
        raise CelError(f"lists.range: size must be non-negative, got {count}")
    if count > limits.LIST:
        raise CelError(f"a list of more than {limits.LIST} elements", absorbable=False)
    return list(range(count))


def _contains_all(items: Sequence[Any], others: Sequence[Any]) -> bool:
    return all(any(equal(item, other) for item in items) for other in others)


def _equivalent(items: Sequence[Any], others: Sequence[Any]) -> bool:
    return _contains_all(items, others) and _contains_all(others, items)


def _intersects(items: Sequence[Any], others: Sequence[Any]) -> bool:
    return any(equal(item, other) for item in items for other in others)


def _typed(call: str, kernel: Callable[..., Any], doc: str, types: Sequence[str] = _COMPARABLE) -> list[Overload]:
    return [declare(f"list({kind}).{call.replace('T', kind)}", kernel, doc, grows=1) for kind in types]


def _sums() -> list[Overload]:
    doc = "the sum of all elements; zero for none"
    return [declare(f"list({kind}).sum() -> {kind}", _sum(zero), doc, grows=1) for kind, zero in _ZEROS.items()]


KUBERNETES_LISTS = (
    *_typed("isSorted() -> bool", _is_sorted, "whether no element is greater than the next"),
    *_sums(),
    *_typed("min() -> T", _extreme("min", -1), "the least element; none is an error"),
    *_typed("max() -> T", _extreme("max", 1), "the greatest element; none is an error"),
    declare("list(A).indexOf(A) -> int", _index_of, "where the value stands first, -1 if nowhere", grows=1),
    declare("list(A).lastIndexOf(A) -> int", _last_index_of, "where the value stands last, -1 if nowhere", grows=1),
    declare("A.includes(B) -> bool", _includes, "whether the list holds the value, or the value is equal", grows=1),
)
LISTS = (
    declare("lists.range(int) -> list(int)", _range, "the numbers from 0 to before n", grows=1),
    declare("list(A).slice(int, int) -> list(A)", _slice, "the elements from an index to before another", grows=1),
    declare("list(list(A)).flatten() -> list(A)", _flatten, "the elements of the inner lists in a row", grows=1),
    declare("list(dyn).flatten(int) -> list(dyn)", _flatten, "flattened n levels deep", grows=1),
    *_typed("sort() -> list(T)", lambda items: sort_by(items, items), "the elements in order"),
    declare("list(A).reverse() -> list(A)", lambda items: list(items[::-1]), "the elements from last to first", grows=1),
    declare("list(A).distinct() -> list(A)", _distinct, "every element once", grows=2),
)
SETS = (
    declare(
        "sets.contains(list(A), list(A)) -> bool", _contains_all, "whether the first holds every element of the second", grows=2
    ),
    declare("sets.equivalent(list(A), list(A)) -> bool", _equivalent, "whether both hold the same elements", grows=2),
    declare("sets.intersects(list(A), list(A)) -> bool", _intersects, "whether an element is in both", grows=2),
)
