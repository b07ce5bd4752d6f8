"""A second opinion on an expression: cel-python, an independent implementation, on the same variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

from stowplan.cel import CelError
from stowplan.cel.meter import ExhaustedError, together
from stowplan.cel.values import Duration, Optional, Timestamp, UInt, from_key
from stowplan.objects import Pod
from stowplan.policy.tryout import Tried, Tryout
from stowplan.state import Store

INSTALL = "pip install 'stowplan[cel-python]'"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = 1000


class MissingError(Exception):
    """cel-python is not installed."""


def second_opinion(found: Tryout, store: Store, pod: Pod) -> Iterator[Tried]:
    """What cel-python makes of an expression for each node; it knows no costs, so they are 0.

    It has the standard library only: none of Kubernetes' functions and none of those of rules. Variables of the profile
    are computed here. Raises MissingError.
    """
    try:
        celpy = import_module("celpy")
    except ImportError:
        raise MissingError(f"cel-python is not installed: {INSTALL}") from None
    text = found.expressions.value.source.text
    environment = celpy.Environment()
    try:
        program = environment.program(environment.compile(text))
    except celpy.CELParseError as error:
        program = CelError(f"cel-python cannot read the expression: {error}")
    total = together(len(store.nodes))
    for node, bindings, meter in found.places(store, pod, total):
        if isinstance(program, CelError):
            yield Tried(node, program, 0)
            continue
        yield Tried(node, _evaluated(celpy, program, found, bindings), 0)
        try:
            total.settle(meter)
        except ExhaustedError as exhausted:  # by the variables of the profile: the other nodes are not asked about
            program = exhausted.error


def _evaluated(celpy: Any, program: Any, found: Tryout, bindings: Mapping[str, Any]) -> Any:
    try:
        return ours(celpy.celtypes, program.evaluate(_given(celpy.celtypes, found, bindings)))
    except CelError as error:
        return error
    except celpy.CELEvalError as error:
        return CelError(str(error.args[0]).partition(" (in activation")[0] if error.args else "no value")
    except Exception as error:  # noqa: BLE001 - whatever happens in there is its opinion
        return CelError(f"cel-python failed: {type(error).__name__}: {error}")


def _given(types: Any, found: Tryout, bindings: Mapping[str, Any]) -> dict[str, Any]:
    """The variables, of objects those members that the expression reads."""
    read: dict[str, set[str]] = {}
    for path in found.expressions.value.touches:
        read.setdefault(path[0], set()).add(path[1] if len(path) > 1 else "")
    given = {}
    for name, members in read.items():
        value = bindings[name]
        if "" not in members and isinstance(value, Mapping):
            value = {member: value[member] for member in members if member in value}
        given[name] = theirs(types, value)
    return given


def theirs(types: Any, value: Any) -> Any:
    """A value as cel-python has it; CelError for what it has no type for."""
    simple = {bool: types.BoolType, int: types.IntType, UInt: types.UintType, float: types.DoubleType}
    simple |= {str: types.StringType, bytes: types.BytesType}
    make = simple.get(type(value))
    if make is not None:
        return make(value)
    if value is None:
        return None
    if isinstance(value, Timestamp):
        return types.TimestampType(_EPOCH + timedelta(microseconds=value.ns // _MICRO))
    if isinstance(value, Duration):
        return types.DurationType(timedelta(microseconds=value.ns // _MICRO))
    if isinstance(value, Mapping):
        return types.MapType({theirs(types, from_key(key)): theirs(types, value[key]) for key in value})
    if isinstance(value, list | tuple):
        return types.ListType([theirs(types, item) for item in value])
    raise CelError(f"cel-python has nothing like a value of {type(value).__name__}")


def ours(types: Any, value: Any) -> Any:  # noqa: PLR0911 - a line a type
    """A value of cel-python as one of ours."""
    if isinstance(value, bool | types.BoolType):
        return bool(value)
    if isinstance(value, types.UintType):
        return UInt(value)
    plain: Any
    for plain in (int, float, str, bytes):
        if isinstance(value, plain):
            return plain(value)
    if isinstance(value, datetime):
        return Timestamp((value - _EPOCH) // timedelta(microseconds=1) * _MICRO)
    if isinstance(value, timedelta):
        return Duration(value // timedelta(microseconds=1) * _MICRO)
    if isinstance(value, Mapping):
        return {ours(types, key): ours(types, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [ours(types, item) for item in value]
    return value if value is None or isinstance(value, Optional) else str(value)
