"""Fields, elements and keys of values: `a.b`, `a[b]`, `has(a.b)`. Only mappings, lists and optionals have any."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stowplan.cel.errors import CelError, no_key, no_overload
from stowplan.cel.library.convert import element, value_at
from stowplan.cel.library.optional import look, of
from stowplan.cel.values import NONE, Optional, kind_of, lookup_key


def get_field(name: str) -> Callable[[Any], Any]:
    """The function that gives the field of a value; a missing one is an error, of an optional it is none."""

    def get(value: Any) -> Any:
        cls = type(value)
        if cls is dict or isinstance(value, Mapping):
            try:
                return value[name]
            except KeyError:
                raise no_key(name) from None
        if cls is Optional:
            return _inside(value, name)
        raise CelError(f"no such overload: type '{kind_of(value)}' has no fields")

    return get


def _inside(optional: Optional, name: str) -> Optional:
    if not optional.present:
        return NONE
    if not isinstance(optional.value, Mapping):
        raise no_key(name)
    return of(optional.value[name]) if name in optional.value else NONE


def has_field(name: str) -> Callable[[Any], bool]:
    """The function that tells whether a value has the field; what has no fields has none."""

    def has(value: Any) -> bool:
        if isinstance(value, Mapping):
            return lookup_key(value, name) is not None
        if isinstance(value, (list, tuple)):
            raise CelError("unsupported index type 'string' in list")
        return isinstance(value, Optional) and value.present and isinstance(value.value, Mapping) and name in value.value

    return has


Step = Callable[[list[Any]], Any]
Place = tuple[int, int]


def field_of(operand: Step, name: str, place: Place) -> Step:
    """The step that gives the field of what another step gives."""
    get = get_field(name)

    def run(frame: list[Any]) -> Any:
        value = operand(frame)
        if type(value) is dict and name in value:
            return value[name]
        try:
            return get(value)
        except CelError as error:
            if error.place is None:
                error.place = place
            raise

    return run


def item_of(operand: Step, key: str, place: Place) -> Step:
    """The step that gives what stands under a literal key in what another step gives."""

    def run(frame: list[Any]) -> Any:
        value = operand(frame)
        if type(value) is dict and key in value:
            return value[key]
        try:
            return get_item(value, key)
        except CelError as error:
            if error.place is None:
                error.place = place
            raise

    return run


def get_item(container: Any, key: Any) -> Any:
    """`container[key]`."""
    cls = type(container)
    if cls is dict:
        if type(key) is str:
            try:
                return container[key]
            except KeyError:
                raise no_key(key) from None
        return value_at(container, key)
    if cls is list or cls is tuple:
        return element(container, key)
    if cls is Optional:
        return look(container, key)
    if isinstance(container, Mapping):
        if type(key) is not str:
            return value_at(container, key)
        try:
            return container[key]
        except KeyError:
            raise no_key(key) from None
    raise no_overload("_[_]", kind_of(container), kind_of(key))
