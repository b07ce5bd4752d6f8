"""NodeDeclaredFeatures: a pod that needs a kubelet feature goes to a node that declares it.

rejects  a node whose declared features lack one that the pod requires
"""

from stowplan.objects import Pod
from stowplan.plugins.plugin import FILTERS, NoArgs, Plugin, Reason, Rejections
from stowplan.state import FEATURES, Cluster

MISSING = Reason("node(s) didn't match Pod's required features", final=True)


def asks(pod: Pod, _: NoArgs, __: Cluster) -> frozenset[str] | None:
    return pod.spec.required_features or None


def rejects(required: frozenset[str], cluster: Cluster) -> Rejections:
    return {MISSING: cluster[FEATURES].where(lambda declared: not required <= declared)}


STATELESS = {"filter": 'error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found'}

PLUGIN = Plugin("NodeDeclaredFeatures", FILTERS, reads=(FEATURES,), asks=asks, rejects=rejects, stateless=STATELESS)
