"""PrioritySort: higher priority first, then the pod that has waited longer."""

from stowplan.objects import Pod
from stowplan.plugins.plugin import Plugin


def order(pod: Pod) -> tuple[int, float]:
    return -pod.spec.priority, pod.created or 0.0


PLUGIN = Plugin("PrioritySort", frozenset({"queueSort"}), order=order)
