"""What rules cost: three expressions over all nodes, and decisions with five typical rules against none.

Prints a table and exits 1 if a limit is missed. `python tests/bench/rules.py 5000` measures one number of nodes only.
"""

import gc
import pathlib
import sys
import time
from contextlib import suppress

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
SAMPLE = 200
"""nodes over which other implementations are timed"""
LEAST = {"cel-python": 1000, "cel-expr-python": 300}
"""how many times longer they take at least, for expressions without loops"""
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
    """A row for each expression: its median time over all nodes, and how much longer other implementations take."""
    workload = {"nodes": nodes, "running": RUNNING[nodes], "pods": 1, "apps": 50}
    store = load_cluster(clusters.objects(workload))
    pod = next(iter(store.pending.values()))
    for (name, rule), limit in zip(EXPRESSIONS.items(), LIMITS[nodes], strict=True):
        plugin = policy({"name": "r", **rule}).profiles["default-scheduler"].plugins["r"]
        ask, everyone = plugin.asks(pod, None, Cluster(store)), Feasible(np.ones(nodes, dtype=np.int64))
        times = []  # of processor time: others use the machine too
        for _ in range(31):
            view = Cluster(store)
            begin = time.process_time()
            plugin.scores(ask, view, everyone) if plugin.scores else plugin.rejects(ask, view)
            times.append(1000 * (time.process_time() - begin))
        median = sorted(times)[15]
        yield row(f"{name}, {nodes} nodes", median, limit, "ms", ok=median <= limit * max(1.0, slowness))
        if nodes == min(LIMITS):
            yield from ratios(name, rule, store, median)


def row(name, value, limit, unit, *, ok):
    return {"name": name, "value": value, "limit": limit, "unit": unit, "ok": ok}


def ratios(name, rule, store, median):
    """How many times longer cel-python and cel-expr-python take, node by node, where they are installed."""
    text = rule.get("filter") or rule["score"]
    pod = {"metadata": {"labels": {"app": "a"}}, "labels": {"app": "a"}, "requests": {"memory": 1.0}}
    nodes = [
        {
            "metadata": {"labels": dict(node.labels)},
            "labels": dict(node.labels),
            "allocatable": {"memory": 1e9},
            "pods": [{"labels": dict(seated.labels)} for seated in store.seats[index].values()][:30] if "pods" in text else [],
        }
        for index, node in enumerate(store.nodes[:SAMPLE])
    ]
    for engine, make in (("cel-python", cel_python), ("cel-expr-python", cel_expr_python)):
        evaluate = make(text, pod, nodes)
        if evaluate is not None:
            begin = time.perf_counter()
            evaluate()
            theirs = 1000 * (time.perf_counter() - begin) / len(nodes) * len(store.nodes)
            least = LEAST[engine] if "pods" not in text else None
            yield row(f"{name}, {engine}", theirs / median, least, "x", ok=least is None or theirs / median >= least)


def cel_python(text, pod, nodes):
    """Evaluation over nodes that are converted already; None without cel-python."""
    try:
        import celpy  # noqa: PLC0415 - may be missing
    except ImportError:
        return None
    environment = celpy.Environment()
    program = environment.program(environment.compile(text))
    given = [{"pod": celpy.json_to_cel(pod), "node": celpy.json_to_cel(node)} for node in nodes]

    def run():
        for bindings in given:
            with suppress(celpy.CELEvalError):
                program.evaluate(bindings)

    return run


def cel_expr_python(text, pod, nodes):
    """Evaluation over dicts; None without cel-expr-python."""
    try:
        from cel_expr_python import cel  # noqa: PLC0415 - may be missing
    except ImportError:
        return None
    program = cel.NewEnv(variables={"pod": cel.Type.DYN, "node": cel.Type.DYN}).compile(text)

    def run():
        for node in nodes:
            with suppress(RuntimeError):
                program.eval(data={"pod": pod, "node": node}).value()

    return run


def slowdown(nodes=5000, pods=2000):
    """A row for each set of rules: how much slower decisions are than without any."""
    store = load_cluster(clusters.objects({"nodes": nodes, "running": 10, "pods": pods, "apps": 50}))
    policies = (load_policy(None), policy(*RULES), policy(*RULES, SPREAD))
    best = [0.0] * len(policies)
    for _ in range(3):
        for index, compiled in enumerate(policies):
            Chooser(compiled, store).choose(next(iter(store.pending.values())))
            begin = time.process_time()
            simulate(compiled, store)
            best[index] = max(best[index], pods / (time.process_time() - begin))
    for (name, limit), rate in zip(SLOWDOWN.items(), best[1:], strict=True):
        yield row(f"{name}: {rate:.0f} against {best[0]:.0f} decisions/s", best[0] / rate, limit, "x", ok=best[0] / rate <= limit)


def run(slowness, sizes=tuple(LIMITS)):
    """All rows, as they are measured: name, value, limit (None: no limit), unit, and whether the limit is kept."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        for nodes in sizes:
            yield from expressions(nodes, slowness)
        yield from slowdown()
    finally:
        if collecting:
            gc.enable()


def show(found):
    limit = "" if found["limit"] is None else f"limit {found['limit']}{'' if found['ok'] else '  MISSED'}"
    print(f"{found['name']:60} {found['value']:10.3f} {found['unit']:2} {limit}", flush=True)


def main():
    slowness = short_call() / QUIET_CALL
    print(f"one short NumPy call takes {slowness:.2f} x a quiet core's; limits in ms are multiplied by that where it is above 1")
    kept = []
    for found in run(slowness, [int(size) for size in sys.argv[1:]] or tuple(LIMITS)):
        show(found)
        kept.append(found["ok"])
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
