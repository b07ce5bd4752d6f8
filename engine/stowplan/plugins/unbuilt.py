"""Plugins of the default set that are declared here and decided elsewhere later.

They take their places in a profile, so that orders and weights are right, and say nothing about pods that do not need
them. `needs` names the field of a pod that makes one matter; `policy` warns about it, so nothing is skipped in silence.
"""

from collections.abc import Callable

import numpy as np

from stowplan.objects import Pod
from stowplan.plugins.arguments import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    VolumeBindingArgs,
)
from stowplan.plugins.plugin import FILTERS, FILTERS_AND_SCORES, Plugin
from stowplan.state import Cluster, Feasible, Numbers


def always(_pod: Pod, _args: object, _cluster: Cluster) -> str:
    return "nothing"


def zero(_ask: object, cluster: Cluster, _: Feasible) -> Numbers:
    return np.zeros(cluster.size, dtype=np.int64)


VOLUME_RESTRICTIONS = Plugin(
    "VolumeRestrictions", FILTERS, stateless={"filter": 'cannot read "PreFilterVolumeRestrictions" from cycleState'}
)
NODE_VOLUME_LIMITS = Plugin("NodeVolumeLimits", FILTERS)
VOLUME_BINDING = Plugin(
    "VolumeBinding",
    FILTERS_AND_SCORES | {"reserve", "preBind"},
    args=VolumeBindingArgs,
    asks=always,
    scores=zero,
    stateless={"filter": "not found", "preScore": "not found", "reserve": "not found"},
)
VOLUME_ZONE = Plugin("VolumeZone", FILTERS)
DYNAMIC_RESOURCES = Plugin(
    "DynamicResources",
    FILTERS | {"preEnqueue", "postFilter", "podGroupPostFilter", "score", "reserve", "preBind"},
    weight=2,
    args=DynamicResourcesArgs,
    stateless={"filter": "not found"},
    asks=always,
    scores=zero,
    gate=lambda _pod, _cluster: None,
)
DEFAULT_PREEMPTION = Plugin(
    "DefaultPreemption",
    frozenset({"preEnqueue", "postFilter", "podGroupPostFilter"}),
    args=DefaultPreemptionArgs,
    gate=lambda _pod, _cluster: None,
)


def _volumes(pod: Pod) -> str | None:
    return "spec.volumes" if pod.spec.volumes else None


NEEDS: dict[str, Callable[[Pod], str | None]] = {
    "VolumeRestrictions": _volumes,
    "NodeVolumeLimits": _volumes,
    "VolumeBinding": _volumes,
    "VolumeZone": _volumes,
    "DynamicResources": lambda pod: "spec.resourceClaims" if pod.spec.claims else None,
}
