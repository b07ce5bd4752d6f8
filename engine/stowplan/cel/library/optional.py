"""Optional values. `or` and `orValue` look at their argument only when they need it: the planner sees to that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stowplan.cel.errors import CelError, no_overload
from stowplan.cel.library.convert import as_index
from stowplan.cel.overloads import declare
from stowplan.cel.values import NONE, Duration, Optional, kind_of, lookup_key


def is_zero(value: Any) -> bool:
    """Whether the value is the zero of its type: null, false, 0, empty."""
    if value is None or isinstance(value, (bool, int, float)):
        return not value
    if isinstance(value, (str, bytes, list, tuple, Mapping)):
        return len(value) == 0
    return isinstance(value, Duration) and value.ns == 0


def _of_non_zero(value: Any) -> Optional:
    return NONE if is_zero(value) else Optional(present=True, value=value)


def of(value: Any) -> Optional:
    """The optional that has the value."""
    return Optional(present=True, value=value)


def value_of(optional: Optional) -> Any:
    """What the optional holds."""
    if not optional.present:
        raise CelError("optional.none() dereference")
    return optional.value


def look(container: Any, key: Any) -> Optional:
    """`container[?key]`: of a list or map, or of an optional one; as in cel-go none for what has no keys at all."""
    if isinstance(container, Optional):
        return look(container.value, key) if container.present else NONE
    if isinstance(container, (list, tuple)):
        position = as_index(key)
        return of(container[position]) if 0 <= position < len(container) else NONE
    if isinstance(container, Mapping):
        found = lookup_key(container, key)
        return NONE if found is None else of(container[found])
    if isinstance(key, (str, bool, int, float)):
        return NONE
    raise no_overload("_[?_]", kind_of(container), kind_of(key))


def look_field(container: Any, field: str) -> Optional:
    """`container.?field`; none for what is no map."""
    if isinstance(container, Optional):
        return look_field(container.value, field) if container.present else NONE
    if isinstance(container, (list, tuple)):
        raise CelError("unsupported index type 'string' in list")
    found = lookup_key(container, field) if isinstance(container, Mapping) else None
    return NONE if found is None else of(container[found])


def _unwrap(items: Sequence[Any]) -> list[Any]:
    for item in items:
        if not isinstance(item, Optional):
            raise CelError(f"value {item} is not optional")
    return [item.value for item in items if item.present]


def _or(left: Optional, right: Optional) -> Optional:
    return left if left.present else right


def _or_value(left: Optional, right: Any) -> Any:
    return left.value if left.present else right


OPTIONAL = (
    declare("optional.of(A) -> optional_type(A)", of, "an optional that has the value"),
    declare("optional.ofNonZeroValue(A) -> optional_type(A)", _of_non_zero, "the value, or none if it is null, false, 0 or empty"),
    declare("optional.none() -> optional_type(A)", lambda: NONE, "an optional without a value"),
    declare("optional.unwrap(list(optional_type(A))) -> list(A)", _unwrap, "the values that are there", grows=1),
    declare("list(optional_type(A)).unwrapOpt() -> list(A)", _unwrap, "the values that are there", grows=1),
    declare("optional_type(A).hasValue() -> bool", lambda o: o.present, "whether there is a value"),
    declare("optional_type(A).value() -> A", value_of, "the value; none is an error"),
    declare("optional_type(A).or(optional_type(A)) -> optional_type(A)", _or, "the first that has a value"),
    declare("optional_type(A).orValue(A) -> A", _or_value, "the value, or another one"),
    declare("list(A).first() -> optional_type(A)", lambda items: of(items[0]) if items else NONE, "the first element"),
    declare("list(A).last() -> optional_type(A)", lambda items: of(items[-1]) if items else NONE, "the last element"),
    declare("_[?_](list(A), int) -> optional_type(A)", look, "the element, or none"),
    declare("_[?_](optional_type(list(A)), int) -> optional_type(A)", look, "the element, or none"),
    declare("_[?_](map(A, B), A) -> optional_type(B)", look, "the value of the key, or none"),
    declare("_[?_](optional_type(map(A, B)), A) -> optional_type(B)", look, "the value of the key, or none"),
    declare("_[_](optional_type(list(A)), int) -> optional_type(A)", look, "the element of an optional list"),
    declare("_[_](optional_type(map(A, B)), A) -> optional_type(B)", look, "the value in an optional map"),
)
