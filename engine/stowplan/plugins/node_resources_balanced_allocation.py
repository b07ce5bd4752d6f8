"""NodeResourcesBalancedAllocation: a node whose resources run out at the same pace is used better.

scores  a node by how much the pod improves the balance between its resources; 75 is no change
"""

from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from stowplan.cel.selects import selects
from stowplan.objects import Amounts, Pod
from stowplan.plugins.arguments import NodeResourcesBalancedAllocationArgs, ResourceWeight
from stowplan.plugins.plugin import MAX_SCORE, Plugin
from stowplan.state import (
    ALLOCATABLE,
    LEDGER,
    REQUESTED,
    Asked,
    Cluster,
    Column,
    Derived,
    DerivedStorage,
    Entries,
    Feasible,
    Numbers,
    OddShares,
    Reach,
    scored,
    shares,
)
from stowplan.state.devices import DEVICES, device_stamp

# NumPy takes an array of no dimensions for a constant a third of a microsecond faster than a number
ONE: NDArray[np.float64] = np.array(1.0)
TWO, HALF = np.array(2.0), np.array(0.5)
FIFTY, HUNDRED = np.array(MAX_SCORE / 2), np.array(float(MAX_SCORE))
THREE_HALVES, TO_HALF = np.array(MAX_SCORE + MAX_SCORE // 2), np.array(1)


NOTHING: NDArray[np.float64] = np.zeros((1, 1, 1))
MANY = 512
"""Rows from which on it pays to keep how even they are without the pod; fewer are quicker done together with it."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What the pod requests of the configured resources."""

    requests: Amounts
    resources: tuple[ResourceWeight, ...]
    devices: int
    """stamp of the devices that are counted, 0 if none are"""
    scored: Asked = field(compare=False)
    """the requests, ready for arithmetic"""


def asks(pod: Pod, args: NodeResourcesBalancedAllocationArgs, cluster: Cluster) -> Ask | None:
    wanted = Amounts.of({r.name: pod.requested.get(r.name) for r in args.resources})
    if not any(wanted.values()):
        return None
    return Ask(wanted, args.resources, device_stamp(wanted, wanted, cluster), scored(args.resources, wanted))


def scores(ask: Ask, cluster: Cluster, _: Feasible) -> Numbers:
    found = shares(ask.scored, cluster, nonzero=False, counted=selects if ask.devices else None)
    if isinstance(found, OddShares):
        before, after = hundredths(odd_deviation(found))
    elif cluster.size < MANY:
        before, after = evenness(filled(found.entries, found.asked.float_stages))
    else:
        before = cluster[without(found.asked.names)].kept()
        (after,) = evenness(filled(found.entries, found.asked.float_stages[1:]))
    score: Numbers = after - before
    score += THREE_HALVES
    score >>= TO_HALF  # that is 50 more than half of (50 and the difference), rounded down
    return score


@cache
def without(names: tuple[str, ...]) -> Column[Derived]:
    """How even nodes are without the pod, in hundredths; a member of the family of LEDGER. Zeros where float64 will not do."""

    def compute(cluster: Cluster) -> Numbers:
        entries = cluster[LEDGER].entries(names, nonzero=False)
        return np.zeros(cluster.size, dtype=np.int64) if entries is None else evenness(filled(entries, NOTHING))[0]

    return Column(LEDGER.family, Reach.ROW, lambda store: DerivedStorage(store, compute), names)


def filled(entries: Entries, added: NDArray[np.float64]) -> NDArray[np.float64]:
    """Used fractions of the resources, at most 1, with something added: additions x resources x rows."""
    fractions: NDArray[np.float64] = entries.used + added
    fractions /= entries.allocatable
    return np.minimum(fractions, ONE, out=fractions)


def evenness(fractions: NDArray[np.float64]) -> Numbers:
    """`hundredths` of the deviation over the middle axis."""
    if fractions.shape[1] != 2:
        return hundredths(spread(fractions))
    twice: NDArray[np.float64] = fractions[:, 0] - fractions[:, 1]
    np.abs(twice, out=twice)
    # all in twice the size: as halving is exact, each step rounds as it does in `hundredths`
    np.subtract(TWO, twice, out=twice)
    twice *= FIFTY
    even: Numbers = twice.astype(np.int64)
    return even


def hundredths(deviation: NDArray[np.float64]) -> Numbers:
    """100 less the deviation in hundredths, truncated; overwrites it."""
    np.subtract(ONE, deviation, out=deviation)
    deviation *= HUNDRED
    even: Numbers = deviation.astype(np.int64)
    return even


def odd_deviation(found: OddShares) -> NDArray[np.float64]:
    """Standard deviation of the used fractions where rows have different resources."""
    used = np.stack([found.used, found.requested])
    fractions = np.minimum(1.0, used / np.maximum(found.allocatable, 1))
    deviation = np.zeros((2, used.shape[2]))
    for pattern in np.unique(found.counts, axis=1).T:  # rows that keep the same resources
        rows = (found.counts == pattern[:, None]).all(axis=0)
        deviation[:, rows] = spread(fractions[:, pattern][:, :, rows])
    return deviation


def spread(fractions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviation over the middle axis, in the order of upstream's float operations (balancedResourceScorer)."""
    kept = fractions.shape[1]
    if kept < 2:
        return np.zeros((fractions.shape[0], fractions.shape[2]))
    if kept == 2:
        half: NDArray[np.float64] = fractions[:, 0] - fractions[:, 1]
        half *= HALF  # exact
        return np.abs(half, out=half)
    mean = fractions.sum(axis=1) / kept
    difference = fractions - mean[:, None]
    deviation: NDArray[np.float64] = np.sqrt((difference * difference).sum(axis=1) / kept)
    return deviation


PLUGIN = Plugin(
    "NodeResourcesBalancedAllocation",
    frozenset({"preScore", "score"}),
    weight=1,
    args=NodeResourcesBalancedAllocationArgs,
    reads=(ALLOCATABLE, REQUESTED, LEDGER, DEVICES),
    asks=asks,
    scores=scores,
)
