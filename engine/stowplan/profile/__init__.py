"""From YAML with positions to a typed configuration; what a plugin's args mean is not known here."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stowplan.profile.decode import decode
from stowplan.profile.model import (
    POINTS,
    Configuration,
    Extender,
    PluginConfig,
    PluginEntry,
    Plugins,
    PluginSet,
    Profile,
    Rollout,
)
from stowplan.profile.read import read
from stowplan.profile.rules import RULES, Rule, RuleSet, Variable, params_of, rules_of
from stowplan.profile.yaml_tree import Items, Leaf, Origin, Table, Tree, from_plain, plain

if TYPE_CHECKING:
    from stowplan.profile.yaml_reader import parse

__all__ = [
    "POINTS",
    "RULES",
    "Configuration",
    "Extender",
    "Items",
    "Leaf",
    "Origin",
    "PluginConfig",
    "PluginEntry",
    "PluginSet",
    "Plugins",
    "Profile",
    "Rollout",
    "Rule",
    "RuleSet",
    "Table",
    "Tree",
    "Variable",
    "decode",
    "from_plain",
    "params_of",
    "parse",
    "plain",
    "read",
    "rules_of",
]


def __getattr__(name: str) -> Any:
    if name == "parse":  # the default configuration needs no YAML, which takes long to import
        return import_module("stowplan.profile.yaml_reader").parse
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
