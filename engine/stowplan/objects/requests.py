"""What a pod asks of a node: the one definition of pod request arithmetic.

Upstream: `PodRequests` and `AggregateContainerRequests` of k8s.io/component-helpers/resource, called with the options that
kube-scheduler's NodeResourcesFit, BalancedAllocation and NodeInfo use. All sums are exact nano units; rounding to scheduler
units happens once per pod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from stowplan.objects import wire
from stowplan.objects.amounts import Amounts, from_resource_list, is_hugepages
from stowplan.objects.errors import ObjectError
from stowplan.objects.quantity import NANO, QuantityError, milli, parse, whole

Nanos = dict[str, int]

MISSING: Nanos = {"cpu": NANO // 10, "memory": 200 * 1024 * 1024 * NANO}
"""What scores assume for a container that requests no cpu or memory: 100m and 200Mi."""


def nanos(resources: wire.ResourceList | None, path: str) -> Nanos:
    """A resource list in exact nano units; ObjectError (below `path`) for malformed or negative quantities."""
    amounts: Nanos = {}
    for name, value in (resources or {}).items():
        try:
            amount = parse(value) if value is not None else 0
        except QuantityError as error:
            raise ObjectError(f"{path}.{name}", str(error)) from None
        if amount < 0:
            raise ObjectError(f"{path}.{name}", f'"{value}" is negative')
        amounts[name] = amount
    return amounts


def limited(resources: wire.Resources | None, path: str) -> Nanos:
    """Container requests, with a limit standing in for a missing request (the API server's defaulting)."""
    if resources is None:
        return {}
    requests = nanos(resources.requests, f"{path}.requests")
    if resources.limits:
        return {**nanos(resources.limits, f"{path}.limits"), **requests}
    return requests


@dataclass(frozen=True, slots=True)
class Part:
    """A container as far as resources go."""

    name: str
    sidecar: bool
    requests: Nanos
    limits: Nanos


@dataclass(frozen=True, slots=True)
class Shape:
    """Everything in a pod spec that bears on its requests."""

    containers: tuple[Part, ...]
    inits: tuple[Part, ...]
    pod_level: Nanos
    overhead: Nanos

    @property
    def levelled(self) -> bool:
        """Does the spec set requests at pod level? Upstream `IsPodLevelRequestsSet`."""
        return any(is_pod_level(name) for name in self.pod_level)


def shape(spec: wire.PodSpec) -> Shape:
    """Read the resources of a pod spec."""
    level = spec.resources.requests if spec.resources else None
    return Shape(
        _parts(spec.containers, "spec.containers"),
        _parts(spec.init_containers, "spec.initContainers"),
        nanos(level, "spec.resources.requests"),
        nanos(spec.overhead, "spec.overhead"),
    )


def _parts(containers: Sequence[wire.Container] | None, path: str) -> tuple[Part, ...]:
    return tuple(
        Part(
            container.name or "",
            is_sidecar(container),
            limited(container.resources, f"{path}[{i}].resources"),
            nanos(container.resources.limits, f"{path}[{i}].resources.limits") if container.resources else {},
        )
        for i, container in enumerate(containers or ())
    )


def is_sidecar(container: wire.Container) -> bool:
    """An init container that keeps running."""
    return container.restart_policy == "Always"


def is_pod_level(name: str) -> bool:
    """Upstream `IsSupportedPodLevelResource`."""
    return name in ("cpu", "memory") or is_hugepages(name)


def add(total: Nanos, more: Mapping[str, int]) -> None:
    """Add `more` to `total`, resource by resource."""
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def raise_to(total: Nanos, other: Mapping[str, int]) -> None:
    """Raise `total` to `other`, resource by resource."""
    for name, amount in other.items():
        if name not in total or amount > total[name]:
            total[name] = amount


def aggregate(form: Shape, wants: Callable[[Part], Nanos]) -> Nanos:
    """Steps 1 to 3: what the containers need at once, given what each of them wants."""
    total: Nanos = {}
    for part in form.containers:
        add(total, wants(part))
    for part in form.inits:
        if part.sidecar:
            add(total, wants(part))
    for _, candidate in init_stages(form, wants):
        raise_to(total, candidate)
    return total


def init_stages(form: Shape, wants: Callable[[Part], Nanos]) -> Iterable[tuple[Part, Nanos]]:
    """Each init container with the need while it starts: itself and the sidecars started before it."""
    running: Nanos = {}
    for part in form.inits:
        candidate = dict(running)
        add(candidate, wants(part))
        if part.sidecar:
            running = candidate
        yield part, candidate


def filled(requests: Nanos, missing: Nanos) -> Nanos:
    """A container's requests with what is missing; an explicit zero stays zero."""
    return {**missing, **requests} if missing else requests


def plain(form: Shape, *, pod_level: bool = True, missing: Nanos | None = None) -> Nanos:
    """The requests of a pod, its status left aside."""
    total = aggregate(form, lambda part: filled(part.requests, missing or {}))
    return _completed(total, form, form.pod_level if pod_level else {})


def _completed(total: Nanos, form: Shape, level: Nanos) -> Nanos:
    """Steps 4 and 5: pod-level requests replace, overhead comes on top."""
    if form.levelled:
        total.update({name: amount for name, amount in level.items() if is_pod_level(name)})
    add(total, form.overhead)
    return total


@dataclass(frozen=True, slots=True)
class Report:
    """What a pod's status says about its resources.

    `allocated` and `actuated` map a container's name to its list; a container without one falls back as upstream's
    `containerAllocatedRequests` and `containerActuatedRequests` do.
    """

    infeasible: bool
    allocated: Mapping[str, Nanos]
    actuated: Mapping[str, Nanos]
    pod_allocated: Nanos | None
    pod_actuated: Nanos | None
    pod_resources: bool


def report(status: wire.PodStatus) -> Report:
    """Read the resources of a pod status."""
    allocated: dict[str, Nanos] = {}
    actuated: dict[str, Nanos] = {}
    seen: set[str] = set()
    for field, entries in (
        ("containerStatuses", status.container_statuses),
        ("initContainerStatuses", status.init_container_statuses),
    ):
        for i, entry in enumerate(entries or ()):
            name = entry.name or ""
            if name in seen:  # the first entry of a name counts
                continue
            seen.add(name)
            path = f"status.{field}[{i}]"
            if entry.allocated_resources is not None:
                allocated[name] = nanos(entry.allocated_resources, f"{path}.allocatedResources")
            if entry.resources is not None and entry.resources.requests is not None:
                actuated[name] = nanos(entry.resources.requests, f"{path}.resources.requests")
    resources = status.resources
    return Report(
        resize_infeasible(status),
        allocated,
        actuated,
        None if status.allocated_resources is None else nanos(status.allocated_resources, "status.allocatedResources"),
        None if resources is None or resources.requests is None else nanos(resources.requests, "status.resources.requests"),
        resources is not None,
    )


def resize_infeasible(status: wire.PodStatus) -> bool:
    """Upstream `IsPodResizeInfeasible`: the first PodResizePending condition decides."""
    for condition in status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def reported(form: Shape, told: Report, missing: Nanos | None = None) -> Nanos:
    """The requests of a pod, its status included: the largest of what is asked, allocated and in effect."""
    fill = missing or {}

    def asked(part: Part) -> Nanos:
        return filled(part.requests, fill)

    def fallback(part: Part) -> Nanos:
        return {} if told.infeasible else part.requests

    def allocated(part: Part) -> Nanos:
        return filled(told.allocated.get(part.name, fallback(part)), fill)

    def actuated(part: Part) -> Nanos:
        return filled(told.actuated.get(part.name, told.allocated.get(part.name, fallback(part))), fill)

    total = {} if told.infeasible else aggregate(form, asked)
    if told.pod_allocated is not None and told.pod_actuated is not None:
        raise_to(total, told.pod_actuated)
        raise_to(total, told.pod_allocated)
    else:
        raise_to(total, aggregate(form, actuated))
        raise_to(total, aggregate(form, allocated))
    level = form.pod_level
    if told.pod_resources:
        level = {} if told.infeasible else dict(form.pod_level)
        raise_to(level, told.pod_actuated or {})
        raise_to(level, told.pod_allocated or {})
    return _completed(total, form, level)


Usage = tuple[Amounts, tuple[int, int]]
"""What a pod occupies: its requested amounts, and (cpu milli, memory bytes) with the defaults for missing requests."""

QUIET = Report(False, {}, {}, None, None, False)
"""A status that says nothing about resources."""


def usage(form: Shape, told: Report = QUIET) -> Usage:
    """What a pod occupies on its node: upstream `PodInfo.CalculateResource`."""
    total = reported(form, told)
    missing = {name: amount for name, amount in MISSING.items() if not form.levelled or name not in total}
    nonzero = reported(form, told, missing) if missing else total
    return from_resource_list(total), (milli(nonzero.get("cpu", 0)), whole(nonzero.get("memory", 0)))


def dominant(form: Shape) -> str:
    """What decided the cpu request: `containers`, `initContainers[NAME]`, `pod level` or `overhead`."""
    total: Nanos = {}
    for part in (*form.containers, *(p for p in form.inits if p.sidecar)):
        add(total, part.requests)
    most, name = total.get("cpu", 0), "containers"
    for part, candidate in init_stages(form, lambda p: p.requests):
        if candidate.get("cpu", 0) > most:
            most, name = candidate["cpu"], f"initContainers[{part.name}]"
    if "cpu" in form.pod_level:
        most, name = form.pod_level["cpu"], "pod level"
    return "overhead" if form.overhead.get("cpu", 0) > most else name
