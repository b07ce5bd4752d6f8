"""What rules cost: three expressions over all nodes, and decisions with five typical rules against none.

Prints a table and exits 1 if a limit is missed. `python tests/bench/rules.py 5000` measures one number of nodes only.
"""

import gc
import pathlib
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import clusters
from run import QUIET_CALL, short_call

from stowplan import load_cluster, load_policy, simulate
from stowplan.policy.choose import Chooser
from stowplan.state import Cluster, Feasible

ZONE = "topology.kubernetes.io/zone"
EXPRESSIONS = {
    "label equality": {"filter": f'node.metadata.labels["{ZONE}"] == pod.metadata.labels["app"]'},
    "has, compare, choose": {"score": "has(node.labels.disk) && node.allocatable.memory > pod.requests.memory ? 10 : 0"},
    "exists over all pods": {"filter": 'node.pods.exists(p, p.labels["app"] == pod.labels["app"])'},
}
LIMITS = {5000: (0.1, 0.2, 1.5), 100_000: (0.5, 1.0, 25.0)}
"""milliseconds on a quiet core, by number of nodes"""
RUNNING = {5000: 30, 100_000: 2}
RULES = (
    {"name": "pool", "when": 'variables.app != ""', "filter": 'node.labels[?"pool"].orValue("") != variables.app'},
    {"name": "room", "filter": "node.free.cpu - pod.requests.cpu >= 0.02 * node.allocatable.cpu"},
    {"name": "disk", "score": 'node.labels[?"disk"].orValue("") == "ssd" ? 10 : 0'},
    {"name": "packed", "score": "100.0 * node.requested.cpu / node.allocatable.cpu", "weight": 0.5},
    {"name": "maintenance", "filter": 'node.labels[?"maintenance-mode"].orValue("") != "true"'},
)
SPREAD = {"name": "spread", "score": f'node.domain("{ZONE}").pods({{"app": pod.labels.app}})', "normalize": "Reverse"}
VARIABLES = ({"name": "app", "expression": 'pod.labels[?"app"].orValue("")'},)
SLOWDOWN = {"five rules": 2.0, "and one over zones": 4.0}
"""what rules may cost: decisions without any against decisions with them. Without services no built-in plugin looks at zones"""


def policy(*rules):
    members = {"schedulerName": "default-scheduler", "variables": list(VARIABLES), "rules": list(rules)}
    return load_policy({"apiVersion": "stowplan.io/v1alpha1", "kind": "SchedulerPolicy", "profiles": [members]})


def expressions(nodes, slowness):
    """The median time of each expression over all nodes; whether all keep their limits."""
    workload = {"nodes": nodes, "running": RUNNING[nodes], "pods": 1, "apps": 50}
    store = load_cluster(clusters.objects(workload))
    pod = next(iter(store.pending.values()))
    ok = True
    for (name, rule), limit in zip(EXPRESSIONS.items(), LIMITS[nodes], strict=True):
        plugin = policy({"name": "r", **rule}).profiles["default-scheduler"].plugins["r"]
        ask, everyone = plugin.asks(pod, None, Cluster(store)), Feasible(np.ones(nodes, dtype=np.int64))
        times = []
        for _ in range(31):
            view = Cluster(store)
            begin = time.perf_counter()
            plugin.scores(ask, view, everyone) if plugin.scores else plugin.rejects(ask, view)
            times.append(1000 * (time.perf_counter() - begin))
        median = sorted(times)[15]
        fast = median <= limit * max(1.0, slowness)
        ok = ok and fast
        print(f"{name:24} {nodes:7} nodes {median:8.3f} ms, limit {limit}{'' if fast else '  TOO SLOW'}", flush=True)
    return ok


def slowdown(nodes=5000, pods=2000):
    """Decisions per second without rules and with them; whether the limits are kept."""
    store = load_cluster(clusters.objects({"nodes": nodes, "running": 10, "pods": pods, "apps": 50}))
    policies = (load_policy(None), policy(*RULES), policy(*RULES, SPREAD))
    best = [0.0] * len(policies)
    for _ in range(3):
        for index, compiled in enumerate(policies):
            Chooser(compiled, store).choose(next(iter(store.pending.values())))
            begin = time.perf_counter()
            simulate(compiled, store)
            best[index] = max(best[index], pods / (time.perf_counter() - begin))
    ok = True
    for (name, limit), rate in zip(SLOWDOWN.items(), best[1:], strict=True):
        ratio = best[0] / rate
        ok = ok and ratio <= limit
        shown = f"{rate:.0f} decisions/s against {best[0]:.0f}: {ratio:.2f} x as slow, limit {limit}"
        print(f"{name:24} {nodes:7} nodes {shown}{'' if ratio <= limit else '  TOO SLOW'}", flush=True)
    return ok


def main():
    slowness = short_call() / QUIET_CALL
    print(f"one short NumPy call takes {slowness:.2f} x a quiet core's; limits are multiplied by that where it is above 1")
    gc.disable()
    wanted = [int(size) for size in sys.argv[1:]] or list(LIMITS)
    kept = [expressions(nodes, slowness) for nodes in wanted]
    return 0 if slowdown() and all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
