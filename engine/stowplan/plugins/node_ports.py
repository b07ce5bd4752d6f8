"""NodePorts: two pods of one node cannot hold the same host port.

rejects  a node where a host port of the pod is taken
"""

from stowplan.objects import HostPort, Pod
from stowplan.plugins.plugin import FILTERS, NoArgs, Plugin, Reason, Rejections
from stowplan.state import HOST_PORTS, Cluster

TAKEN = Reason("node(s) didn't have free ports for the requested pod ports")


def asks(pod: Pod, _: NoArgs, __: Cluster) -> frozenset[HostPort] | None:
    return pod.spec.host_ports or None


def rejects(wanted: frozenset[HostPort], cluster: Cluster) -> Rejections:
    return {TAKEN: cluster[HOST_PORTS].where(lambda used: any(port.conflicts(other) for port in wanted for other in used))}


STATELESS = {"filter": 'reading "PreFilterNodePorts" from cycleState: not found'}

PLUGIN = Plugin("NodePorts", FILTERS, reads=(HOST_PORTS,), asks=asks, rejects=rejects, stateless=STATELESS)
