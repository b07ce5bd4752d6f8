"""Checks of calls with literal arguments: moments, patterns, the clauses of format(), and whatever else can only fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stowplan.cel.check import Checked
from stowplan.cel.errors import CelError
from stowplan.cel.kinds import Type, is_dyn
from stowplan.cel.library.formatting import clauses
from stowplan.cel.library.moments import parse_duration, parse_timestamp
from stowplan.cel.library.network import parse_cidr
from stowplan.cel.library.regex import compile_pattern
from stowplan.cel.limits import Refusal
from stowplan.cel.overloads import Function
from stowplan.cel.tree import Call, Const, ListOf, Node, walk
from stowplan.cel.values import Timestamp

_PARSERS = {"timestamp": parse_timestamp, "duration": parse_duration}
_SAMPLES = {"timestamp": Timestamp(0), "net.CIDR": parse_cidr("10.0.0.0/8")}
"""a value of each type whose functions refuse texts (time zones, times of day, addresses) whatever the value is"""
_NUMBERS = frozenset(("int", "uint"))
# "NaN" and "Infinity" as strings are doubles to %f and %e
_TAKES = {  # which types a clause of format() takes, and how its message goes
    "d": (_NUMBERS, "decimal clause can only be used on integers"),
    "f": (frozenset(("double", "string")), "fixed-point clause can only be used on doubles"),
    "e": (frozenset(("double", "string")), "scientific clause can only be used on doubles"),
    "b": (_NUMBERS | {"bool"}, "only integers and bools can be formatted as binary"),
    "o": (_NUMBERS, "octal clause can only be used on integers"),
    "x": (_NUMBERS | {"string", "bytes"}, "only integers, byte buffers, and strings can be formatted as hex"),
    "X": (_NUMBERS | {"string", "bytes"}, "only integers, byte buffers, and strings can be formatted as hex"),
}
_SHOWN_TEXT = "string clause can only be used on plain values, maps, lists, types, durations, and timestamps"
_SHOWN = frozenset(
    ["string", "bool", "bytes", "int", "uint", "double", "map", "list", "type", "duration", "timestamp", "null_type"]
)


def check_literals(checked: Checked, *, formats: bool) -> None:
    """Adds a refusal for every literal that can never be what it is used as; `formats` includes those of format()."""
    for node in walk(checked.root):
        if not isinstance(node, Call):
            continue
        if node.function in _PARSERS and node.target is None and len(node.args) == 1:
            _parsed(checked, node.args[0], node.function)
        elif node.function == "matches" and node.args:
            _pattern(checked, node.args[-1])
        elif formats and node.function == "format" and isinstance(node.target, Const) and isinstance(node.target.value, str):
            _format(checked, node, node.target.value)


def sampled(refusals: list[Refusal], node: Call, function: Function, receiver: str, args: list[Any]) -> None:
    """Refuses a call whose literal texts are wrong for any receiver of its type."""
    sample = _SAMPLES.get(receiver)
    if sample is not None and args and all(type(value) is str for value in args):
        failing(refusals, node, lambda *values: function.find(*values)(*values), [sample, *args])


def failing(refusals: list[Refusal], node: Node, kernel: Callable[..., Any], values: list[Any]) -> None:
    """Refuses a call that has no value for these arguments."""
    try:
        kernel(*values)
    except CelError as error:
        refusals.append(Refusal(error.message, node.start, node.end))


def _refuse(checked: Checked, node: Node, message: str) -> None:
    checked.refusals.append(Refusal(message, node.start, node.end))


def _parsed(checked: Checked, node: Node, name: str) -> None:
    if isinstance(node, Const) and isinstance(node.value, str):
        try:
            _PARSERS[name](node.value)
        except CelError as error:
            _refuse(checked, node, f"invalid {name} argument: {error.message}")


def _pattern(checked: Checked, node: Node) -> None:
    if isinstance(node, Const) and isinstance(node.value, str):
        try:
            compile_pattern(node.value)
        except CelError as error:
            _refuse(checked, node, f"invalid matches argument: {error.message}")


def _format(checked: Checked, node: Call, text: str) -> None:
    if len(node.args) != 1 or not isinstance(node.args[0], ListOf) or node.args[0].optional:
        return
    items = node.args[0].items
    try:
        verbs = [verb for _, verb, _ in clauses(text) if verb]
    except CelError as error:
        _refuse(checked, node, error.message)
        return
    if len(verbs) > len(items):
        _refuse(checked, node, f"index {len(items)} out of range")
    elif len(verbs) < len(items):
        _refuse(checked, node, f"too many arguments supplied to string.format (expected {len(verbs)}, got {len(items)})")
    for verb, item in zip(verbs, items, strict=False):
        fault = _misfit(verb, checked.types[item])
        if fault:
            _refuse(checked, item, f"error during formatting: {fault}, was given {checked.types[item]}")


def _misfit(verb: str, kind: Type) -> str:
    if is_dyn(kind) or kind.is_param:
        return ""
    if verb == "s":
        return (
            ""
            if kind.name in _SHOWN
            else "string clause can only be used on plain values, maps, lists, types, durations, and timestamps"
        )
    wanted, message = _TAKES[verb]
    return "" if kind.name in wanted else message
