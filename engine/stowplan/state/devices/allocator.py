"""The search for devices that satisfy all claims of a pod on one node: first fit, full backtracking.

Upstream: allocator_incubating.go of dynamic-resource-allocation/structured, default gates. Claims are served in the order of
the pod, requests in the order of the claim, devices in the order of pools, slices and devices; the first solution counts.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from stowplan.objects import Device, DeviceClass, DeviceID, DeviceRequest, ResourceClaim, ResourceSlice, Wanted
from stowplan.state.devices.capacity import CapacityError, consumed, fits
from stowplan.state.devices.constraints import Tracker
from stowplan.state.devices.counters import Ledger
from stowplan.state.devices.pools import Inventory, Pool
from stowplan.state.devices.selectors import DeviceTest, SelectorError
from stowplan.state.devices.taken import Taken

MOST_DEVICES = 32
"""Devices that one claim can hold (AllocationResultsMaxSize)."""


EASY = 1000
"""Tries after which a search begins to remember what has failed."""
MOST_WORK = 1_000_000
"""Tries that are really made, not remembered, before a search that has a limit gives up as well."""


class AllocationError(Exception):
    """A search that cannot go on; the text is kube-scheduler's. `here`: other nodes may do (invalid pools)."""

    def __init__(self, text: str, *, here: bool = False) -> None:
        super().__init__(text)
        self.here = here


class SearchLimitError(Exception):
    """The search has taken too many steps."""


@dataclass(frozen=True, slots=True)
class Pick:
    """A device for a request (`REQUEST` or `REQUEST/SUBREQUEST`) of a claim."""

    request: str
    device: Device
    slice: ResourceSlice
    admin: bool
    consumed: tuple[tuple[str, int], ...] | None
    """capacity taken of a device that is shared; None if the device is held alone"""


Picks = tuple[tuple[Pick, ...], ...]
"""By claim."""


@dataclass(frozen=True, slots=True)
class World:
    """What a search is about besides the claims: the devices there are, those in use, the classes, and how to ask CEL.

    `tries`: how many devices may be tried; what comes after is a SearchLimitError. 0: any number.
    """

    inventory: Inventory
    taken: Taken
    classes: Mapping[str, DeviceClass]
    test: DeviceTest
    tries: int


class _End(enum.Enum):
    FOUND = enum.auto()
    NOTHING = enum.auto()
    TOO_MANY = enum.auto()
    """nothing, because a claim would hold more devices than it can"""


@dataclass(slots=True)
class _Task:
    """A request, or one subrequest of it."""

    request: DeviceRequest
    wanted: Wanted
    sub: str
    """name of the subrequest, "" if it is none"""
    everything: list[tuple[Pool, Device, ResourceSlice]] = field(default_factory=list)
    """for the mode All: the devices it means"""

    @property
    def count(self) -> int:
        return len(self.everything) if self.wanted.mode == "All" else self.wanted.count

    @property
    def name(self) -> str:
        return f"{self.request.name}/{self.sub}" if self.sub else self.request.name


class Search:
    """One search: the claims of a pod in the pools of one node. Use it once."""

    def __init__(self, claims: Sequence[ResourceClaim], pools: Sequence[Pool], world: World) -> None:
        self._claims, self._pools, self._world, self._taken = claims, pools, world, world.taken
        self._tried = self._work = 0
        self._selected: dict[tuple[int, int, str, Device], bool] = {}
        self._tasks: list[list[list[_Task]]] = []
        self._trackers: list[list[Tracker]] = []
        self._picks: list[list[Pick]] = [[] for _ in claims]
        self._holders: dict[DeviceID, list[int]] = {}
        """devices picked to be held alone, and by which claims"""
        self._parts: dict[DeviceID, list[Mapping[str, int]]] = {}
        """devices picked to be shared, and what is taken of them"""
        self._ledger = Ledger(world.taken)
        self._failed: dict[Hashable, tuple[_End, int]] = {}
        """by state: how the search ended, and after how many tries"""

    def run(self) -> Picks | None:
        """Devices for all claims; None if there are not enough. AllocationError and SearchLimitError say what is wrong."""
        for index, claim in enumerate(self._claims):
            self._prepare(index, claim)
        end = self._next_claim(0)
        if end is _End.FOUND:
            return tuple(map(tuple, self._picks))
        if end is _End.TOO_MANY:
            raise AllocationError("allocation max size exceeded")
        if any(pool.invalid for pool in self._pools):
            raise AllocationError("invalid resource pools were encountered", here=True)
        return None

    # Preparation: what the requests are, and what "all" means

    def _prepare(self, index: int, claim: ResourceClaim) -> None:
        self._tasks.append([])
        least = 0
        for number, request in enumerate(claim.requests):
            if request.first_available:
                tasks = [_Task(request, wanted, wanted.name) for wanted in request.first_available]
            else:
                assert request.exactly is not None  # PreFilter refuses a request that is neither
                tasks = [_Task(request, request.exactly, "")]
            self._tasks[index].append(tasks)
            for task in tasks:
                self._check(index, number, task)
            fewest = min(task.count for task in tasks)
            if fewest > MOST_DEVICES - least:
                raise AllocationError(
                    f"claim {claim.key}, request {request.name}: adding {fewest} devices exceeds the claim limit of "
                    f"{MOST_DEVICES}, with {least} already accounted for"
                )
            least += fewest
        for number, constraint in enumerate(claim.constraints):
            if constraint.attribute is None:
                why = "empty constraint (unsupported constraint type?)"
                raise AllocationError(f"claim {claim.key}, constraint #{number}: {why}")
        self._trackers.append([Tracker(constraint) for constraint in claim.constraints])

    def _check(self, index: int, number: int, task: _Task) -> None:
        wanted, place = task.wanted, f"claim {self._claims[index].key}, request {task.wanted.name}"
        if wanted.derived:
            raise AllocationError(f"{place}: cannot handle request with derived attributes, the feature is disabled")
        for i, selector in enumerate(wanted.selectors):
            if selector is None:
                raise AllocationError(f"{place}, selector #{i}: CEL expression empty (unsupported selector type?)")
        if wanted.device_class not in self._world.classes:
            missing = f'deviceclass.resource.k8s.io "{wanted.device_class}" not found'
            raise AllocationError(f"{place}: could not retrieve device class {wanted.device_class}: {missing}")
        if wanted.mode == "All":
            task.everything = list(self._everything(index, number, task, place))
        elif wanted.mode != "ExactCount":
            raise AllocationError(f"{place}: unsupported count mode {wanted.mode}")

    def _everything(self, index: int, number: int, task: _Task, place: str) -> Iterator[tuple[Pool, Device, ResourceSlice]]:
        for pool in self._pools:
            if not pool.usable:
                state = "being updated" if pool.incomplete else "invalid"
                raise AllocationError(f"{place}: asks for all devices, but resource pool {pool.name} is currently {state}")
            for device, item in pool.devices:
                if self._selects(index, number, task, pool, device) and self._capable(place, task, device, {}, device.id.device):
                    yield pool, device, item

    # The search, one level of recursion for each device, request and claim

    def _next_claim(self, index: int) -> _End:
        if index == len(self._claims):
            return _End.FOUND
        return self._request(index, 0)

    def _request(self, index: int, number: int) -> _End:
        """From this request on. What has failed once fails again in the same state: its tries count, nothing is done."""
        if self._tried < EASY:
            return self._serve(index, number)
        state = self._state(index, number)
        known = self._failed.get(state)
        if known is not None:
            self._count(known[1])
            return known[0]
        before = self._tried
        end = self._serve(index, number)
        self._failed[state] = (end, self._tried - before)
        return end

    def _state(self, index: int, number: int) -> Hashable:
        """Everything that the search for the rest depends on."""
        holders = frozenset((device, tuple(claims)) for device, claims in self._holders.items())
        parts = frozenset((device, tuple(sorted(self._total(device).items()))) for device in self._parts)
        values = tuple(tracker.state() for tracker in self._trackers[index]) if index < len(self._trackers) else ()
        return index, number, len(self._picks[index]), holders, parts, self._ledger.state(), values

    def _serve(self, index: int, number: int) -> _End:
        tasks = self._tasks[index]
        if number == len(tasks):
            end = self._next_claim(index + 1)
            # with other devices for earlier claims, a prioritised list may come to need fewer
            return _End.NOTHING if end is _End.TOO_MANY else end
        if not tasks[number][0].sub:
            return self._devices(index, number, tasks[number][0], 0, (0, 0))
        worst = _End.TOO_MANY
        for task in tasks[number]:
            end = self._devices(index, number, task, 0, (0, 0))
            if end is _End.FOUND:
                return end
            if end is _End.NOTHING:
                worst = end
        return worst

    def _devices(self, index: int, number: int, task: _Task, done: int, start: tuple[int, int]) -> _End:
        """Pick the devices of a task from the `done`-th on; the search goes on from `start` (pool, device)."""
        if done >= task.count:
            # all devices must be at least one
            return self._request(index, number + 1) if done or task.wanted.mode != "All" else _End.NOTHING
        if task.count - done > MOST_DEVICES - len(self._picks[index]):
            return _End.TOO_MANY
        for place, pool, device, item in self._candidates(index, number, task, done, start):
            if not self._pick(index, task, pool, device, item):
                continue
            end = self._devices(index, number, task, done + 1, place)
            if end is _End.FOUND:
                return end
            self._unpick(index, task, pool, device)
            if end is _End.TOO_MANY:
                return end
        return _End.NOTHING

    def _candidates(
        self, index: int, number: int, task: _Task, done: int, start: tuple[int, int]
    ) -> Iterator[tuple[tuple[int, int], Pool, Device, ResourceSlice]]:
        """Devices to try next, each with the place after it: of all devices the next one, else those free and selected."""
        if task.wanted.mode == "All":
            yield start, *task.everything[done]
            return
        claim = f"claim {self._claims[index].key}, request {task.wanted.name}"
        for position in range(start[0], len(self._pools)):
            pool = self._pools[position]
            if not pool.usable:
                continue
            first = start[1] if position == start[0] else 0
            for offset in range(first, len(pool.devices)):
                device, item = pool.devices[offset]
                if not self._free(index, task, device) or not self._selects(index, number, task, pool, device):
                    continue
                if self._capable(claim, task, device, self._used(device), str(device.id)):
                    yield (position, offset + 1), pool, device, item

    def _free(self, index: int, task: _Task, device: Device) -> bool:
        """Nobody has the device for himself; with admin access, this claim has not."""
        self._work += 1
        if self._work > MOST_WORK and self._world.tries > 0:
            raise SearchLimitError
        self._count(1)
        holders = self._holders.get(device.id)
        if task.wanted.admin:
            return not holders or index not in holders
        return not holders and not self._taken.whole(device.id)

    def _count(self, tries: int) -> None:
        self._tried += tries
        if self._tried > self._world.tries > 0:
            raise SearchLimitError

    def _selects(self, index: int, number: int, task: _Task, pool: Pool, device: Device) -> bool:
        key = (index, number, task.sub, device)
        found = self._selected.get(key)
        if found is None:
            chosen = self._world.classes[task.wanted.device_class]
            found = self._selected[key] = (
                self._meets(f"class {chosen.name}", chosen.selectors, device)
                and self._meets(f"claim {self._claims[index].key}", task.wanted.selectors, device)
                and device not in pool.unreachable
            )
        return found

    def _meets(self, subject: str, selectors: Sequence[str | None], device: Device) -> bool:
        for number, expression in enumerate(selectors):
            try:
                if not self._world.test(expression or "", device):
                    return False
            except SelectorError as error:
                where = "" if error.compiling else f" on device {device.id}"
                raise AllocationError(f"{subject}: selector #{number}{where}: {error}") from None
        return True

    def _capable(self, place: str, task: _Task, device: Device, used: Mapping[str, int], name: str) -> bool:
        if not (device.capacity or task.wanted.capacity):
            return True
        try:
            return fits(dict(task.wanted.capacity), device, used)
        except CapacityError as error:
            raise AllocationError(f"{place}: checking capacity for device {name}: {error}") from None

    def _used(self, device: Device) -> Mapping[str, int]:
        """Capacity of a device that claims hold or that this search has picked."""
        return self._total(device.id) if device.id in self._parts else self._taken.used(device.id)

    def _total(self, device: DeviceID) -> dict[str, int]:
        total = dict(self._taken.used(device))
        for part in self._parts[device]:
            for name, amount in part.items():
                total[name] = total.get(name, 0) + amount
        return total

    # Picking a device and taking it back

    def _pick(self, index: int, task: _Task, pool: Pool, device: Device, item: ResourceSlice) -> bool:
        """Take the device for the task if nothing stands against it."""
        place = f"claim {self._claims[index].key}, request {task.wanted.name}"
        if not (device.shared and task.wanted.admin) and not self._free(index, task, device):
            return False
        counts = self._counts(device)
        if counts and not self._ledger.reserve(pool, device):
            return False
        if any(not task.wanted.tolerations.tolerate(taint) for taint in self._world.inventory.taints(device)):
            return self._refused(pool, device, counts)
        accepted: list[Tracker] = []
        for tracker in self._trackers[index]:
            if not tracker.accept(task.request.name, task.sub, device):
                self._relax(accepted, task)
                if task.wanted.mode == "All":
                    why = f"cannot add device {device.id} because a claim constraint would not be satisfied"
                    raise AllocationError(f"{place}: {why}")
                return self._refused(pool, device, counts)
            accepted.append(tracker)
        if not self._capable(place, task, device, self._used(device), str(device.id)):
            self._relax(accepted, task)
            return self._refused(pool, device, counts)
        self._note(index, task, device, item)
        return True

    def _note(self, index: int, task: _Task, device: Device, item: ResourceSlice) -> None:
        part = None
        if device.shared:
            part = consumed(dict(task.wanted.capacity), device)
            self._parts.setdefault(device.id, []).append(part)
        else:
            self._holders.setdefault(device.id, []).append(index)
        amounts = None if part is None else tuple(sorted(part.items()))
        self._picks[index].append(Pick(task.name, device, item, task.wanted.admin, amounts))

    def _unpick(self, index: int, task: _Task, pool: Pool, device: Device) -> None:
        """Undo the last pick of the claim, which was this device."""
        self._picks[index].pop()
        held = self._parts if device.shared else self._holders
        held[device.id].pop()
        if not held[device.id]:
            del held[device.id]
        self._relax(self._trackers[index], task)
        if self._counts(device):
            self._ledger.charge(pool, device, -1)

    def _relax(self, trackers: Sequence[Tracker], task: _Task) -> None:
        for tracker in trackers:
            tracker.undo(task.request.name, task.sub)

    def _counts(self, device: Device) -> bool:
        """Does one more claim on the device take from shared counters? Parts of a device take once."""
        if not device.counters:
            return False
        return not (device.shared and (self._taken.shared(device.id) or device.id in self._parts))

    def _refused(self, pool: Pool, device: Device, counts: bool) -> bool:
        if counts:
            self._ledger.charge(pool, device, -1)
        return False
