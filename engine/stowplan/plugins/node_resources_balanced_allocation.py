"""NodeResourcesBalancedAllocation: a node whose resources run out at the same pace is used better.

scores  a node by how much the pod improves the balance between its resources; 75 is no change
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stowplan.cel.selects import selects
from stowplan.objects import Amounts, Pod
from stowplan.plugins.arguments import NodeResourcesBalancedAllocationArgs, ResourceWeight
from stowplan.plugins.plugin import MAX_SCORE, Plugin
from stowplan.state import ALLOCATABLE, REQUESTED, Cluster, Feasible, Numbers, Share, shares
from stowplan.state.devices import DEVICES, device_stamp


@dataclass(frozen=True, slots=True)
class Ask:
    """What the pod requests of the configured resources."""

    requests: Amounts
    resources: tuple[ResourceWeight, ...]
    devices: int
    """stamp of the devices that are counted, 0 if none are"""


def asks(pod: Pod, args: NodeResourcesBalancedAllocationArgs, cluster: Cluster) -> Ask | None:
    wanted = Amounts.of({r.name: pod.requested.get(r.name) for r in args.resources})
    return Ask(wanted, args.resources, device_stamp(wanted, wanted, cluster)) if any(wanted.values()) else None


def scores(ask: Ask, cluster: Cluster, _: Feasible) -> Numbers:
    parts = list(shares(ask.resources, ask.requests, cluster, nonzero=False, counted=selects if ask.devices else None))
    before = balance(parts, cluster.size, with_pod=False)
    after = balance(parts, cluster.size, with_pod=True)
    half = MAX_SCORE // 2
    return half + (half + after - before) // 2


def balance(parts: list[Share], size: int, *, with_pod: bool) -> Numbers:
    """100 less the standard deviation of the used fractions, truncated to an integer."""
    fractions = [np.minimum(1.0, (part.used + part.wanted if with_pod else part.used) / part.divisor) for part in parts]
    if all(part.everywhere for part in parts):
        deviation = spread(fractions, size)
    else:
        deviation = np.zeros(size)
        kept = np.array([part.counts for part in parts])
        for pattern in np.unique(kept, axis=1).T:  # rows that keep the same resources
            rows = (kept == pattern[:, None]).all(axis=0)
            deviation[rows] = spread([f[rows] for f, keeps in zip(fractions, pattern, strict=True) if keeps], int(rows.sum()))
    return ((1 - deviation) * MAX_SCORE).astype(np.int64)


def spread(fractions: list[NDArray[np.float64]], size: int) -> NDArray[np.float64]:
    """Standard deviation across resources, in the order of upstream's float operations (balancedResourceScorer)."""
    if len(fractions) < 2:
        return np.zeros(size)
    if len(fractions) == 2:
        half: NDArray[np.float64] = np.abs((fractions[0] - fractions[1]) / 2)
        return half
    mean = sum(fractions, np.zeros(size)) / len(fractions)
    squares = sum(((fraction - mean) * (fraction - mean) for fraction in fractions), np.zeros(size))
    return np.sqrt(squares / len(fractions))


PLUGIN = Plugin(
    "NodeResourcesBalancedAllocation",
    frozenset({"preScore", "score"}),
    weight=1,
    args=NodeResourcesBalancedAllocationArgs,
    reads=(ALLOCATABLE, REQUESTED, DEVICES),
    asks=asks,
    scores=scores,
)
