"""NodeUnschedulable: a cordoned node takes only pods that tolerate being there.

rejects  a node with `spec.unschedulable` unless the pod tolerates the taint of that name
"""

from stowplan.objects import Pod, Taint
from stowplan.plugins.plugin import FILTERS, NoArgs, Plugin, Reason, Rejections
from stowplan.state import UNSCHEDULABLE, Cluster

CORDONED = Reason("node(s) were unschedulable", final=True)
TAINT = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


def asks(pod: Pod, _: NoArgs, __: Cluster) -> bool:
    return pod.spec.tolerations.tolerate(TAINT)


def rejects(tolerated: bool, cluster: Cluster) -> Rejections:
    return {} if tolerated else {CORDONED: cluster[UNSCHEDULABLE].where(lambda unschedulable: unschedulable)}


PLUGIN = Plugin("NodeUnschedulable", FILTERS, reads=(UNSCHEDULABLE,), asks=asks, rejects=rejects)
