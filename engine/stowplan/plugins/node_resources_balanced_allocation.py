"""NodeResourcesBalancedAllocation: a node whose resources run out at the same pace is used better.

scores  a node by how much the pod improves the balance between its resources; 75 is no change
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stowplan.objects import Amounts, Pod
from stowplan.plugins.arguments import NodeResourcesBalancedAllocationArgs, ResourceWeight
from stowplan.plugins.plugin import MAX_SCORE, Plugin
from stowplan.state import ALLOCATABLE, REQUESTED, Cluster, Feasible, Numbers, Share, shares


@dataclass(frozen=True, slots=True)
class Ask:
    """What the pod requests of the configured resources."""

    requests: Amounts
    resources: tuple[ResourceWeight, ...]


def asks(pod: Pod, args: NodeResourcesBalancedAllocationArgs, _: Cluster) -> Ask | None:
    wanted = {r.name: pod.requested.get(r.name) for r in args.resources}
    return Ask(Amounts.of(wanted), args.resources) if any(wanted.values()) else None


def scores(ask: Ask, cluster: Cluster, _: Feasible) -> Numbers:
    parts = list(shares(ask.resources, ask.requests, cluster, nonzero=False))
    before = balance(parts, cluster.size, with_pod=False)
    after = balance(parts, cluster.size, with_pod=True)
    half = MAX_SCORE // 2
    return half + (half + after - before) // 2


def balance(parts: list[Share], size: int, *, with_pod: bool) -> Numbers:
    """100 less the standard deviation of the used fractions, truncated to an integer."""
    counts = np.zeros(size, dtype=np.int64)
    total = np.zeros(size)
    fractions: list[NDArray[np.float64]] = []
    for part in parts:
        used = part.used + part.wanted if with_pod else part.used
        fraction = np.minimum(1.0, used / np.where(part.counts, part.allocatable, 1))
        fractions.append(fraction)
        counts += part.counts
        total += np.where(part.counts, fraction, 0.0)
    deviation = np.zeros(size)
    if len(parts) == 2:
        both = counts == len(parts)
        deviation = np.where(both, np.abs((fractions[0] - fractions[1]) / 2), 0.0)
    elif len(parts) > 2:
        deviation = _deviation(parts, fractions, counts, total)
    return ((1 - deviation) * MAX_SCORE).astype(np.int64)


def _deviation(
    parts: list[Share], fractions: list[NDArray[np.float64]], counts: Numbers, total: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Deviation row by row where rows may keep different resources: two kept ones have upstream's own formula."""
    mean = total / np.maximum(counts, 1)
    squares = np.zeros(len(counts))
    highest = np.full(len(counts), -np.inf)
    lowest = np.full(len(counts), np.inf)
    for part, fraction in zip(parts, fractions, strict=True):
        squares += np.where(part.counts, (fraction - mean) ** 2, 0.0)
        highest = np.maximum(highest, np.where(part.counts, fraction, -np.inf))
        lowest = np.minimum(lowest, np.where(part.counts, fraction, np.inf))
    with np.errstate(invalid="ignore"):
        two = (highest - lowest) / 2
    return np.where(counts == 2, two, np.where(counts > 2, np.sqrt(squares / np.maximum(counts, 1)), 0.0))


PLUGIN = Plugin(
    "NodeResourcesBalancedAllocation",
    frozenset({"preScore", "score"}),
    weight=1,
    args=NodeResourcesBalancedAllocationArgs,
    reads=(ALLOCATABLE, REQUESTED),
    asks=asks,
    scores=scores,
)
