"""DefaultPreemption: a pod that fits nowhere may evict less important ones; `policy.preempt` searches for them.

The plugin takes its place in a profile; at PreEnqueue it lets every pod pass, as no preemption runs in the background here.
"""

from stowplan.plugins.arguments import DefaultPreemptionArgs
from stowplan.plugins.plugin import Plugin

PLUGIN = Plugin(
    "DefaultPreemption",
    frozenset({"preEnqueue", "postFilter", "podGroupPostFilter"}),
    args=DefaultPreemptionArgs,
    gate=lambda _pod, _cluster: None,
)
