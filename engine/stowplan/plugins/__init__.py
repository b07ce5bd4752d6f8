"""Plugins as values; `IN_TREE` is kube-scheduler's own set in default order.

Both names are found when they are asked for: args alone, as checking a file needs them, cost no evaluation code.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stowplan.plugins.plugin import Plugin

    IN_TREE: tuple[Plugin, ...]

_DEFAULT_ORDER = (
    ("scheduling_gates", "PLUGIN"),
    ("priority_sort", "PLUGIN"),
    ("node_name", "PLUGIN"),
    ("node_unschedulable", "PLUGIN"),
    ("taint_toleration", "PLUGIN"),
    ("node_affinity", "PLUGIN"),
    ("node_ports", "PLUGIN"),
    ("node_resources_fit", "PLUGIN"),
    ("volume_restrictions", "PLUGIN"),
    ("node_volume_limits", "PLUGIN"),
    ("volume_binding", "PLUGIN"),
    ("volume_zone", "PLUGIN"),
    ("pod_topology_spread", "PLUGIN"),
    ("inter_pod_affinity", "PLUGIN"),
    ("dynamic_resources", "PLUGIN"),
    ("default_preemption", "PLUGIN"),
    ("node_resources_balanced_allocation", "PLUGIN"),
    ("image_locality", "PLUGIN"),
    ("default_binder", "PLUGIN"),
    ("node_declared_features", "PLUGIN"),
)

__all__ = ["IN_TREE", "Plugin"]


def __getattr__(name: str) -> Any:
    if name == "Plugin":
        return import_module("stowplan.plugins.plugin").Plugin
    if name != "IN_TREE":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    plugins = tuple(getattr(import_module(f"{__name__}.{module}"), attribute) for module, attribute in _DEFAULT_ORDER)
    globals()[name] = plugins
    return plugins
