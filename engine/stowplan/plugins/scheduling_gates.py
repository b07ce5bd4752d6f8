"""SchedulingGates: a pod with gates does not enter the queue."""

from stowplan.objects import Pod
from stowplan.plugins.plugin import Plugin
from stowplan.state import Cluster


def gate(pod: Pod, _: Cluster) -> str | None:
    return f"waiting for scheduling gates: [{' '.join(pod.spec.gates)}]" if pod.spec.gates else None


PLUGIN = Plugin("SchedulingGates", frozenset({"preEnqueue"}), gate=gate)
