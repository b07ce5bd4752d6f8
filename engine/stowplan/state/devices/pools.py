"""Pools of devices as one node sees them.

Upstream: pools_incubating.go of dynamic-resource-allocation/structured (`GatherPools`), default gates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from stowplan.objects import Device, DeviceTaintRule, Node, ResourceSlice, Taint, Where

PoolID = tuple[str, str]
"""driver, pool"""
Places = tuple[tuple[ResourceSlice, tuple[int, ...] | None], ...]
"""The slices that a node reaches; for a slice of devices with places of their own, which of those it reaches."""


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """A pool of devices that a node reaches some of.

    devices      in the order of slices and within them
    unreachable  those among them that the node cannot reach: some slices place each device by itself
    elsewhere    devices in slices that only other nodes reach
    counters     (counter set, counter) -> what there is in all
    """

    id: PoolID
    incomplete: bool = False
    invalid: bool = False
    devices: tuple[tuple[Device, ResourceSlice], ...] = ()
    unreachable: frozenset[Device] = frozenset()
    elsewhere: tuple[Device, ...] = ()
    counters: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def usable(self) -> bool:
        """Can devices be taken from it now?"""
        return not (self.incomplete or self.invalid)

    @property
    def name(self) -> str:
        return "/".join(self.id)


class Inventory:
    """All slices of a cluster, with the taints that rules add. It never changes; what nodes see is found out on demand."""

    def __init__(self, slices: Iterable[ResourceSlice], rules: Iterable[DeviceTaintRule]) -> None:
        ordered = sorted(slices, key=lambda item: item.name)
        self._rules = tuple(rules)
        self._local: dict[str, list[ResourceSlice]] = defaultdict(list)
        self._common: list[ResourceSlice] = []
        self._all: dict[PoolID, list[ResourceSlice]] = defaultdict(list)
        for item in ordered:
            self._all[item.driver, item.pool].append(item)
            if item.where.node_name:
                self._local[item.where.node_name].append(item)
            else:
                self._common.append(item)
        self._pools: dict[Places, tuple[Pool, ...]] = {}
        self._seen: dict[str, tuple[Node, tuple[Pool, ...]]] = {}
        self._taints: dict[Device, tuple[Taint, ...]] = {}

    def pools(self, node: Node) -> tuple[Pool, ...]:
        """Pools in the order in which devices are tried. The same object for nodes that see the same."""
        known = self._seen.get(node.name)
        if known is not None and known[0] is node:
            return known[1]
        places = self._reached(node)
        found = self._pools.get(places)
        if found is None:
            found = self._pools[places] = self._gather(places)
        self._seen[node.name] = (node, found)
        return found

    def listed(self, node: Node) -> Iterator[Device]:
        """Devices of all slices that a node reaches, whatever the state of their pools; a slice without a place is listed."""
        for item in (*self._local.get(node.name, ()), *self._common):
            if item.per_device:
                yield from (device for device in item.devices if _names(device.where, node))
            elif not item.where.known or item.where.all_nodes or item.where.matches(node.name, node.labels):
                yield from item.devices

    def taints(self, device: Device) -> tuple[Taint, ...]:
        """Taints of a device that forbid taking it, those of rules included."""
        found = self._taints.get(device)
        if found is None:
            added = (rule.taint for rule in self._rules if rule.covers(device.id))
            found = self._taints[device] = tuple(taint for taint in (*device.taints, *added) if taint.hard)
        return found

    def _reached(self, node: Node) -> Places:
        found: list[tuple[ResourceSlice, tuple[int, ...] | None]] = []
        for item in (*self._local.get(node.name, ()), *self._common):
            if item.grouped:  # cannot be honoured without DRADeviceCompatibilityGroups: as if the slice were missing
                continue
            if item.where.known:
                if item.where.matches(node.name, node.labels):
                    found.append((item, None))
            elif item.per_device:
                reached = tuple(i for i, d in enumerate(item.devices) if d.where.matches(node.name, node.labels))
                if reached:
                    found.append((item, reached))
        return tuple(found)

    def _gather(self, places: Places) -> tuple[Pool, ...]:
        reached = dict(places)
        newest: dict[PoolID, list[ResourceSlice]] = {}
        for item in reached:
            kept = newest.setdefault((item.driver, item.pool), [])
            if kept and item.generation > kept[0].generation:
                kept.clear()
            if not kept or item.generation == kept[0].generation:
                kept.append(item)
        pools = [pool for key, kept in newest.items() if (pool := self._pool(key, kept, reached)) is not None]
        return tuple(sorted(pools, key=lambda pool: (_binds(pool), pool.id)))

    def _pool(
        self, key: PoolID, reached: list[ResourceSlice], places: Mapping[ResourceSlice, tuple[int, ...] | None]
    ) -> Pool | None:
        """A pool from the slices of its newest generation in reach; None if a newer one exists elsewhere."""
        everything = reached
        if len(reached) != reached[0].slices:
            if any(item.generation > reached[0].generation for item in self._all[key]):
                return None
            everything = [s for s in self._all[key] if s.generation == reached[0].generation and not s.grouped]
            if len(everything) != reached[0].slices:
                return Pool(key, incomplete=True)
        return _built(key, sorted(reached, key=lambda item: item.name), everything, places)


def _built(
    key: PoolID,
    reached: Sequence[ResourceSlice],
    everything: Sequence[ResourceSlice],
    places: Mapping[ResourceSlice, tuple[int, ...] | None],
) -> Pool:
    near = [(device, item) for item in reached if not item.counter_sets for device in item.devices]
    inside = set(reached)
    far = [device for item in everything if item not in inside and not item.counter_sets for device in item.devices]
    counters = _counter_sets(everything)
    names = {device.id.device for device, _ in near}
    if len(names) < len(near) or counters is None or not _known(counters, (*(device for device, _ in near), *far)):
        return Pool(key, invalid=True)
    hidden = [
        device
        for item in reached
        if (shown := places[item]) is not None
        for index, device in enumerate(item.devices)
        if index not in shown
    ]
    return Pool(key, devices=tuple(near), unreachable=frozenset(hidden), elsewhere=tuple(far), counters=counters)


def _counter_sets(slices: Iterable[ResourceSlice]) -> dict[tuple[str, str], int] | None:
    """Every counter of a pool by set and name; None if two sets have one name."""
    found: dict[tuple[str, str], int] = {}
    names: set[str] = set()
    for item in slices:
        for name, counters in item.counter_sets:
            if name in names:
                return None
            names.add(name)
            found |= {(name, counter): amount for counter, amount in counters.items()}
    return found


def _known(counters: Mapping[tuple[str, str], int], devices: Iterable[Device]) -> bool:
    """Does every device take from counters that exist?"""
    sets = {name for name, _ in counters}
    return all(
        name in sets and all((name, counter) in counters for counter in taken)
        for device in devices
        for name, taken in device.counters
    )


def _names(where: Where, node: Node) -> bool:
    return where.all_nodes or where.matches(node.name, node.labels)


def _binds(pool: Pool) -> bool:
    """Devices with binding conditions are tried last."""
    return any(device.conditions is not None for device, _ in pool.devices)
