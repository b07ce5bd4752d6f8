"""What a ResourceClaim is given, as its status says it (upstream: the result of `structured.Allocator`).

The fact holds what was decided; what only drivers and kubelets read, configuration and tolerations, is taken from the claim
and its device classes as they stand in the API.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any
from uuid import UUID

from stowplan.edge.clock import Clock, rfc3339
from stowplan.edge.kube.settle import Object
from stowplan.objects import Allocation, HeldDevice, NodeSelector, Requirement

NANO = 10**9


def class_names(claim: Object, allocation: Allocation) -> list[str]:
    """The device classes of the requests that were served, each once."""
    requests = _requests(claim)
    names = (requests.get(held.request, {}).get("deviceClassName", "") for held in allocation.devices)
    return list(dict.fromkeys(name for name in names if name))


def allocation_json(claim: Object, allocation: Allocation, classes: Mapping[str, Object], clock: Clock) -> Object:
    """`status.allocation` for a claim as it is in the API; `classes` are its device classes by name."""
    requests = _requests(claim)
    made: Object = {
        "devices": {"results": [_result(held, requests.get(held.request, {}), clock.random) for held in allocation.devices]}
    }
    config = [*_class_config(allocation, requests, classes), *_claim_config(claim, allocation)]
    if config:
        made["devices"]["config"] = config
    if allocation.selector is not None:
        made["nodeSelector"] = selector_json(allocation.selector)
    if any(held.conditions for held in allocation.devices):
        made["allocationTimestamp"] = rfc3339(clock.wall())
    return made


def _requests(claim: Object) -> dict[str, Object]:
    """What is asked for exactly, by the name that results have: `request` or `request/subrequest`."""
    found: dict[str, Object] = {}
    for request in claim.get("spec", {}).get("devices", {}).get("requests") or ():
        if request.get("exactly") is not None:
            found[request["name"]] = request["exactly"]
        for sub in request.get("firstAvailable") or ():
            found[f"{request['name']}/{sub['name']}"] = sub
    return found


def _result(held: HeldDevice, wanted: Object, random: Random) -> Object:
    driver, pool, device = held.id
    made: Object = {"request": held.request, "driver": driver, "pool": pool, "device": device}
    optional = {
        "adminAccess": held.admin or None,
        "tolerations": wanted.get("tolerations"),
        "bindingConditions": list(held.conditions or ()),
        "bindingFailureConditions": list(held.failures),
        "shareID": None if held.share is None else str(UUID(int=random.getrandbits(128), version=4)),
        "consumedCapacity": {name: _quantity(nano) for name, nano in held.consumed},
    }
    return made | {name: value for name, value in optional.items() if value}


def _quantity(nano: int) -> str:
    return f"{nano}n" if nano % NANO else str(nano // NANO)


def _class_config(allocation: Allocation, requests: Mapping[str, Object], classes: Mapping[str, Object]) -> Iterator[Object]:
    for name in dict.fromkeys(held.request for held in allocation.devices):
        found = classes.get(requests.get(name, {}).get("deviceClassName", ""), {})
        for config in found.get("spec", {}).get("config") or ():
            yield {**config, "source": "FromClass", "requests": [name]}


def _claim_config(claim: Object, allocation: Allocation) -> Iterator[Object]:
    """A claim's own configuration, where it is for all requests or for one that was served."""
    served = {held.request for held in allocation.devices}
    served |= {name.partition("/")[0] for name in served}
    for config in claim.get("spec", {}).get("devices", {}).get("config") or ():
        if not config.get("requests") or served.intersection(config["requests"]):
            yield {**config, "source": "FromClaim"}


def selector_json(selector: NodeSelector) -> Object:
    """A node selector as the API has it."""
    terms = []
    for term in selector.terms:
        made: dict[str, Any] = {}
        if term.expressions:
            made["matchExpressions"] = [_expression(each) for each in term.expressions]
        if term.fields:
            made["matchFields"] = [_expression(each) for each in term.fields]
        terms.append(made)
    return {"nodeSelectorTerms": terms}


def _expression(wanted: Requirement) -> Object:
    """The inverse of `objects.requirement`."""
    if wanted.above is not None or wanted.below is not None:
        operator = "Gt" if wanted.above is not None else "Lt"
        return {"key": wanted.key, "operator": operator, "values": [str(wanted.above if operator == "Gt" else wanted.below)]}
    if wanted.values:
        return {"key": wanted.key, "operator": "NotIn" if wanted.complement else "In", "values": sorted(wanted.values)}
    return {"key": wanted.key, "operator": "Exists" if wanted.complement else "DoesNotExist"}
