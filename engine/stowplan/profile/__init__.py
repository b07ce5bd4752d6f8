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
from stowplan.profile.yaml_tree import Items, Leaf, Origin, Table, Tree, from_plain, parse, plain

__all__ = [
    "POINTS",
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
    "Table",
    "Tree",
    "decode",
    "from_plain",
    "parse",
    "plain",
    "read",
]
