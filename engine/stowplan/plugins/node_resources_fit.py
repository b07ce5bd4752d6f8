"""NodeResourcesFit: a node must have room for what the pod requests.

rejects  a node whose free resources, or number of pods, do not suffice
scores   a node by how full it would be: LeastAllocated, MostAllocated or RequestedToCapacityRatio
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from stowplan.cel.selects import selects
from stowplan.objects import Amounts, DeviceClass, Pod, extended_classes, is_dra_extended, is_extended
from stowplan.plugins.arguments import NodeResourcesFitArgs, ScoringStrategy, ShapePoint
from stowplan.plugins.plugin import FILTERS_AND_SCORES, MAX_SCORE, Plugin, Reason, Rejections
from stowplan.state import (
    ALLOCATABLE,
    NONZERO_REQUESTED,
    PODS,
    REQUESTED,
    Cluster,
    Feasible,
    Mask,
    Numbers,
    Shares,
    broken_linear,
    shares,
)
from stowplan.state.devices import DEVICES, device_stamp

TOO_MANY_PODS = Reason("Too many pods")


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


def asks(pod: Pod, args: NodeResourcesFitArgs, cluster: Cluster) -> Ask:
    checked = {name: amount for name, amount in pod.spec.requests.items() if amount > 0 and not ignored(name, args)}
    delegated = frozenset(name for name in checked if is_dra_extended(name) and name in device_backed(cluster))
    scored = pod.spec.score_requests
    stamp = device_stamp((resource.name for resource in args.scoring_strategy.resources), scored, cluster)
    return Ask(Amounts.of(checked), delegated, scored, args.scoring_strategy, stamp)


def ignored(name: str, args: NodeResourcesFitArgs) -> bool:
    """Whether filtering leaves an extended resource to others."""
    if not is_extended(name):
        return False
    return name in args.ignored_resources or name.partition("/")[0] in args.ignored_resource_groups


def device_backed(cluster: Cluster) -> Collection[str]:
    """Extended resource names that some DeviceClass offers, explicitly or by its own name."""
    return extended_classes(cluster.facts(DeviceClass)).keys()


@lru_cache(maxsize=1024)
def insufficient(name: str) -> Reason:
    """The reason for one resource."""
    return Reason(f"Insufficient {name}")


def rejects(ask: Ask, cluster: Cluster) -> Rejections:
    allocatable, requested = cluster[ALLOCATABLE], cluster[REQUESTED]
    found: dict[Reason, Mask] = {TOO_MANY_PODS: cluster[PODS]["pods"] >= allocatable["pods"]}
    for name, amount in ask.requests.items():
        short = amount > allocatable[name] - requested[name]
        found[insufficient(name)] = short & (allocatable[name] > 0) if name in ask.delegated else short
    return found


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
    found = shares(strategy.resources, ask.score_requests, cluster, nonzero=True, counted=selects if ask.devices else None)
    if strategy.type == "RequestedToCapacityRatio":
        return ratio(found, strategy.requested_to_capacity_ratio or ())
    return found.mean(least(found) if strategy.type == "LeastAllocated" else most(found))


def least(found: Shares) -> Numbers:
    """Share that stays free, in hundredths; 0 where over-committed."""
    return found.hundredths(np.maximum(found.allocatable - found.requested, 0))


def most(found: Shares) -> Numbers:
    """Share that is given out, in hundredths; over-committed counts as full."""
    return found.hundredths(np.minimum(found.requested, found.allocatable))


def ratio(found: Shares, shape: tuple[ShapePoint, ...]) -> Numbers:
    """Weighted mean of the shape over the resources that score above 0, rounded half away from zero."""
    requested = found.requested
    used = np.where(requested > found.allocatable, MAX_SCORE, found.hundredths(requested))
    score = broken_linear(shape, used)
    counts = (score > 0) if found.counts is None else found.counts & (score > 0)
    total, weights = found.weights @ (score * counts), found.weights @ counts
    mean = total / np.maximum(weights, 1)
    return np.where(weights > 0, np.trunc(mean + np.copysign(0.5, mean)), 0).astype(np.int64)


PLUGIN = Plugin(
    "NodeResourcesFit",
    FILTERS_AND_SCORES | {"placementScore"},
    weight=1,
    args=NodeResourcesFitArgs,
    reads=(ALLOCATABLE, REQUESTED, NONZERO_REQUESTED, PODS, DEVICES),
    asks=asks,
    rejects=rejects,
    final=final,
    scores=scores,
    stateless={"filter": 'error reading "PreFilterNodeResourcesFit" from cycleState: not found'},
)
