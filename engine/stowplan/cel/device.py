"""Device selectors of dynamic resource allocation: one expression against one device.

Upstream: k8s.io/dynamic-resource-allocation/cel. The variable `device` has the driver's name, attributes and capacity by
domain and name, and whether it may be allocated more than once. A domain nobody wrote is an empty map; a missing name
is an error, and an error ends the whole scheduling attempt, so its text is upstream's to the letter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from stowplan.cel.environment import DEVICES, Environment
from stowplan.cel.errors import CelError
from stowplan.cel.kinds import BOOL, DYN, QUANTITY, STRING, Struct, is_dyn, map_of
from stowplan.cel.library.quantity import parse_quantity
from stowplan.cel.library.semver import parse_semver
from stowplan.cel.program import Program, compile_expression
from stowplan.cel.values import Defaulting, kind_of
from stowplan.text import Diagnostic

_HINT = ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields"
_DEVICE = Struct(
    "kubernetes.DRADevice",
    fields={
        "driver": STRING,
        "attributes": map_of(STRING, map_of(STRING, DYN)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
        "allowMultipleAllocations": BOOL,
    },
)
ENVIRONMENT = Environment({"device": _DEVICE}, DEVICES)  # its cost limit is the selector's: 1,000,000
_KEPT = 1024  # compiled selectors


class CelCompileError(ValueError):
    """A selector that is no expression of the right type."""


class CelRuntimeError(ValueError):
    """A selector without a value for a device."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device as selectors see it; make it once with `device` and match it with many selectors."""

    values: Mapping[str, Any]


def device(driver: str, facts: Mapping[str, Any]) -> Device:
    """The view of a device of a ResourceSlice.

    `facts` has `attributes` (qualified name to one of int, bool, string, version or ints, bools, strings, versions),
    `capacity` (qualified name to an object with a quantity `value`) and `allowMultipleAllocations`. Raises CelRuntimeError
    for a value that cannot be read.
    """
    attributes, capacity = Defaulting(), Defaulting()
    for name, attribute in (facts.get("attributes") or {}).items():
        _put(attributes, driver, name, _attribute(name, attribute))
    for name, amount in (facts.get("capacity") or {}).items():
        value = amount["value"] if isinstance(amount, Mapping) else amount
        _put(capacity, driver, name, _read(f"capacity {name}", parse_quantity, str(value)))
    multiple = bool(facts.get("allowMultipleAllocations"))
    return Device({"driver": driver, "attributes": attributes, "capacity": capacity, "allowMultipleAllocations": multiple})


def matches(expression: str, candidate: Device) -> bool:
    """Whether the selector takes the device; CelCompileError, or CelRuntimeError with upstream's text."""
    value = selector(expression).evaluate({"device": candidate.values})
    if isinstance(value, CelError):
        hint = _HINT if "no such key:" in value.message else ""
        raise CelRuntimeError(f"CEL runtime error: {value.message}{hint}")
    if not isinstance(value, bool):
        kind = kind_of(value)
        detail = f"type conversion error from '{kind}' to 'bool'"
        raise CelRuntimeError(f"CEL runtime error: CEL result of type {kind} could not be converted to bool: {detail}")
    return value


@lru_cache(maxsize=_KEPT)
def selector(expression: str) -> Program:
    """The compiled selector; CelCompileError if it is none."""
    program = compile_expression(expression, ENVIRONMENT)
    if not isinstance(program, Program):
        raise CelCompileError("CEL compile error: compilation failed: " + "\n".join(map(_shown, program)))
    if program.type != BOOL and not is_dyn(program.type):
        raise CelCompileError(f"CEL compile error: must evaluate to bool or the unknown type, not {program.type}")
    return program


def _shown(diagnostic: Diagnostic) -> str:
    """A finding in the form of cel-go."""
    span = diagnostic.span
    if span is None:
        return f"ERROR: {diagnostic.message}"
    line = span.source.line(span.line)
    return f"ERROR: <input>:{span.line}:{span.column}: {diagnostic.message}\n | {line}\n | {'.' * (span.column - 1)}^"


def _put(domains: Defaulting, driver: str, name: str, value: Any) -> None:
    domain, slash, identifier = name.partition("/")
    if not slash:
        domain, identifier = driver, name
    domains.setdefault(domain, {})[identifier] = value


_SCALARS: dict[str, Callable[[Any], Any]] = {"int": int, "bool": bool, "string": str, "version": parse_semver}
_ORDER = ("ints", "bools", "strings", "versions", "int", "bool", "string", "version")


def _attribute(name: str, attribute: Any) -> Any:
    if not isinstance(attribute, Mapping):
        return attribute
    for form in _ORDER:
        value = attribute.get(form)
        if value is not None:
            if form in _SCALARS:
                return _read(f"attribute {name}", _SCALARS[form], value)
            return [_read(f"attribute {name}", _SCALARS[form[:-1]], item) for item in value]
    raise CelRuntimeError(f"CEL runtime error: attribute {name}: unsupported attribute value")


def _read(what: str, convert: Callable[[Any], Any], value: Any) -> Any:
    try:
        return convert(value)
    except (CelError, ValueError) as error:
        raise CelRuntimeError(f"CEL runtime error: {what}: {error}") from None


__all__ = ["ENVIRONMENT", "CelCompileError", "CelRuntimeError", "Device", "device", "matches", "selector"]
