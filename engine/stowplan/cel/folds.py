"""Macros and logic for one row: loops over lists and maps, and chains that absorb errors.

`all` and `exists` let any deciding element win over errors, as `&&` and `||` do; the other macros absorb nothing. Every
step of a loop is paid from the meter in the frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stowplan.cel.errors import CelError, no_overload
from stowplan.cel.library.lists import sort_by
from stowplan.cel.meter import exceeded
from stowplan.cel.values import as_key, find_key, from_key, kind_of
from stowplan.cel.walk import elements

Frame = list[Any]
Step = Callable[[Frame], Any]
_PAUSE = 100  # steps between two looks at whether to stop


@dataclass(frozen=True, slots=True)
class Loop:
    """A macro ready to run; `units` is what one step costs."""

    source: Step
    slots: tuple[int, ...]
    where: Step | None
    body: Step
    units: int

    def walk(self, frame: Frame) -> Iterator[None]:
        """Sets the names in the frame for every element in turn, and pays for it."""
        source = self.source(frame)
        meter, units, slots = frame[0], self.units, self.slots
        single = slots[0] if len(slots) == 1 and isinstance(source, (list, tuple)) else None
        for count, value in enumerate(source if single is not None else elements(source, len(slots)), 1):
            if not count % _PAUSE:
                meter.pause()
            meter.left -= units
            if meter.left < 0:
                raise exceeded()
            if single is not None:
                frame[single] = value
            else:
                for slot, name in zip(slots, value, strict=True):
                    frame[slot] = name
            yield

    def wanted(self, frame: Frame) -> bool:
        """What the filter of the macro says of the current element."""
        return self.where is None or boolean(self.where(frame))


def boolean(value: Any) -> bool:
    """The value if it is a bool, else the error that it is none."""
    if value is True or value is False:
        return bool(value)
    raise no_overload("_&&_", kind_of(value))


def logic(terms: list[Step], *, dominant: bool) -> Step:
    """A chain: the dominant value anywhere wins, else the first error, else the other value."""
    return lambda frame: _absorb(dominant, terms, frame)


def _absorb(dominant: bool, steps: Iterable[Step], frame: Frame) -> bool:
    """Whether one step gives the dominant value, which absorbs the errors of the others; else the first error is raised."""
    failure: CelError | None = None
    for step in steps:
        try:
            value: object = step(frame)
        except CelError as error:
            if not error.absorbable:
                raise
            failure = failure or error
            continue
        if value is dominant:
            return dominant
        if value is not (not dominant):
            failure = failure or no_overload("_||_" if dominant else "_&&_", kind_of(value))
    if failure is not None:
        raise failure
    return not dominant


def _quantifier(dominant: bool) -> Callable[[Loop], Step]:
    def make(loop: Loop) -> Step:
        return lambda frame: _absorb(dominant, (loop.body for _ in loop.walk(frame)), frame)

    return make


def _exists_one(loop: Loop) -> Step:
    def run(frame: Frame) -> bool:
        return sum(boolean(loop.body(frame)) for _ in loop.walk(frame)) == 1

    return run


def _filter(loop: Loop) -> Step:
    slot = loop.slots[0]

    def run(frame: Frame) -> list[Any]:
        return [frame[slot] for _ in loop.walk(frame) if boolean(loop.body(frame))]

    return run


def _map(loop: Loop) -> Step:
    def run(frame: Frame) -> list[Any]:
        return [loop.body(frame) for _ in loop.walk(frame) if loop.wanted(frame)]

    return run


def _transform_map(loop: Loop) -> Step:
    slot = loop.slots[0]

    def run(frame: Frame) -> dict[Any, Any]:
        return {as_key(frame[slot]): loop.body(frame) for _ in loop.walk(frame) if loop.wanted(frame)}

    return run


def _transform_entry(loop: Loop) -> Step:
    def run(frame: Frame) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for _ in loop.walk(frame):
            if not loop.wanted(frame):
                continue
            entries = loop.body(frame)
            if not isinstance(entries, Mapping):
                raise no_overload("transformMapEntry", kind_of(entries))
            for key, value in entries.items():
                if find_key(found, from_key(key)) is not None:
                    raise CelError(f"insert failed: key {from_key(key)} already exists")
                found[key] = value
        return found

    return run


def _sort_by(loop: Loop) -> Step:
    def run(frame: Frame) -> list[Any]:
        items = loop.source(frame)
        if not isinstance(items, (list, tuple)):
            raise no_overload("sortBy", kind_of(items))
        try:
            keys = [loop.body(frame) for _ in loop.walk(frame)]
        except CelError as error:
            raise CelError(error.message, absorbable=False) from None  # upstream fails as a whole here
        return sort_by(items, keys)

    return run


FOLDS: dict[str, Callable[[Loop], Step]] = {
    "all": _quantifier(dominant=False),
    "exists": _quantifier(dominant=True),
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _map,
    "transformList": _map,
    "transformMap": _transform_map,
    "transformMapEntry": _transform_entry,
    "sortBy": _sort_by,
}
