"""Claims, slices, classes and taint rules of dynamic resource allocation, as `wire` does it for pods.

The shape is that of resource.k8s.io/v1 (and v1beta2, which is the same).
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from stowplan.objects import wire
from stowplan.objects.wire import Amount, Int64, NodeSelector, ResourceList, Texts, Toleration, Wire


class Metadata(wire.Metadata):
    """With annotations: one of them marks the claim that stands for extended resources."""

    annotations: Texts | None = None


class CELSelector(Wire, frozen=True):
    expression: str | None = None


class DeviceSelector(Wire, frozen=True):
    cel: CELSelector | None = None


class DeviceClassSpec(Wire, frozen=True):
    selectors: tuple[DeviceSelector, ...] | None = None
    extended_resource_name: str | None = None


class DeviceClass(Wire, frozen=True):
    metadata: wire.Metadata | None = None
    spec: DeviceClassSpec | None = None


# claims


class CapacityRequirements(Wire, frozen=True):
    requests: ResourceList | None = None


class ExactRequest(Wire, frozen=True):
    """ExactDeviceRequest and DeviceSubRequest; only the latter has a name of its own."""

    name: str | None = None
    device_class_name: str | None = None
    selectors: tuple[DeviceSelector, ...] | None = None
    allocation_mode: str | None = None
    count: Int64 | None = None
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] | None = None
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[Wire, ...] | None = None


class DeviceRequest(Wire, frozen=True):
    name: str | None = None
    exactly: ExactRequest | None = None
    first_available: tuple[ExactRequest, ...] | None = None


class DeviceConstraint(Wire, frozen=True):
    requests: tuple[str, ...] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(Wire, frozen=True):
    requests: tuple[DeviceRequest, ...] | None = None
    constraints: tuple[DeviceConstraint, ...] | None = None


class ClaimSpec(Wire, frozen=True):
    devices: DeviceClaim | None = None


class DeviceResult(Wire, frozen=True):
    request: str | None = None
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    admin_access: bool | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: ResourceList | None = None
    skip_node_operations: tuple[str, ...] | None = None


class DeviceResults(Wire, frozen=True):
    results: tuple[DeviceResult, ...] | None = None


class Allocation(Wire, frozen=True):
    devices: DeviceResults | None = None
    node_selector: NodeSelector | None = None
    allocation_timestamp: datetime | None = None


class DeviceStatus(Wire, frozen=True):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    conditions: tuple[wire.Condition, ...] | None = None


class Consumer(Wire, frozen=True):
    uid: str | None = None


class ClaimStatus(Wire, frozen=True):
    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] | None = None
    devices: tuple[DeviceStatus, ...] | None = None


class ResourceClaim(Wire, frozen=True):
    metadata: Metadata | None = None
    spec: ClaimSpec | None = None
    status: ClaimStatus | None = None


# slices


class Attribute(Wire, frozen=True):
    string: str | None = None
    int_: Int64 | None = msgspec.field(default=None, name="int")
    bool_: bool | None = msgspec.field(default=None, name="bool")
    version: str | None = None


class ValidRange(Wire, frozen=True):
    min: Amount = None
    max: Amount = None
    step: Amount = None


class RequestPolicy(Wire, frozen=True):
    default: Amount = None
    valid_values: tuple[Amount, ...] | None = None
    valid_range: ValidRange | None = None


class Capacity(Wire, frozen=True):
    value: Amount = None
    request_policy: RequestPolicy | None = None


class Counter(Wire, frozen=True):
    value: Amount = None


class CounterSet(Wire, frozen=True):
    name: str | None = None
    counters: dict[str, Counter | None] | None = None


class CounterConsumption(Wire, frozen=True):
    counter_set: str | None = None
    counters: dict[str, Counter | None] | None = None
    compatibility_groups: tuple[str, ...] | None = None


class DeviceTaint(Wire, frozen=True):
    key: str | None = None
    value: str | None = None
    effect: str | None = None


class Device(Wire, frozen=True):
    name: str | None = None
    attributes: dict[str, Attribute | None] | None = None
    capacity: dict[str, Capacity | None] | None = None
    consumes_counters: tuple[CounterConsumption, ...] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] | None = None
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    allow_multiple_allocations: bool | None = None


class Pool(Wire, frozen=True):
    name: str | None = None
    generation: Int64 | None = None
    resource_slice_count: Int64 | None = None


class SliceSpec(Wire, frozen=True):
    driver: str | None = None
    pool: Pool | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] | None = None
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] | None = None


class ResourceSlice(Wire, frozen=True):
    metadata: wire.Metadata | None = None
    spec: SliceSpec | None = None


class TaintSelector(Wire, frozen=True):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class TaintRuleSpec(Wire, frozen=True):
    device_selector: TaintSelector | None = None
    taint: DeviceTaint | None = None


class DeviceTaintRule(Wire, frozen=True):
    metadata: wire.Metadata | None = None
    spec: TaintRuleSpec | None = None
