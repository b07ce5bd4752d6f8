"""The column of devices: what there is, what is in use, and what searches have found so far."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stowplan.objects import (
    DeviceClass,
    DeviceTaintRule,
    Node,
    Pod,
    ResourceClaim,
    ResourceSlice,
    extended_classes,
)
from stowplan.state.columns import Column, Reach, Storage
from stowplan.state.devices.allocator import Picks, Search, SearchLimitError, World
from stowplan.state.devices.pools import Inventory, Pool, PoolID
from stowplan.state.devices.selectors import DeviceTest
from stowplan.state.devices.taken import Taken

if TYPE_CHECKING:
    from stowplan.state.cluster import Cluster
    from stowplan.state.store import Store

SHAPES = 64
"""Kinds of claims whose answers are remembered."""

Answers = dict[tuple[Pool, ...], Picks | SearchLimitError | None]


class Devices:
    """The devices of the cluster as they stand. `stamp` grows whenever any answer may have changed."""

    def __init__(self) -> None:
        self.stamp = 0
        self.classes: Mapping[str, DeviceClass] = {}
        self.extended: Mapping[str, DeviceClass] = {}
        """the class behind an extended resource"""
        self.inventory = Inventory((), ())
        self.taken = Taken()
        self._parts: tuple[tuple[Any, ...], ...] = ((), (), ())
        self._claims: dict[str, ResourceClaim] = {}
        self._answers: dict[Any, Answers] = {}
        self._seen_in: dict[PoolID, set[tuple[Pool, ...]]] = defaultdict(set)

    def finder(self, claims: Sequence[ResourceClaim], test: DeviceTest, tries: int) -> Finder:
        """Looks for devices for these claims, node by node. Nodes that see the same pools share an answer."""
        shape = (tuple((claim.requests, claim.constraints) for claim in claims), test, tries)
        answers = self._answers.pop(shape, None)
        if answers is None:
            answers = {}
            while len(self._answers) >= SHAPES:
                del self._answers[next(iter(self._answers))]
        self._answers[shape] = answers
        return Finder(self, claims, World(self.inventory, self.taken, self.classes, test, tries), answers)

    def special_claim(self, pod: Pod) -> ResourceClaim | None:
        """The claim that an earlier attempt made for the pod's extended resources (upstream `findExtendedResourceClaim`)."""
        owner = (pod.name, pod.uid)
        return next((claim for claim in self._claims.values() if claim.extended and owner in claim.controllers), None)

    # Keeping current

    def follow(self, facts: Mapping[type, Mapping[str, Any]]) -> None:
        """Take in the facts as they are now."""
        kinds = (ResourceSlice, DeviceTaintRule, DeviceClass)
        parts = tuple(tuple(facts.get(kind, {}).values()) for kind in kinds)
        if parts != self._parts:
            self._parts = parts
            self.inventory = Inventory(parts[0], parts[1])
            self.classes = {offered.name: offered for offered in parts[2]}
            self.extended = extended_classes(self.classes)
            self._answers.clear()
            self._seen_in.clear()
            self.stamp += 1
        self._follow_claims(facts.get(ResourceClaim, {}))

    def _follow_claims(self, claims: Mapping[str, ResourceClaim]) -> None:
        known = self._claims
        gone = [key for key in known if key not in claims] if len(known) != len(claims) or known.keys() != claims.keys() else []
        changed = [claim for key, claim in claims.items() if known.get(key) is not claim]
        if not gone and not changed:
            return
        self.stamp += 1
        for key in gone:
            self._count(known.pop(key), -1)
        for claim in changed:
            if (old := known.get(claim.key)) is not None:
                self._count(old, -1)
            known[claim.key] = claim
            self._count(claim, 1)

    def _count(self, claim: ResourceClaim, sign: int) -> None:
        for device in self.taken.count(claim, sign):
            for pools in self._seen_in.get((device.driver, device.pool), ()):
                for answers in self._answers.values():
                    answers.pop(pools, None)

    def saw(self, pools: tuple[Pool, ...]) -> None:
        """An answer for these pools is remembered: it goes when one of their devices comes into use or out of it."""
        for pool in pools:
            self._seen_in[pool.id].add(pools)


class Finder:
    """Devices for some claims, on any node."""

    def __init__(self, devices: Devices, claims: Sequence[ResourceClaim], world: World, answers: Answers) -> None:
        self._devices, self._claims, self._world, self._answers = devices, claims, world, answers

    def on(self, node: Node) -> Picks | None:
        """What `Search` finds for the claims on a node. An AllocationError names the claims, so it is not remembered."""
        pools = self._world.inventory.pools(node)
        if pools not in self._answers:
            try:
                self._answers[pools] = Search(self._claims, pools, self._world).run()
            except SearchLimitError as limit:
                self._answers[pools] = limit
            self._devices.saw(pools)
        found = self._answers[pools]
        if isinstance(found, SearchLimitError):
            raise SearchLimitError
        return found


class DeviceStorage(Storage[Devices]):
    """Devices as the store's facts tell of them; nothing here is kept by row."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lookups = -1
        self._devices = Devices()

    def grow(self, capacity: int) -> None:
        """Nothing here is sized by rows."""

    def view(self, cluster: Cluster) -> Devices:  # noqa: ARG002 - the same devices whatever rows are asked
        if self._lookups != self._store.lookups:
            self._lookups = self._store.lookups
            self._devices.follow(self._store.facts)
        return self._devices


DEVICES: Column[Devices] = Column("devices", Reach.NODE, DeviceStorage)
"""Asks hold its stamp, so answers from it are theirs alone; rows differ by node."""
