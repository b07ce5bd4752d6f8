"""TaintToleration: a node repels the pods that do not tolerate its taints.

rejects  a node with a NoSchedule or NoExecute taint the pod does not tolerate
scores   a node by its untolerated PreferNoSchedule taints; fewer is better
"""

from stowplan.objects import Pod, Tolerations
from stowplan.plugins.plugin import FILTERS_AND_SCORES, NoArgs, Plugin, Reason, Rejections, fewer_is_better
from stowplan.state import TAINTS, Cluster, Feasible, Numbers

UNTOLERATED = Reason("node(s) had untolerated taint(s)", final=True)


def asks(pod: Pod, _: NoArgs, __: Cluster) -> Tolerations:
    return pod.spec.tolerations


def rejects(ask: Tolerations, cluster: Cluster) -> Rejections:
    return {UNTOLERATED: cluster[TAINTS].where(lambda taints: any(t.hard and not ask.tolerate(t) for t in taints))}


def scores(ask: Tolerations, cluster: Cluster, _: Feasible) -> Numbers:
    return cluster[TAINTS].count(lambda taints: sum(t.effect == "PreferNoSchedule" and not ask.tolerate(t) for t in taints))


PLUGIN = Plugin(
    "TaintToleration",
    FILTERS_AND_SCORES,
    weight=3,
    reads=(TAINTS,),
    asks=asks,
    rejects=rejects,
    scores=scores,
    normalise=fewer_is_better,
    stateless={"score": 'failed to read "PreScoreTaintToleration" from cycleState: not found'},
)
