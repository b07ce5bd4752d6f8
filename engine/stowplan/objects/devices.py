"""Dynamic resource allocation as facts: what devices there are, what claims ask for and what they hold.

Upstream: k8s.io/api/resource/v1. Amounts are exact nano units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from stowplan.objects.labels import Labels, Requirement
from stowplan.objects.nodeselector import NAME, NodeSelector, NodeTerm
from stowplan.objects.taints import Taint, Tolerations

IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""Prefix of the extended resource that every DeviceClass offers under its own name."""
SPECIAL_CLAIM = "<extended-resources>"
"""Upstream's name of the claim for extended resources before the API server has one."""


class DeviceID(NamedTuple):
    """A device in the cluster."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class Attribute(NamedTuple):
    """A typed value: `type` is string, int, bool or version; "" for a type that is not known here."""

    type: str
    value: str | int | bool | None


@dataclass(frozen=True, slots=True)
class Steps:
    """A CapacityRequestPolicyRange."""

    min: int | None
    max: int | None
    step: int | None


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """Which amounts of a capacity can be had; `values` None and `steps` None: any."""

    default: int | None
    values: tuple[int, ...] | None
    steps: Steps | None


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much of something a device has."""

    value: int
    policy: RequestPolicy | None


@dataclass(frozen=True, slots=True)
class Where:
    """The nodes that reach a slice or a device."""

    node_name: str
    all_nodes: bool
    selector: NodeSelector | None

    @property
    def known(self) -> bool:
        """Is there anything that says so?"""
        return bool(self.node_name) or self.all_nodes or self.selector is not None

    def matches(self, name: str, labels: Labels) -> bool:
        """Upstream `NodeMatches`."""
        if self.node_name:
            return name == self.node_name
        return self.all_nodes or (self.selector is not None and self.selector.matches(name, labels))


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Device:
    """A device of a slice; equality is identity.

    counters    what it takes of which shared counter set
    shared      several claims may hold a part of it each (allowMultipleAllocations)
    conditions  binding conditions, None where the device knows none
    """

    id: DeviceID
    attributes: Mapping[str, Attribute]
    capacity: Mapping[str, Capacity]
    counters: tuple[tuple[str, Mapping[str, int]], ...]
    where: Where
    taints: tuple[Taint, ...]
    shared: bool
    binds_to_node: bool
    conditions: tuple[str, ...] | None
    failures: tuple[str, ...]

    def attribute(self, name: str) -> Attribute | None:
        """An attribute by its fully qualified name; the driver's own may be listed without its domain."""
        found = self.attributes.get(name)
        if found is None:
            domain, slash, own = name.partition("/")
            found = self.attributes.get(own) if slash and domain == self.id.driver else None
        return found


@dataclass(frozen=True, slots=True, eq=False)
class ResourceSlice:
    """A part of a pool of devices; equality is identity. `grouped`: some device declares compatibility groups."""

    name: str
    driver: str
    pool: str
    generation: int
    slices: int
    where: Where
    per_device: bool
    devices: tuple[Device, ...]
    counter_sets: tuple[tuple[str, Mapping[str, int]], ...]
    grouped: bool

    @property
    def key(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A resource.k8s.io DeviceClass: the extended resource it stands for ("" if none), epoch seconds, CEL selectors."""

    name: str
    extended_resource: str
    created: float | None
    selectors: tuple[str | None, ...]

    @property
    def key(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class DeviceTaintRule:
    """A taint for all devices of a driver, pool and name (None: any). Without a selector it is for none."""

    name: str
    selects: bool
    driver: str | None
    pool: str | None
    device: str | None
    taint: Taint

    @property
    def key(self) -> str:
        return self.name

    def covers(self, device: DeviceID) -> bool:
        """Does the rule taint this device? Upstream: `applyPatches` of resourceslice/tracker."""
        asked = ((self.driver, device.driver), (self.pool, device.pool), (self.device, device.device))
        return self.selects and all(wanted is None or wanted == found for wanted, found in asked)


@dataclass(frozen=True, slots=True)
class Wanted:
    """An ExactDeviceRequest or one subrequest of a prioritised list.

    `mode` is ExactCount or All; a selector without an expression (of a type unknown here) is None.
    """

    name: str
    device_class: str
    selectors: tuple[str | None, ...]
    mode: str
    count: int
    admin: bool
    tolerations: Tolerations
    capacity: tuple[tuple[str, int], ...]
    derived: bool


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """A request of a claim: `exactly`, or the first of some subrequests that can be had."""

    name: str
    exactly: Wanted | None
    first_available: tuple[Wanted, ...]


@dataclass(frozen=True, slots=True)
class DeviceConstraint:
    """All devices of some requests (all requests if none is named) agree, or all differ, in an attribute."""

    requests: frozenset[str]
    attribute: str | None
    distinct: bool


@dataclass(frozen=True, slots=True)
class HeldDevice:
    """A device that a claim holds: for which request, with what part of its capacity."""

    request: str
    id: DeviceID
    admin: bool = False
    share: str | None = None
    consumed: tuple[tuple[str, int], ...] = ()
    conditions: tuple[str, ...] | None = None
    failures: tuple[str, ...] = ()
    skips_node: bool = False


@dataclass(frozen=True, slots=True)
class Allocation:
    """The devices of a claim and the nodes that reach them (None: all). `stamped`: it says since when it is there."""

    devices: tuple[HeldDevice, ...]
    selector: NodeSelector | None
    stamped: bool = False


@dataclass(frozen=True, slots=True)
class ResourceClaim:
    """A claim of devices.

    reserved     uids of those that may use what it holds
    controllers  name and uid of the owners that control it
    extended     the scheduler made it for extended resources of a pod
    pending      allocated by a decision that is not carried out yet: other pods cannot use it before it is
    conditions   (device, condition type) that are true
    reported     devices that the status says something about
    """

    namespace: str
    name: str
    uid: str
    requests: tuple[DeviceRequest, ...]
    constraints: tuple[DeviceConstraint, ...] = ()
    allocation: Allocation | None = None
    pending: bool = False
    deleting: bool = False
    reserved: tuple[str, ...] = ()
    controllers: tuple[tuple[str, str], ...] = ()
    extended: bool = False
    conditions: frozenset[tuple[DeviceID, str]] = frozenset()
    reported: frozenset[DeviceID] = frozenset()

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    def stuck(self) -> bool:
        """Has waiting for the binding conditions of its devices failed, or taken too long?

        Upstream `isClaimReadyForBinding` and `isClaimTimeout`. Decisions know no clock: an allocation that says since when
        it is there has waited long enough.
        """
        allocation = self.allocation
        if allocation is None:
            return False
        waiting = False
        for held in allocation.devices:
            if not held.conditions:
                continue
            if held.id in self.reported and any((held.id, failure) in self.conditions for failure in held.failures):
                return True
            if any((held.id, condition) not in self.conditions for condition in held.conditions):
                waiting = True
                break
        return waiting and allocation.stamped and any(held.conditions is not None for held in allocation.devices)


def only_on(node: str) -> NodeSelector:
    """The selector of one node, by name."""
    return NodeSelector((NodeTerm(fields=(Requirement(NAME, frozenset({node})),)),))


def extended_classes(classes: Mapping[str, DeviceClass]) -> dict[str, DeviceClass]:
    """The class behind each extended resource, explicit or by the class's own name (upstream `ExtendedResourceCache`).

    Of two classes that offer the same one, that created later wins, then the smaller name. Upstream learns of classes in
    the order of their names at first, and one that loses on arrival does not get its own name either.
    """
    found: dict[str, DeviceClass] = {}
    for name in sorted(classes):
        offered = classes[name]
        rival = found.get(offered.extended_resource) if offered.extended_resource else None
        if rival is not None and _age(offered) <= _age(rival):
            continue  # at equal age the rival, seen first, has the smaller name
        if offered.extended_resource:
            found[offered.extended_resource] = offered
        found[IMPLICIT + name] = offered
    return found


def _age(offered: DeviceClass) -> float:
    return float("-inf") if offered.created is None else offered.created
