"""ResourceClaims of a pod: given their devices and reserved for it before it is bound, taken back if it is not.

Upstream: `bindClaim` and `Unreserve` of DynamicResources. Taking back ends the reservation only: the devices stay with the
claim, for the pod's next attempt or for the claim controller to take away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote

import msgspec

from stowplan.edge.clock import monotonic
from stowplan.edge.kube import extended, settle
from stowplan.edge.kube.allocated import allocation_json, class_names
from stowplan.edge.kube.calls import Caller
from stowplan.edge.kube.pods import path as pod_path
from stowplan.edge.kube.settle import Object, PrepareError
from stowplan.objects import Allocation, DeviceID, Pod, ResourceClaim, read_as

FINALIZER = "resource.kubernetes.io/delete-protection"
GROUP = "/apis/resource.k8s.io/v1"
POLL = 5.0
"""Seconds between two looks at binding conditions."""


@dataclass(frozen=True, slots=True)
class _Reserved:
    path: str
    uid: str
    special: bool


class Claims:
    """Reserves claims. `patience`: seconds that devices have to become ready for binding."""

    def __init__(self, caller: Caller, patience: float) -> None:
        self._caller, self._patience = caller, patience
        self._reserved: dict[str, list[_Reserved]] = {}

    async def reserve(self, pod: Pod, claims: Iterable[ResourceClaim]) -> None:
        """Give the claims what was decided, and let the pod use them. PrepareError if that cannot be."""
        waiting = []
        for claim in claims:
            special = claim.extended and not claim.uid
            held = await self._create(pod, claim) if special else None
            path = _path(claim.namespace, claim.name if held is None else held["metadata"]["name"])
            uid = claim.uid if held is None else held["metadata"]["uid"]
            self._reserved.setdefault(pod.uid, []).append(_Reserved(path, uid, special))
            await self._give(pod, claim, path, uid)
            if special:
                await self._tell(pod, claim, path.rpartition("/")[2])
            if claim.allocation is not None and any(each.conditions for each in claim.allocation.devices):
                waiting.append(path)
        for path in waiting:
            await self._ready(path)

    async def undo(self, pod: Pod) -> None:
        """The pod does not come to use its claims."""
        for reserved in self._reserved.pop(pod.uid, ()):
            if reserved.special:
                await self._delete(reserved)
            else:
                body = {
                    "metadata": {"uid": reserved.uid},
                    "status": {"reservedFor": [{"$patch": "delete", "uid": pod.uid}]},
                }
                await settle.patch(self._caller, f"{reserved.path}/status", body)

    def bound(self, pod: Pod) -> None:
        """The pod uses its claims."""
        self._reserved.pop(pod.uid, None)

    async def deallocate(self, pod: Pod, claim: ResourceClaim) -> str:
        """Give up what a claim holds that no other pod uses; what went wrong (upstream: `deallocateOrDeletePodClaims`)."""
        path = _path(claim.namespace, claim.name)

        def release(held: Object) -> Object | None:
            status = held.get("status") or {}
            another = held["metadata"].get("uid") != claim.uid or held["metadata"].get("deletionTimestamp")
            used = any(user.get("uid") != pod.uid for user in status.get("reservedFor") or ())
            if another or used or not status.get("allocation"):
                return None
            return {"status": {"allocation": None, "reservedFor": None, "devices": None}}

        try:
            held = await settle.settle(self._caller, path, release, "/status")
            idle = held["metadata"].get("uid") == claim.uid and not (held.get("status") or {}).get("reservedFor")
            if claim.extended and idle:
                await self._delete(_Reserved(path, claim.uid, special=True))
        except PrepareError as error:
            return str(error)
        return ""

    async def _give(self, pod: Pod, claim: ResourceClaim, path: str, uid: str) -> None:
        """The finalizer in a write of its own, then allocation and reservation together."""
        if claim.pending and claim.allocation is not None:

            def protect(held: Object) -> Object | None:
                _same(held, uid)
                present = held["metadata"].get("finalizers") or []
                return None if FINALIZER in present else {"metadata": {"finalizers": [*present, FINALIZER]}}

            found = await settle.settle(self._caller, path, protect)
            classes = {name: await self._class(name) for name in class_names(found, claim.allocation)}
            made: Object | None = allocation_json(found, claim.allocation, classes, self._caller.clock)
        else:
            made = None

        def change(held: Object) -> Object | None:
            _same(held, uid)
            return _given(held, pod, claim, made)

        await settle.settle(self._caller, path, change, "/status")

    async def _class(self, name: str) -> Object:
        return await settle.read(self._caller, f"{GROUP}/deviceclasses/{quote(name)}")

    # Devices that must be made ready

    async def _ready(self, path: str) -> None:
        """Wait for the binding conditions (upstream: `isClaimReadyForBinding`)."""
        until = monotonic() + self._patience
        while True:
            held = await settle.read(self._caller, path)
            claim = read_as("ResourceClaim", msgspec.json.encode(held)).fact
            assert isinstance(claim, ResourceClaim)
            if claim.allocation is None:
                raise PrepareError(f"claim {claim.key} lost its allocation")
            if _failed(claim, claim.allocation):
                raise PrepareError("device binding failed")
            if all((each.id, name) in claim.conditions for each in claim.allocation.devices for name in each.conditions or ()):
                return
            if monotonic() >= until:
                raise PrepareError("device binding timeout")
            await asyncio.sleep(POLL)

    # The claim for extended resources

    async def _create(self, pod: Pod, claim: ResourceClaim) -> Object:
        folder = f"{GROUP}/namespaces/{quote(pod.namespace)}/resourceclaims"
        return await settle.create(self._caller, folder, extended.claim_json(pod, claim, FINALIZER, self._caller.clock.random))

    async def _tell(self, pod: Pod, claim: ResourceClaim, name: str) -> None:
        """Tell the kubelet which request of the claim is for which container."""
        body = {"metadata": {"uid": pod.uid}, "status": {"extendedResourceClaimStatus": extended.status_json(pod, claim, name)}}
        outcome = await settle.patch(self._caller, pod_path(pod, "status"), body)
        if not outcome.ok:
            raise PrepareError(f"update extendedResourceClaimStatus of pod {pod.key}: {outcome.message}")

    async def _delete(self, reserved: _Reserved) -> None:
        """Give its devices back, then let it go (upstream: `deleteClaim`)."""

        def release(held: Object) -> Object | None:
            _same(held, reserved.uid)
            return {"status": {"allocation": None, "reservedFor": None}} if held.get("status") else None

        def unprotect(held: Object) -> Object | None:
            _same(held, reserved.uid)
            present = held["metadata"].get("finalizers") or []
            rest = [each for each in present if each != FINALIZER]
            return {"metadata": {"finalizers": rest}} if rest != present else None

        try:
            await settle.settle(self._caller, reserved.path, release, "/status")
            await settle.settle(self._caller, reserved.path, unprotect)
        except PrepareError as error:
            self._caller.observer.failed("ResourceClaim", f"{reserved.path} cannot be taken back: {error}")
        await settle.delete(self._caller, reserved.path, reserved.uid)


def _path(namespace: str, name: str) -> str:
    return f"{GROUP}/namespaces/{quote(namespace)}/resourceclaims/{quote(name)}"


def _same(held: Object, uid: str) -> None:
    metadata = held["metadata"]
    if metadata.get("uid") != uid or metadata.get("deletionTimestamp"):
        raise PrepareError(f"claim {metadata.get('name')} got deleted in the meantime")


def _given(held: Object, pod: Pod, claim: ResourceClaim, made: Object | None) -> Object | None:
    """The patch of a claim's status that lets the pod use it, with the devices in `made` if it has none yet."""
    status = held.get("status") or {}
    users = status.get("reservedFor") or []
    uses = any(user.get("uid") == pod.uid for user in users)
    there = status.get("allocation")
    if made is not None and there is not None and not (uses and _devices(there) == _devices(made)):
        raise PrepareError(f"claim {claim.name} got allocated elsewhere in the meantime")
    if made is None and there is None:
        raise PrepareError(f"claim {claim.name} lost its allocation in the meantime")
    if uses:
        return None
    changed: Object = {"reservedFor": [*users, {"resource": "pods", "name": pod.name, "uid": pod.uid}]}
    if made is not None:
        changed["allocation"] = made
    return {"status": changed}


def _devices(allocation: Object) -> list[DeviceID]:
    results = allocation.get("devices", {}).get("results") or ()
    return [DeviceID(each.get("driver", ""), each.get("pool", ""), each.get("device", "")) for each in results]


def _failed(claim: ResourceClaim, allocation: Allocation) -> bool:
    return any((each.id, name) in claim.conditions for each in allocation.devices for name in each.failures)
