"""ImageLocality: a node that holds the pod's images starts it sooner.

scores  a node by the size of the pod's images it holds, each scaled by the share of nodes that hold it
"""

from dataclasses import dataclass

import numpy as np

from stowplan.objects import Pod
from stowplan.plugins.plugin import MAX_SCORE, NoArgs, Plugin
from stowplan.state import IMAGES, Cluster, Feasible, Numbers

MIB = 1024 * 1024
LEAST, MOST_EACH = 23 * MIB, 1000 * MIB


@dataclass(frozen=True, slots=True)
class Ask:
    """Image names of the pod's containers and image volumes, repeated as there."""

    images: tuple[str, ...]


def asks(pod: Pod, _: NoArgs, __: Cluster) -> Ask:
    return Ask(pod.spec.images)


def scores(ask: Ask, cluster: Cluster, _: Feasible) -> Numbers:
    images = cluster[IMAGES]
    total = np.zeros(cluster.size, dtype=np.int64)
    for name in ask.images:
        if spread := images.spread(name):
            total += images.held(name) * int(images.size(name) * (spread / cluster.nodes))
    most = MOST_EACH * len(ask.images)
    clamped = np.minimum(np.maximum(total, LEAST), max(most, LEAST))
    return np.zeros_like(total) if most <= LEAST else MAX_SCORE * (clamped - LEAST) // (most - LEAST)


PLUGIN = Plugin("ImageLocality", frozenset({"score"}), weight=1, reads=(IMAGES,), asks=asks, scores=scores)
