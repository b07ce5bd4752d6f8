"""NodeName: a pod that names its node goes nowhere else.

narrows  the search to the named node
rejects  every other node
"""

from stowplan.objects import Pod
from stowplan.plugins.plugin import FILTERS, NoArgs, Plugin, Reason, Rejections
from stowplan.state import NAME, Cluster

OTHER_NODE = Reason("node(s) didn't match the requested node name", final=True)


def asks(pod: Pod, _: NoArgs, __: Cluster) -> str:
    return pod.node_name


def narrows(name: str) -> frozenset[str] | None:
    return frozenset({name}) if name else None


def rejects(name: str, cluster: Cluster) -> Rejections:
    return {OTHER_NODE: ~cluster[NAME].is_in({name})} if name else {}


PLUGIN = Plugin("NodeName", FILTERS, reads=(NAME,), asks=asks, narrows=narrows, rejects=rejects)
