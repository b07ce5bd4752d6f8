"""Resource amounts in scheduler units, and which resource names the scheduler counts.

Upstream: `framework.Resource` (cpu in milli units, everything else in whole units), `IsScalarResourceName` of
pkg/scheduler/util and the name tests of pkg/apis/core/v1/helper.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar

from stowplan.objects.frozenmap import FrozenMap
from stowplan.objects.qualified import is_qualified_name
from stowplan.objects.quantity import milli, whole


class Amounts(FrozenMap[int]):
    """Resource name -> amount in scheduler units; names in sorted order. `Amounts.of(...)` makes one."""

    __slots__ = ()

    EMPTY: ClassVar[Amounts]

    def get(self, key: str, default: Any = 0) -> int:
        """The amount of a resource; one that is not listed counts as `default`."""
        amount: int = self._content.get(key, default)
        return amount


Amounts.EMPTY = Amounts.of({})

_CORE = frozenset({"cpu", "memory", "ephemeral-storage"})


def is_native(name: str) -> bool:
    """Upstream `IsNativeResource`: without a slash, or inside kubernetes.io."""
    return "/" not in name or is_prefixed_native(name)


def is_prefixed_native(name: str) -> bool:
    """Upstream `IsPrefixedNativeResource`: "kubernetes.io/" anywhere in the name."""
    return "kubernetes.io/" in name


@lru_cache(maxsize=4096)
def is_extended(name: str) -> bool:
    """Upstream `IsExtendedResourceName`: devices and the like, counted in whole pieces."""
    return not is_native(name) and not name.startswith("requests.") and is_qualified_name("requests." + name)


def is_hugepages(name: str) -> bool:
    """Upstream `IsHugePageResourceName`."""
    return name.startswith("hugepages-")


def is_attachable_volume(name: str) -> bool:
    """Upstream `IsAttachableVolumeResourceName`."""
    return name.startswith("attachable-volumes-")


@lru_cache(maxsize=4096)
def is_scalar(name: str) -> bool:
    """Upstream `IsScalarResourceName`: a resource beyond cpu, memory and ephemeral-storage that is counted."""
    return is_extended(name) or is_hugepages(name) or is_prefixed_native(name) or is_attachable_volume(name)


def is_dra_extended(name: str) -> bool:
    """Upstream `IsDRAExtendedResourceName`: a name that a DeviceClass may stand behind."""
    return is_extended(name) or name.startswith("deviceclass.resource.kubernetes.io/")


def from_resource_list(nanos: Mapping[str, int], *, pods: bool = False) -> Amounts:
    """Exact nano amounts -> scheduler units, each rounded up once; names that are not counted are dropped.

    `pods=True` also keeps `pods`, which is the pod limit of a node and means nothing in a pod.
    """
    return Amounts.of(
        {
            name: milli(nano) if name == "cpu" else whole(nano)
            for name, nano in nanos.items()
            if name in _CORE or is_scalar(name) or (pods and name == "pods")
        }
    )
