"""From decoded objects of resource.k8s.io to facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stowplan.objects import wire, wire_devices
from stowplan.objects.devices import (
    Allocation,
    Attribute,
    Capacity,
    Device,
    DeviceClass,
    DeviceConstraint,
    DeviceID,
    DeviceRequest,
    DeviceTaintRule,
    HeldDevice,
    RequestPolicy,
    ResourceClaim,
    ResourceSlice,
    Steps,
    Wanted,
    Where,
)
from stowplan.objects.errors import ObjectError
from stowplan.objects.nodeselector import node_selector
from stowplan.objects.quantity import QuantityError, parse
from stowplan.objects.taints import Taint, Toleration, Tolerations

EXTENDED_CLAIM = "resource.kubernetes.io/extended-resource-claim"


def device_class(item: wire_devices.DeviceClass, metadata: wire.Metadata, _: str) -> DeviceClass:
    spec = item.spec or wire_devices.DeviceClassSpec()
    created = wire.epoch(metadata.creation_timestamp)
    return DeviceClass(metadata.name or "", spec.extended_resource_name or "", created, _selectors(spec.selectors))


def taint_rule(item: wire_devices.DeviceTaintRule, metadata: wire.Metadata, _: str) -> DeviceTaintRule:
    spec = item.spec or wire_devices.TaintRuleSpec()
    chosen = spec.device_selector or wire_devices.TaintSelector()
    return DeviceTaintRule(
        metadata.name or "",
        spec.device_selector is not None,
        chosen.driver,
        chosen.pool,
        chosen.device,
        _taint(spec.taint or wire_devices.DeviceTaint()),
    )


# claims


def resource_claim(item: wire_devices.ResourceClaim, metadata: wire_devices.Metadata, _: str) -> ResourceClaim:
    spec = (item.spec and item.spec.devices) or wire_devices.DeviceClaim()
    status = item.status or wire_devices.ClaimStatus()
    reported = {DeviceID(d.driver or "", d.pool or "", d.device or ""): d for d in reversed(status.devices or ())}
    return ResourceClaim(
        metadata.namespace or "default",
        metadata.name or "",
        metadata.uid or "",
        tuple(_request(r, f"spec.devices.requests[{i}]") for i, r in enumerate(spec.requests or ())),
        tuple(_constraint(c) for c in spec.constraints or ()),
        None if status.allocation is None else _allocation(status.allocation),
        deleting=metadata.deletion_timestamp is not None,
        reserved=tuple(consumer.uid or "" for consumer in status.reserved_for or ()),
        controllers=tuple((o.name or "", o.uid or "") for o in metadata.owner_references or () if o.controller),
        extended=wire.texts(metadata.annotations).get(EXTENDED_CLAIM) == "true",
        conditions=frozenset(
            (place, condition.type or "")
            for place, told in reported.items()
            for condition in told.conditions or ()
            if condition.status == "True"
        ),
        reported=frozenset(reported),
    )


def _request(request: wire_devices.DeviceRequest, path: str) -> DeviceRequest:
    name, exactly = request.name or "", request.exactly
    return DeviceRequest(
        name,
        None if exactly is None else _wanted(name, exactly, f"{path}.exactly"),
        tuple(_wanted(s.name or "", s, f"{path}.firstAvailable[{i}]") for i, s in enumerate(request.first_available or ())),
    )


def _wanted(name: str, wanted: wire_devices.ExactRequest, path: str) -> Wanted:
    mode = wanted.allocation_mode or "ExactCount"
    capacity = wanted.capacity.requests if wanted.capacity else None
    return Wanted(
        name,
        wanted.device_class_name or "",
        _selectors(wanted.selectors),
        mode,
        wanted.count or (1 if mode == "ExactCount" else 0),
        bool(wanted.admin_access),
        Tolerations(
            tuple(Toleration(t.key or "", t.operator or "", t.value or "", t.effect or "") for t in wanted.tolerations or ())
        ),
        tuple(sorted(_amounts(capacity, f"{path}.capacity.requests").items())),
        bool(wanted.derived_attributes),
    )


def _selectors(selectors: Sequence[wire_devices.DeviceSelector] | None) -> tuple[str | None, ...]:
    return tuple(None if s.cel is None else s.cel.expression or "" for s in selectors or ())


def _constraint(constraint: wire_devices.DeviceConstraint) -> DeviceConstraint:
    match = constraint.match_attribute
    distinct = match is None and constraint.distinct_attribute is not None
    return DeviceConstraint(frozenset(constraint.requests or ()), constraint.distinct_attribute if distinct else match, distinct)


def _allocation(allocation: wire_devices.Allocation) -> Allocation:
    path = "status.allocation"
    results = (allocation.devices and allocation.devices.results) or ()
    selector = allocation.node_selector
    return Allocation(
        tuple(_held(result, f"{path}.devices.results[{i}]") for i, result in enumerate(results)),
        None if selector is None else node_selector(selector, f"{path}.nodeSelector"),
        stamped=allocation.allocation_timestamp is not None,
    )


def _held(result: wire_devices.DeviceResult, path: str) -> HeldDevice:
    return HeldDevice(
        result.request or "",
        DeviceID(result.driver or "", result.pool or "", result.device or ""),
        admin=bool(result.admin_access),
        share=result.share_id,
        consumed=tuple(sorted(_amounts(result.consumed_capacity, f"{path}.consumedCapacity").items())),
        conditions=result.binding_conditions,
        failures=result.binding_failure_conditions or (),
        skips_node=bool(result.skip_node_operations),
    )


# slices


def resource_slice(item: wire_devices.ResourceSlice, metadata: wire.Metadata, _: str) -> ResourceSlice:
    spec = item.spec or wire_devices.SliceSpec()
    pool = spec.pool or wire_devices.Pool()
    devices = spec.devices or ()
    driver, name = spec.driver or "", pool.name or ""
    return ResourceSlice(
        metadata.name or "",
        driver,
        name,
        pool.generation or 0,
        pool.resource_slice_count or 0,
        _where(spec, "spec"),
        bool(spec.per_device_node_selection),
        tuple(_device(d, driver, name, f"spec.devices[{i}]") for i, d in enumerate(devices)),
        tuple(
            (counters.name or "", _counters(counters.counters, f"spec.sharedCounters[{i}].counters"))
            for i, counters in enumerate(spec.shared_counters or ())
        ),
        grouped=any(taken.compatibility_groups for device in devices for taken in device.consumes_counters or ()),
    )


def _where(place: wire_devices.SliceSpec | wire_devices.Device, path: str) -> Where:
    selector = place.node_selector
    chosen = None if selector is None else node_selector(selector, f"{path}.nodeSelector")
    return Where(place.node_name or "", bool(place.all_nodes), chosen)


def _device(device: wire_devices.Device, driver: str, pool: str, path: str) -> Device:
    return Device(
        DeviceID(driver, pool, device.name or ""),
        {name: _attribute(value) for name, value in (device.attributes or {}).items()},
        {name: _capacity(value, f"{path}.capacity.{name}") for name, value in (device.capacity or {}).items()},
        tuple(
            (taken.counter_set or "", _counters(taken.counters, f"{path}.consumesCounters[{i}].counters"))
            for i, taken in enumerate(device.consumes_counters or ())
        ),
        _where(device, path),
        tuple(map(_taint, device.taints or ())),
        bool(device.allow_multiple_allocations),
        bool(device.binds_to_node),
        device.binding_conditions,
        device.binding_failure_conditions or (),
    )


def _taint(taint: wire_devices.DeviceTaint) -> Taint:
    return Taint(taint.key or "", taint.value or "", taint.effect or "")


def _attribute(attribute: wire_devices.Attribute | None) -> Attribute:
    found = attribute or wire_devices.Attribute()
    if found.string is not None:
        return Attribute("string", found.string)
    if found.int_ is not None:
        return Attribute("int", found.int_)
    if found.bool_ is not None:
        return Attribute("bool", found.bool_)
    return Attribute("", None) if found.version is None else Attribute("version", found.version)


def _capacity(capacity: wire_devices.Capacity | None, path: str) -> Capacity:
    found = capacity or wire_devices.Capacity()
    return Capacity(_amount(found.value, f"{path}.value") or 0, _policy(found.request_policy, f"{path}.requestPolicy"))


def _policy(policy: wire_devices.RequestPolicy | None, path: str) -> RequestPolicy | None:
    if policy is None:
        return None
    values, steps = policy.valid_values, policy.valid_range
    return RequestPolicy(
        _amount(policy.default, f"{path}.default"),
        None if values is None else tuple(_amount(v, f"{path}.validValues[{i}]") or 0 for i, v in enumerate(values)),
        None
        if steps is None
        else Steps(*(_amount(getattr(steps, side), f"{path}.validRange.{side}") for side in ("min", "max", "step"))),
    )


def _counters(counters: Mapping[str, wire_devices.Counter | None] | None, path: str) -> dict[str, int]:
    return {name: (_amount(counter.value, f"{path}.{name}") or 0) if counter else 0 for name, counter in (counters or {}).items()}


def _amounts(amounts: wire.ResourceList | None, path: str) -> dict[str, int]:
    return {name: _amount(value, f"{path}.{name}") or 0 for name, value in (amounts or {}).items()}


def _amount(value: wire.Amount, path: str) -> int | None:
    """A quantity in nano units, negative ones too: what they mean is upstream's business."""
    try:
        return None if value is None else parse(value)
    except QuantityError as error:
        raise ObjectError(path, str(error)) from None
