"""Plugins as values; `IN_TREE` is kube-scheduler's own set in default order."""

from stowplan.plugins import (
    default_binder,
    dynamic_resources,
    image_locality,
    inter_pod_affinity,
    node_affinity,
    node_declared_features,
    node_name,
    node_ports,
    node_resources_balanced_allocation,
    node_resources_fit,
    node_unschedulable,
    node_volume_limits,
    pod_topology_spread,
    priority_sort,
    scheduling_gates,
    taint_toleration,
    unbuilt,
    volume_binding,
    volume_restrictions,
    volume_zone,
)
from stowplan.plugins.plugin import Plugin

IN_TREE: tuple[Plugin, ...] = (
    scheduling_gates.PLUGIN,
    priority_sort.PLUGIN,
    node_name.PLUGIN,
    node_unschedulable.PLUGIN,
    taint_toleration.PLUGIN,
    node_affinity.PLUGIN,
    node_ports.PLUGIN,
    node_resources_fit.PLUGIN,
    volume_restrictions.PLUGIN,
    node_volume_limits.PLUGIN,
    volume_binding.PLUGIN,
    volume_zone.PLUGIN,
    pod_topology_spread.PLUGIN,
    inter_pod_affinity.PLUGIN,
    dynamic_resources.PLUGIN,
    unbuilt.DEFAULT_PREEMPTION,
    node_resources_balanced_allocation.PLUGIN,
    image_locality.PLUGIN,
    default_binder.PLUGIN,
    node_declared_features.PLUGIN,
)

__all__ = ["IN_TREE", "Plugin"]
