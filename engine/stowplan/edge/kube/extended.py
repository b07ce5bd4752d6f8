"""The claim that stands for a pod's extended resources, and what the pod's status says of it.

Upstream: `createExtendedResourceClaimInAPI` and `createRequestsAndMappings` of DynamicResources.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import msgspec

from stowplan.edge.kube.settle import Object
from stowplan.objects import ContainerDevices, Pod, ResourceClaim

ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
LETTERS = "bcdfghjklmnpqrstvwxz2456789"
LONGEST = 253


class _Container(msgspec.Struct):
    name: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    init_containers: list[_Container] | None = None
    containers: list[_Container] | None = None


class _Pod(msgspec.Struct):
    spec: _Spec


_decode = msgspec.json.Decoder(_Pod).decode


def claim_json(pod: Pod, claim: ResourceClaim, finalizer: str, random: Random) -> Object:
    """The claim as it is to be created, under a name of its own."""
    ending = f"-extended-resources-{''.join(random.choices(LETTERS, k=5))}"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True, "blockOwnerDeletion": True}
    requests = [
        {
            "name": request.name,
            "exactly": {
                "deviceClassName": request.exactly.device_class,
                "allocationMode": request.exactly.mode,
                "count": request.exactly.count,
            },
        }
        for request in claim.requests
        if request.exactly is not None
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": pod.name[: LONGEST - len(ending)] + ending,
            "namespace": pod.namespace,
            "annotations": {ANNOTATION: "true"},
            "ownerReferences": [owner],
            "finalizers": [finalizer],
        },
        "spec": {"devices": {"requests": requests}},
    }


def status_json(pod: Pod, claim: ResourceClaim, name: str) -> Object:
    """`status.extendedResourceClaimStatus` of the pod."""
    return {"resourceClaimName": name, "requestMappings": list(_mappings(pod, claim))}


def _mappings(pod: Pod, claim: ResourceClaim) -> Iterator[Object]:
    spec = _decode(pod.raw).spec if pod.raw else _Spec()
    names = [container.name for container in (*(spec.init_containers or ()), *(spec.containers or ()))]
    made = {request.name: request.exactly.count for request in claim.requests if request.exactly is not None}
    for container in pod.spec.extended:
        for asked in container.asked:
            for request in _serving(container, asked, pod, made):
                yield {"containerName": names[container.index], "resourceName": asked[0], "requestName": request}


def _serving(container: ContainerDevices, asked: tuple[str, int, int], pod: Pod, made: dict[str, int]) -> Iterator[str]:
    """The requests whose devices a container gets: its own, or for one that ends those of later ones that live, and the rest."""
    resource, place, lacking = asked
    if container.lives:
        yield from (name for name in (f"container-{container.index}-request-{place}",) if name in made)
        return
    for other in pod.spec.extended:
        for name, at, count in other.asked:
            request = f"container-{other.index}-request-{at}"
            if other.lives and other.index >= container.index and name == resource and request in made and lacking > 0:
                lacking -= count
                yield request
    if lacking > 0:
        ends = {
            f"container-{other.index}-request-{at}"
            for other in pod.spec.extended
            for name, at, _ in other.asked
            if name == resource and not other.lives
        }
        yield from (request for request in made if request in ends)
