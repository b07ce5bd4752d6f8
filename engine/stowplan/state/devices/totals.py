"""Devices counted as an extended resource: how many a node has and how many are in use, as scores compare it.

Upstream: `calculateDRAResourceTotals` of the NodeResources plugins. It looks at slices alone: neither whether their pool is
complete, nor at taints.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from stowplan.objects import Amounts, DeviceClass, Node, is_dra_extended
from stowplan.state.cluster import Cluster
from stowplan.state.columns import Numbers
from stowplan.state.devices.column import DEVICES, Devices
from stowplan.state.devices.selectors import DeviceTest, SelectorError


def device_stamp(resources: Iterable[str], requests: Amounts, cluster: Cluster) -> int:
    """For an ask whose scores count devices: the stamp that grows when they change; 0 if it counts none."""
    asked = [name for name in resources if requests.get(name) and is_dra_extended(name)]
    if not asked:
        return 0
    devices = cluster[DEVICES]
    return devices.stamp if any(name in devices.extended for name in asked) else 0


def device_totals(resource: str, cluster: Cluster, test: DeviceTest) -> tuple[Numbers, Numbers] | None:
    """Devices that stand for a resource and those in use, int64 per asked row; None if no class offers it.

    A node whose devices cannot be told (a CEL selector fails) has none.
    """
    devices = cluster[DEVICES]
    chosen = devices.extended.get(resource)
    if chosen is None:
        return None
    counts = [_count(devices, chosen, cluster.node(row), test) for row in cluster.asked.tolist()]
    found = np.array(counts, dtype=np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _count(devices: Devices, chosen: DeviceClass, node: Node, test: DeviceTest) -> tuple[int, int]:
    have = used = 0
    try:
        for device in devices.inventory.listed(node):
            if all(test(expression, device) for expression in chosen.selectors if expression is not None):
                have += 1
                used += devices.taken.at_all(device.id)
    except SelectorError:
        return 0, 0
    return have, used
