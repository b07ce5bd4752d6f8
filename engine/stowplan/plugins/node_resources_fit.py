"""NodeResourcesFit: a node must have room for what the pod requests.

rejects  a node whose free resources, or number of pods, do not suffice
scores   a node by how full it would be: LeastAllocated, MostAllocated or RequestedToCapacityRatio
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from stowplan.cel.selects import selects
from stowplan.objects import Amounts, DeviceClass, Pod, extended_classes, is_dra_extended, is_extended
from stowplan.plugins.arguments import NodeResourcesFitArgs, ScoringStrategy, ShapePoint
from stowplan.plugins.plugin import FILTERS_AND_SCORES, MAX_SCORE, Plugin, Reason, Rejections
from stowplan.state import (
    ALLOCATABLE,
    LEDGER,
    NONZERO_REQUESTED,
    PODS,
    REQUESTED,
    Asked,
    Cluster,
    Feasible,
    Mask,
    Numbers,
    OddShares,
    broken_linear,
    scored,
    shares,
)
from stowplan.state.amounts import PLAIN, Floats
from stowplan.state.devices import DEVICES, device_stamp

TOO_MANY_PODS = Reason("Too many pods")


@dataclass(frozen=True, slots=True)
class Checked:
    """Requests as the filter compares them, one pod the first of them."""

    names: tuple[str, ...]
    amounts: Numbers
    """a column"""
    reasons: tuple[Reason, ...]
    floats: Floats
    """the amounts in float64"""
    plain: bool
    """whether these are exact"""


@dataclass(frozen=True, slots=True)
class Ask:
    """What the pod requests, by the rules of filtering and by those of scoring."""

    requests: Amounts
    """amounts above 0 that are not ignored"""
    delegated: frozenset[str]
    """extended resources that a DeviceClass serves: where a node lists none, DynamicResources decides"""
    score_requests: Amounts
    strategy: ScoringStrategy
    devices: int
    """stamp of the devices that scores count, 0 if they count none"""
    checked: Checked = field(compare=False)
    scored: Asked = field(compare=False)
    """the requests, ready for arithmetic"""


def asks(pod: Pod, args: NodeResourcesFitArgs, cluster: Cluster) -> Ask:
    requested = {name: amount for name, amount in pod.spec.requests.items() if amount > 0 and not ignored(name, args)}
    delegated = frozenset(name for name in requested if is_dra_extended(name) and name in device_backed(cluster))
    wanted, resources = pod.spec.score_requests, args.scoring_strategy.resources
    stamp = device_stamp((resource.name for resource in resources), wanted, cluster)
    requests = Amounts.of(requested)
    return Ask(requests, delegated, wanted, args.scoring_strategy, stamp, checked(requests), scored(resources, wanted))


def ignored(name: str, args: NodeResourcesFitArgs) -> bool:
    """Whether filtering leaves an extended resource to others."""
    if not is_extended(name):
        return False
    return name in args.ignored_resources or name.partition("/")[0] in args.ignored_resource_groups


def device_backed(cluster: Cluster) -> Collection[str]:
    """Extended resource names that some DeviceClass offers, explicitly or by its own name."""
    return extended_classes(cluster.facts(DeviceClass)).keys()


@lru_cache(maxsize=4096)
def checked(requests: Amounts) -> Checked:
    """The requests of an ask."""
    amounts = np.array([1, *requests.values()], dtype=np.int64).reshape(-1, 1)
    floats, plain = amounts.astype(np.float64), bool((amounts < PLAIN).all())
    return Checked(("pods", *requests), amounts, (TOO_MANY_PODS, *map(insufficient, requests)), floats, plain)


@lru_cache(maxsize=1024)
def insufficient(name: str) -> Reason:
    """The reason for one resource."""
    return Reason(f"Insufficient {name}")


def rejects(ask: Ask, cluster: Cluster) -> Rejections:
    wanted = ask.checked
    free = cluster[LEDGER].free(wanted.names) if wanted.plain else None
    short = wanted.amounts > free_integers(wanted.names[1:], cluster) if free is None else wanted.floats > free
    if not np.count_nonzero(short):
        return {}
    found: dict[Reason, Mask] = dict(zip(wanted.reasons, short, strict=True))
    for name in ask.delegated:
        found[insufficient(name)] &= cluster[ALLOCATABLE][name] > 0
    return found


def free_integers(names: tuple[str, ...], cluster: Cluster) -> Numbers:
    """Pods that may still come, then what is left of some resources, as int64 wraps around."""
    allocatable = cluster[ALLOCATABLE]
    resources = allocatable.matrix(names) - cluster[REQUESTED].matrix(names)
    return np.vstack([allocatable["pods"] - cluster[PODS]["pods"], resources])


def final(ask: Ask, cluster: Cluster) -> Mask:
    """Rows where a request exceeds the whole node."""
    allocatable = cluster[ALLOCATABLE]
    exceeding = np.zeros(cluster.size, dtype=np.bool_)
    for name, amount in ask.requests.items():
        larger = amount > allocatable[name]
        exceeding |= larger & (allocatable[name] > 0) if name in ask.delegated else larger
    return exceeding


def scores(ask: Ask, cluster: Cluster, _: Feasible) -> Numbers:
    strategy = ask.strategy
    found = shares(ask.scored, cluster, nonzero=True, counted=selects if ask.devices else None)
    if strategy.type == "RequestedToCapacityRatio":
        return ratio(found.odd(), strategy.requested_to_capacity_ratio or ())
    least = strategy.type == "LeastAllocated"
    if isinstance(found, OddShares):
        return found.mean(found.hundredths(found.free() if least else found.given_out()))
    return found.mean(found.hundredths(found.free() if least else found.given_out()))


def ratio(found: OddShares, shape: tuple[ShapePoint, ...]) -> Numbers:
    """Weighted mean of the shape over the resources that score above 0, rounded half away from zero."""
    requested = found.requested
    used = np.where(requested > found.allocatable, MAX_SCORE, found.hundredths(requested))
    score = broken_linear(shape, used)
    counts = found.counts & (score > 0)
    total, weights = found.asked.weights @ (score * counts), found.asked.weights @ counts
    mean = total / np.maximum(weights, 1)
    return np.where(weights > 0, np.trunc(mean + np.copysign(0.5, mean)), 0).astype(np.int64)


PLUGIN = Plugin(
    "NodeResourcesFit",
    FILTERS_AND_SCORES | {"placementScore"},
    weight=1,
    args=NodeResourcesFitArgs,
    reads=(ALLOCATABLE, REQUESTED, NONZERO_REQUESTED, PODS, LEDGER, DEVICES),
    asks=asks,
    rejects=rejects,
    final=final,
    scores=scores,
    stateless={"filter": 'error reading "PreFilterNodeResourcesFit" from cycleState: not found'},
)
