"""Extended resources that devices stand for: what containers ask of them, and the device requests that this makes.

Upstream: `createRequestsAndMappings` of the DynamicResources plugin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from stowplan.objects.amounts import is_dra_extended
from stowplan.objects.devices import DeviceClass, DeviceRequest, Wanted
from stowplan.objects.quantity import NANO
from stowplan.objects.requests import Shape
from stowplan.objects.taints import Tolerations


@dataclass(frozen=True, slots=True)
class ContainerDevices:
    """What one container asks of extended resources: name -> (place among its sorted requests, amount).

    `index` counts init containers, then containers; `lives` is false for an init container that ends.
    """

    index: int
    lives: bool
    asked: tuple[tuple[str, int, int], ...]


def container_devices(form: Shape) -> tuple[ContainerDevices, ...]:
    """The containers that ask for extended resources; whole amounts only, as upstream."""
    parts = [*((part, part.sidecar) for part in form.inits), *((part, True) for part in form.containers)]
    found = []
    for index, (part, lives) in enumerate(parts):
        asked = tuple(
            (name, place, amount // NANO)
            for place, (name, amount) in enumerate(sorted(part.requests.items()))
            if amount and amount % NANO == 0 and is_dra_extended(name)
        )
        if asked:
            found.append(ContainerDevices(index, lives, asked))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Need:
    index: int
    name: str
    count: int


def device_requests(
    containers: Sequence[ContainerDevices], names: Iterable[str], classes: Mapping[str, DeviceClass]
) -> tuple[DeviceRequest, ...]:
    """The requests that stand for some extended resources of a pod, by name.

    Containers that live on get devices of their own. Init containers that end use those of the living containers that come
    later, and share one request for the most that any of them lacks.
    """
    made = {}
    for resource in names:
        for need in _needs(containers, resource):
            wanted = _exactly(need, classes[resource].name)
            made[need.name] = DeviceRequest(need.name, wanted, ())
    return tuple(made[name] for name in sorted(made))


def _needs(containers: Sequence[ContainerDevices], resource: str) -> Iterator[_Need]:
    asked = [(c, place, count) for c in containers for name, place, count in c.asked if name == resource]
    living = [_Need(c.index, _name(c.index, place), count) for c, place, count in asked if c.lives]
    lacking: _Need | None = None
    for container, place, count in asked:
        if container.lives:
            continue
        rest = count - sum(need.count for need in living if need.index >= container.index)
        if rest > 0 and (lacking is None or rest > lacking.count):
            lacking = _Need(container.index, _name(container.index, place), rest)
    if lacking is not None:
        yield lacking
    yield from living


def _name(container: int, place: int) -> str:
    return f"container-{container}-request-{place}"


def _exactly(need: _Need, device_class: str) -> Wanted:
    return Wanted(need.name, device_class, (), "ExactCount", need.count, False, Tolerations(), (), False)
