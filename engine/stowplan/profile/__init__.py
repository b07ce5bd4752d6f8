"""From YAML with positions to a typed configuration; what a plugin's args mean is not known here."""

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
)
from stowplan.profile.read import read
from stowplan.profile.rules import RULES, Rule, RuleSet, Variable, params_of, rules_of
from stowplan.profile.yaml_tree import Items, Leaf, Origin, Table, Tree, from_plain, parse, plain

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
