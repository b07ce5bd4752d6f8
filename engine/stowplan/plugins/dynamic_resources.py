"""DynamicResources: a node must have the devices that the pod's claims ask for, or reach those they hold.

gates    a pod whose claims are not there yet
refuses  a pod whose claims cannot be served anywhere
rejects  a node without enough devices, or out of reach of devices that a claim holds
scores   a node by how early in prioritised lists its devices come
reserves the claims with the devices they get
releases a claim whose devices are out of reach, once no node will do
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from stowplan.cel.selects import selects
from stowplan.objects import (
    SPECIAL_CLAIM,
    Allocation,
    ContainerDevices,
    HeldDevice,
    Node,
    NodeSelector,
    NodeTerm,
    OtherFact,
    Pod,
    Requirement,
    ResourceClaim,
    device_requests,
    is_dra_extended,
    only_on,
)
from stowplan.plugins.arguments import DynamicResourcesArgs
from stowplan.plugins.plugin import FILTERS, Code, Plugin, Reason, Refusal, Rejections, Release, more_is_better
from stowplan.state import ALLOCATABLE, LABELS, NAME, Cluster, Feasible, Mask, Numbers
from stowplan.state.devices import (
    DEVICES,
    AllocationError,
    Devices,
    DeviceTest,
    Finder,
    Pick,
    Picks,
    SearchLimitError,
)

SELECTS: DeviceTest = selects
"""How CEL selectors are asked about a device."""

TRIES_PER_SECOND = 1_000_000
"""What a second of `filterTimeout` stands for: decisions know no clock, so a search ends after so many tried devices."""
BEST_CHOICE = 8
"""Score of the first subrequest of a prioritised list; each one further down counts one less."""

LEFTOVER = Reason("cannot schedule extended resource claim", final=True)
UNFIT = Reason("cannot fit resource", final=True)
SHORT = Reason("cannot allocate all claims", final=True)
UNAVAILABLE = Reason("resourceclaim not available on the node", final=True)
NOTHING = "nothing"
"""The ask of a pod that needs no devices."""


@dataclass(frozen=True, slots=True)
class Ask:
    """The pod's claims, and the extended resources it wants that devices may stand for."""

    refusal: Refusal | None
    claims: tuple[ResourceClaim, ...] = ()
    special: ResourceClaim | None = None
    """the claim for extended resources; without requests until a node is looked at"""
    extended: tuple[str, ...] = ()
    containers: tuple[ContainerDevices, ...] = ()
    tries: int = 0
    stamp: int = 0
    """of the devices as they stand"""
    idle: tuple[bool, ...] = ()
    """by claim: nobody but the pod may use what it holds"""

    @property
    def searches(self) -> bool:
        """Is there anything to allocate?"""
        return self.special is not None or any(claim.allocation is None for claim in self.claims)

    @property
    def prefers(self) -> bool:
        """Is there a choice that scores could tell apart?"""
        return any(request.exactly is None for claim in self.claims for request in claim.requests)


class LookupFaultError(Exception):
    """A claim of the pod cannot be used yet; the text is kube-scheduler's."""


def gate(pod: Pod, cluster: Cluster) -> str | None:
    try:
        claims_of(pod, cluster)
    except LookupFaultError as fault:
        return str(fault)
    return None


def claims_of(pod: Pod, cluster: Cluster) -> tuple[ResourceClaim, ...]:
    """The claims that the pod names or that were made for it from templates (upstream `foreachPodResourceClaim`)."""
    if not pod.spec.claims:
        return ()
    known = cluster.facts(ResourceClaim)
    found = []
    for entry in pod.spec.claims:
        name, own = entry.resource_claim_name, False
        if name is None:
            if entry.resource_claim_template_name is None:
                none = "none of the supported fields are set"
                raise LookupFaultError(f'pod "{pod.key}", spec.resourceClaim "{entry.name or ""}": {none}')
            status = next((status for status in pod.claim_statuses if status.name == entry.name), None)
            if status is None:
                raise LookupFaultError(f'pod "{pod.key}": ResourceClaim not created yet')
            name, own = status.resource_claim_name, True
            if name is None:
                continue  # recorded as not needed
        found.append(_usable(known.get(f"{pod.namespace}/{name}"), f"{pod.namespace}/{name}", pod if own else None))
    return tuple(found)


def _usable(claim: ResourceClaim | None, key: str, owner: Pod | None) -> ResourceClaim:
    if claim is None:
        raise LookupFaultError(f'could not find ResourceClaim "{key}"')
    if claim.deleting:
        raise LookupFaultError(f'resourceclaim "{claim.name}" is being deleted')
    if owner is not None and (not claim.controllers or claim.controllers[0][1] != owner.uid):
        raise LookupFaultError(f"ResourceClaim {key} was not created for Pod {owner.key} (Pod is not owner)")
    return claim


def asks(pod: Pod, args: DynamicResourcesArgs, cluster: Cluster) -> Ask | str:
    try:
        claims = claims_of(pod, cluster)
    except LookupFaultError as fault:
        return Ask(Refusal(Code.UNRESOLVABLE, (str(fault),)))
    extended = tuple(name for name, amount in pod.spec.requests.items() if amount and is_dra_extended(name))
    if not claims and not extended:
        return NOTHING
    devices = cluster[DEVICES]
    special = None
    if any(name in devices.extended for name in extended):
        owner = ((pod.name, pod.uid),)
        special = devices.special_claim(pod) or ResourceClaim(
            pod.namespace, SPECIAL_CLAIM, "", (), controllers=owner, extended=True
        )
    if not claims and special is None:
        return NOTHING
    refusal = next((found for claim in claims if (found := refused(claim, devices)) is not None), None)
    tries = round(args.filter_timeout.total_seconds() * TRIES_PER_SECOND)
    idle = tuple(claim.reserved in ((), (pod.uid,)) for claim in claims)
    if special is None:
        return Ask(refusal, claims, tries=tries, stamp=devices.stamp, idle=idle)
    return Ask(refusal, claims, special, extended, pod.spec.extended, tries, devices.stamp, idle)


def refused(claim: ResourceClaim, devices: Devices) -> Refusal | None:
    """Why no node can serve the claim."""
    if claim.pending:
        return Refusal(Code.UNRESOLVABLE, (f"resource claim {claim.key} is in the process of being allocated",))
    for request in claim.requests if claim.allocation is None else ():
        if request.exactly is None and not request.first_available:
            where = f"resource claim {claim.key}, request {request.name}"
            return Refusal(Code.UNRESOLVABLE, (f"{where}: unknown request type",))
        choices = request.first_available if request.exactly is None else (request.exactly,)
        for wanted in choices:
            name = request.name if request.exactly is not None else f"{request.name}/{wanted.name}"
            if not wanted.device_class:
                return Refusal(Code.ERROR, (f"request {name}: unsupported request type",))
            if wanted.device_class not in devices.classes:
                missing = f"device class {wanted.device_class} does not exist"
                return Refusal(Code.UNRESOLVABLE, (f"request {name}: {missing}",))
    return None


def refuses(ask: Ask, _: Cluster) -> Refusal | None:
    return ask.refusal


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one node can do for the pod: nothing (`reason`), or these devices for these claims."""

    reason: Reason | None = None
    claims: tuple[ResourceClaim, ...] = ()
    picks: Picks = ()


FITS = Verdict()


class Judge:
    """Looks at nodes, one after the other, for one ask."""

    def __init__(self, ask: Ask, devices: Devices) -> None:
        self._ask, self._devices = ask, devices
        self._unallocated = tuple(claim for claim in ask.claims if claim.allocation is None)
        self._finders: dict[tuple[str, ...], tuple[tuple[ResourceClaim, ...], Finder]] = {}

    def look(self, node: Node) -> Verdict:
        """The order of checks is that of upstream's Filter."""
        ask = self._ask
        if ask.special is not None and ask.special.requests:
            return Verdict(LEFTOVER)
        names = self._by_devices(node)
        if names is None:
            return Verdict(UNFIT)
        if not ask.claims and not names:
            return FITS  # the node has it all without claims
        verdict = self._search(node, names) if ask.searches else FITS
        if verdict.reason is None and not all(available(claim, node) for claim in ask.claims):
            return Verdict(UNAVAILABLE)
        return verdict

    def _search(self, node: Node, names: tuple[str, ...]) -> Verdict:
        claims, finder = self._finder(names)
        try:
            picks = finder.on(node)
        except AllocationError as error:
            return Verdict(Reason(str(error), final=error.here, error=not error.here))
        except SearchLimitError:
            return Verdict(Reason(f"node {node.name}: timed out trying to allocate devices", error=True))
        return Verdict(SHORT) if picks is None else Verdict(None, claims, picks)

    def _by_devices(self, node: Node) -> tuple[str, ...] | None:
        """The extended resources that devices must provide here; None if the node does not know one at all."""
        needed = []
        for name in self._ask.extended:
            if name in self._devices.extended and not node.allocatable.get(name):
                needed.append(name)
            elif name not in node.allocatable:
                return None
        return tuple(needed)

    def _finder(self, names: tuple[str, ...]) -> tuple[tuple[ResourceClaim, ...], Finder]:
        found = self._finders.get(names)
        if found is None:
            claims = self._unallocated
            special = self._ask.special
            if special is not None:
                made = device_requests(self._ask.containers, names, self._devices.extended)
                claims = (*claims, replace(special, requests=made))
            found = self._finders[names] = (claims, self._devices.finder(claims, SELECTS, self._ask.tries))
        return found


def available(claim: ResourceClaim, node: Node) -> bool:
    """Does the node reach what the claim holds, if it holds anything, and is it ready?"""
    allocation = claim.allocation
    if allocation is None:
        return True
    if allocation.selector is not None and not allocation.selector.matches(node.name, node.labels):
        return False
    if any(held.skips_node for held in allocation.devices) and "DRAOptionalNodeOperations" not in node.features:
        return False
    return not claim.stuck()


def rejects(ask: Ask | str, cluster: Cluster) -> Rejections | None:
    if isinstance(ask, str):
        return None
    found: dict[Reason, Mask] = {}
    if ask.refusal is not None:
        return found
    judge = Judge(ask, cluster[DEVICES])
    for place, row in enumerate(cluster.asked.tolist()):
        reason = judge.look(cluster.node(row)).reason
        if reason is not None:
            if reason not in found:
                found[reason] = np.zeros(cluster.size, dtype=np.bool_)
            found[reason][place] = True
    return found


def scores(ask: Ask | str, cluster: Cluster, _: Feasible) -> Numbers:
    if isinstance(ask, str) or ask.refusal is not None or not (ask.searches and ask.prefers):
        return np.zeros(cluster.size, dtype=np.int64)
    judge = Judge(ask, cluster[DEVICES])
    held = sum(preference(claim, _requests_held(claim.allocation)) for claim in ask.claims if claim.allocation is not None)
    return np.fromiter(
        (_score(judge.look(cluster.node(row)), held) for row in cluster.asked.tolist()), dtype=np.int64, count=cluster.size
    )


def _score(verdict: Verdict, held: int) -> int:
    if not verdict.claims:
        return 0
    chosen = (
        preference(claim, (pick.request for pick in picks)) for claim, picks in zip(verdict.claims, verdict.picks, strict=True)
    )
    return held + sum(chosen)


def _requests_held(allocation: Allocation) -> Iterator[str]:
    return (held.request for held in allocation.devices)


def preference(claim: ResourceClaim, served: Iterable[str]) -> int:
    """How much the subrequests that got devices are preferred (upstream `computeScore`)."""
    names = frozenset(served)
    return sum(
        BEST_CHOICE - place
        for request in claim.requests
        if request.exactly is None
        for place, sub in enumerate(request.first_available)
        if f"{request.name}/{sub.name}" in names
    )


def reserves(ask: Ask | str, cluster: Cluster, row: int) -> Iterable[OtherFact]:
    """The claims with the devices that the node gives them."""
    if isinstance(ask, str) or ask.refusal is not None:
        return ()
    node = cluster.node(row)
    verdict = Judge(ask, cluster[DEVICES]).look(node)
    return [allocated(claim, picks, node) for claim, picks in zip(verdict.claims, verdict.picks, strict=True)]


def allocated(claim: ResourceClaim, picks: tuple[Pick, ...], node: Node) -> ResourceClaim:
    """The claim as it will be: holding the devices, and nobody else's before that is done."""
    name = f"{claim.controllers[0][0]}-extended-resources" if claim.name == SPECIAL_CLAIM else claim.name
    uid = claim.uid or f"{claim.namespace}/{name}"
    devices = tuple(
        HeldDevice(
            pick.request,
            pick.device.id,
            admin=pick.admin,
            share=None if pick.consumed is None else f"{uid}/{number}",
            consumed=pick.consumed or (),
            conditions=pick.device.conditions,
            failures=pick.device.failures,
        )
        for number, pick in enumerate(picks)
    )
    return replace(claim, name=name, allocation=Allocation(devices, reach(picks, node)), pending=True)


def reach(picks: tuple[Pick, ...], node: Node) -> NodeSelector | None:
    """The nodes that reach all these devices; None: every node (upstream `createNodeSelector`)."""
    expressions: dict[Requirement, None] = {}
    fields: dict[Requirement, None] = {}
    for pick in picks:
        where = pick.device.where if pick.slice.per_device else pick.slice.where
        if where.node_name or pick.device.binds_to_node:
            return only_on(node.name)
        for term in where.selector.terms if where.selector is not None else ():
            expressions |= dict.fromkeys(term.expressions)
            fields |= dict.fromkeys(term.fields)
    return NodeSelector((NodeTerm(tuple(expressions), tuple(fields)),)) if expressions or fields else None


def releases(ask: Ask | str, cluster: Cluster) -> Release | None:
    """The claim that PostFilter takes its devices from, or deletes, for a pod that no node takes; None if there is none.

    `cluster`: the rows that every filter before this one let pass. One of the claims that are out of reach there is given up,
    the first of them where upstream takes any (`deallocateOrDeletePodClaims`), else what an earlier attempt left for extended
    resources. Preemption is tried all the same.
    """
    if isinstance(ask, str) or ask.refusal is not None:
        return None
    judge = Judge(ask, cluster[DEVICES])
    idle = [claim for claim, free in zip(ask.claims, ask.idle, strict=True) if free]
    for row in cluster.asked.tolist() if idle else ():
        node = cluster.node(row)
        if judge.look(node).reason is not UNAVAILABLE:
            continue
        out_of_reach = next((claim for claim in idle if not available(claim, node)), None)
        if out_of_reach is not None:
            return Release("deallocation of ResourceClaim completed", out_of_reach)
    if ask.special is None or ask.special.name == SPECIAL_CLAIM:
        return None
    return Release("deletion of ResourceClaim completed", ask.special)


PLUGIN = Plugin(
    "DynamicResources",
    FILTERS | {"preEnqueue", "postFilter", "podGroupPostFilter", "score", "reserve", "preBind"},
    weight=2,
    args=DynamicResourcesArgs,
    reads=(DEVICES, ALLOCATABLE, LABELS, NAME),
    asks=asks,
    refuses=refuses,
    rejects=rejects,
    scores=scores,
    normalise=more_is_better,
    stateless={"filter": "not found", "reserve": "not found", "postFilter": "not found"},
    reserves=reserves,
    releases=releases,
    gate=gate,
)
