"""JSON Schemas of the kinds that are read here, made from the dataclasses that decode them.

A schema never refuses what kube-scheduler accepts; it refuses less than the compiler, which knows what values mean together.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from stowplan.plugins.arguments import ARGS, LabelSelector, written_form
from stowplan.policy.releases import plugins_of
from stowplan.policy.schema_texts import FIELDS
from stowplan.profile import RULES, Configuration, Leaf
from stowplan.profile.decode import fields_of
from stowplan.profile.rules import RuleSet
from stowplan.profile.versions import GROUP, KUBERNETES, NEWEST, STOWPLAN
from stowplan.text import ZERO_MEANS_DEFAULT

KINDS = {KUBERNETES[1]: KUBERNETES, STOWPLAN[1]: STOWPLAN}
DRAFTS = {"2020-12": "https://json-schema.org/draft/2020-12/schema", "07": "http://json-schema.org/draft-07/schema#"}
_NO_NAME = "Not here: the candidate has the name of its profile."
_DURATION = r"^[-+]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$"


def schema(kind: str, draft: str = "2020-12") -> dict[str, Any]:
    """The schema of a kind in a draft of JSON Schema (`2020-12`, or `07` for editors)."""
    version, name = KINDS[kind]
    maker = _Maker(draft, policy=kind == STOWPLAN[1])
    body = maker.struct(Configuration)
    reader = "stowplan" if kind == STOWPLAN[1] else f"kube-scheduler 1.{NEWEST}"
    properties = {
        "apiVersion": {"const": version, "description": "Version of this kind."},
        "kind": {"const": name, "description": "This kind."},
        **body["properties"],
    }
    return {
        "$schema": DRAFTS[draft],
        "$id": f"urn:stowplan:{name}:{draft}",
        "title": name,
        "description": f"{name} of {version}, as {reader} reads it.",
        **body,
        "required": ["apiVersion", "kind"],
        "properties": properties,
        maker.definitions: dict(sorted(maker.defined.items())),
    }


class _Maker:
    """Collects the definitions that a schema needs."""

    def __init__(self, draft: str, *, policy: bool) -> None:
        self.definitions = "$defs" if draft == "2020-12" else "definitions"
        self.defined: dict[str, Any] = {}
        self._policy = policy

    def struct(self, cls: type[Any]) -> dict[str, Any]:
        """An object with the fields of a dataclass."""
        defaults = {field.name: field for field in dataclasses.fields(cls)}
        properties = {}
        for written, field in fields_of(typing.cast("Any", cls)).items():
            if "only policy" in field.metadata and not self._policy:
                continue
            text = FIELDS[f"{cls.__name__}.{written}"]
            description, more = (text, {}) if isinstance(text, str) else text
            found = self._kind(field.kind)
            inner = field.metadata.get("within")
            if inner is not None:
                found = {"type": ["object", "null"], "additionalProperties": False, "properties": {inner: found}}
            default = _default(defaults[field.name])
            properties[written] = _with(found, description, more, default, empty=field.metadata == ZERO_MEANS_DEFAULT)
        return {"type": "object", "additionalProperties": False, "properties": properties}

    def _reference(self, cls: type[Any]) -> dict[str, Any]:
        if cls.__name__ not in self.defined:
            self.defined[cls.__name__] = {}  # so that a class may hold itself
            made = self.struct(cls)
            self._complete(cls.__name__, made)
            self.defined[cls.__name__] = made
        return {"anyOf": [{"$ref": f"#/{self.definitions}/{cls.__name__}"}, {"type": "null"}]}

    def _complete(self, name: str, made: dict[str, Any]) -> None:
        """What the annotations of some classes do not say: names of plugins, args by name, the nodes and candidate of a rollout."""
        if name == "PluginEntry":
            names = [plugin.name for plugin in plugins_of(NEWEST)]
            known = made["properties"]["name"]
            made["properties"]["name"] = {
                "description": known["description"],
                "anyOf": [{"enum": [*names, "*"]}, {"type": ["string", "null"]}],
            }
        elif name == "PluginConfig":
            made["allOf"] = [
                {
                    "if": {"required": ["name"], "properties": {"name": {"const": plugin}}},
                    "then": {"properties": {"args": self._args(plugin, written_form(ARGS[plugin]))}},
                }
                for plugin in sorted(ARGS)
            ]
            made["allOf"].append(
                {
                    "if": {"required": ["name"], "properties": {"name": {"const": RULES}}},
                    "then": {"properties": {"args": self._reference(RuleSet)}},
                }
            )
        elif name == "Rollout":
            made["properties"]["nodes"] |= self._reference(LabelSelector)
            made["properties"]["candidate"]["properties"] = {"schedulerName": {"description": _NO_NAME, "not": {}}}

    def _args(self, plugin: str, cls: type[Any]) -> dict[str, Any]:
        name = f"{plugin}Args"
        made = self.struct(cls)
        made["properties"] = {
            "apiVersion": {"enum": [f"{GROUP}/v1", "", None]},
            "kind": {"enum": [name, "", None]},
            **made["properties"],
        }
        self.defined[name] = made
        return {"anyOf": [{"$ref": f"#/{self.definitions}/{name}"}, {"type": "null"}]}

    def _kind(self, kind: Any) -> dict[str, Any]:
        if typing.get_origin(kind) in (types.UnionType, typing.Union):
            members = [member for member in typing.get_args(kind) if member is not types.NoneType]
            return {} if Leaf in members else self._kind(members[0])
        if typing.get_origin(kind) is tuple:
            return {"type": ["array", "null"], "items": self._kind(typing.get_args(kind)[0])}
        if typing.get_origin(kind) is Mapping:
            return {"type": ["object", "null"], "additionalProperties": {"type": "string"}}
        if dataclasses.is_dataclass(kind):
            return self._reference(typing.cast("type[Any]", kind))
        return _scalar(*(typing.get_args(kind) or (kind, 64)))


def _scalar(kind: Any, bits: int) -> dict[str, Any]:
    if kind is timedelta:
        return {"type": ["string", "null"], "pattern": _DURATION}
    if kind is int:
        return {"type": ["integer", "null"], "minimum": -(2 ** (bits - 1)), "maximum": 2 ** (bits - 1) - 1}
    names = {bool: "boolean", float: "number", str: "string", bytes: "string"}
    found: dict[str, Any] = {"type": [names[kind], "null"]}
    return found | {"contentEncoding": "base64"} if kind is bytes else found


def _with(found: dict[str, Any], description: str, more: dict[str, Any], default: Any, *, empty: bool) -> dict[str, Any]:
    """A property with its description and default; null and, where that means the default, empty values are allowed."""
    made = {"description": description, **found, **more}
    if "enum" in more:
        made["enum"] = [*more["enum"], *([""] if empty else []), None]
        if "string" in made.get("type", ()) and default == "" and not empty:
            default = None
    if empty and made.get("minimum", 0) > 0:
        made["minimum"] = 0
    return made if default is None else made | {"default": default}


def _default(field: dataclasses.Field[Any]) -> Any:
    """The default as JSON; None if it goes without saying."""
    value = field.default
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g}s"
    return value if isinstance(value, bool | int | float) or (isinstance(value, str) and value) else None
