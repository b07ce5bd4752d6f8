"""Plugins of the default set that are declared here and decided elsewhere later.

They take their places in a profile, so that orders and weights are right, and say nothing about pods that do not need
them. `needs` names the field of a pod that makes one matter; `policy` warns about it, so nothing is skipped in silence.
"""

from collections.abc import Callable

import numpy as np

from stowplan.objects import Pod
from stowplan.plugins.arguments import (
    DefaultPreemptionArgs,
)
from stowplan.plugins.plugin import Plugin
from stowplan.state import Cluster, Feasible, Numbers


def always(_pod: Pod, _args: object, _cluster: Cluster) -> str:
    return "nothing"


def zero(_ask: object, cluster: Cluster, _: Feasible) -> Numbers:
    return np.zeros(cluster.size, dtype=np.int64)


DEFAULT_PREEMPTION = Plugin(
    "DefaultPreemption",
    frozenset({"preEnqueue", "postFilter", "podGroupPostFilter"}),
    args=DefaultPreemptionArgs,
    gate=lambda _pod, _cluster: None,
)


NEEDS: dict[str, Callable[[Pod], str | None]] = {}
