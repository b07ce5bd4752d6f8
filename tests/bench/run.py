"""`make bench`: decisions per second with every node scored, beside kube-scheduler's own algorithm where its binary is.

Prints a table, writes build/bench.json, exits 1 if a floor is missed. Rates are per second of processor time of one core, the
simulation's loop and the first use of every class included; making columns from the facts is timed apart.
STOWPLAN_ORACLE names a binary that answers `-bench < case.json`; else the one that tests/differential has built is used.
"""

import argparse
import json
import os
import pathlib
import platform
import resource
import subprocess
import sys
import time

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import clusters
from yardstick import QUIET_CALL, short_call, short_calls

from stowplan import load_cluster, load_policy, simulate

ROOT = pathlib.Path(__file__).parents[2]
BUILD = ROOT / "build"
SIZES = (5000, 100_000)
ORACLE_SIZES = (1000, 5000)
"""numbers of nodes for which kube-scheduler is asked unless all are wanted: larger ones take it minutes"""
ORACLE_PODS = 100
DEFAULTS = {"apps": 50, "running": 10, "pods": 5000, "oracle": True, "rules": False, "sizes": SIZES}
MOST_PODS = {20_000: 3000, 100_000: 1000}
MOST_RUNNING = {20_000: 3, 100_000: 1}
BESIDE, CALLS = 50, 200
"""after so many decisions, so many short calls"""
ROUNDS = {1000: 3, 5000: 3}
"""a cluster is simulated so often, and the best counts; once where it is larger"""


def workloads(wanted, sizes):
    """Every case to be measured: a workload at one number of nodes."""
    for entry in yaml.safe_load((pathlib.Path(__file__).parent / "workloads.yaml").read_text()):
        found = DEFAULTS | entry
        if wanted and found["name"] not in wanted:
            continue
        for nodes in sizes or found["sizes"]:
            pods, running = min(found["pods"], MOST_PODS.get(nodes, 5000)), min(found["running"], MOST_RUNNING.get(nodes, 20))
            bounds = {"floor": found["floors"].get(nodes), "target": found["targets"].get(nodes)}
            yield found | {"nodes": nodes, "pods": pods, "running": running} | bounds


def policy(workload):
    if not workload["rules"]:
        return load_policy(None)
    import rules  # noqa: PLC0415 - it measures with what is here

    return rules.policy(*rules.RULES)


class Clock:
    """Processor time between the first decision and the last, with the yardstick timed in between and left out."""

    def __init__(self):
        self.first = self.last = None
        self.pods = 0
        self.beside = []

    def __call__(self, *_):
        now = time.process_time() - sum(self.beside)
        self.first, self.last = (now if self.first is None else self.first), now
        self.pods += 1
        if self.pods % BESIDE == 1:
            begin = time.process_time()
            short_calls(CALLS)
            self.beside.append(time.process_time() - begin)

    @property
    def rate(self):
        return (self.pods - 1) / (self.last - self.first)

    @property
    def slowness(self):
        return max(1.0, sum(self.beside) / len(self.beside) / CALLS / QUIET_CALL)


def decisions(workload):
    """Decisions per second of the round that is best for its yardstick; pods placed; seconds for making columns."""
    store, compiled = load_cluster(clusters.objects(workload)), policy(workload)
    clocks, prepared, placed = [], 0.0, 0
    for _ in range(ROUNDS.get(workload["nodes"], 1)):
        clock, begin = Clock(), time.process_time()
        found = simulate(compiled, store, clock)
        prepared = max(prepared, clock.first - begin)  # columns are made from the facts on first use
        placed = found.summary["placed"]
        clocks.append(clock)
    best = max(clocks, key=lambda clock: clock.rate * clock.slowness)
    return {"stowplan": best.rate, "slowness": best.slowness, "placed": placed, "prepareSeconds": prepared}


def oracle():
    """Path of kube-scheduler's algorithm as a binary, if it is at hand."""
    named = os.environ.get("STOWPLAN_ORACLE")
    built = [pathlib.Path(named)] if named else sorted(BUILD.glob("oracle/*/oracle"))
    return next((path for path in built if path.exists()), None)


def kube_scheduler(workload, binary):
    """Decisions per second of kube-scheduler's own algorithm, as configured by default (it samples nodes), on one core."""
    case = BUILD / "bench-case.json"
    items = list(clusters.objects(workload | {"pods": min(workload["pods"], ORACLE_PODS)}))
    case.write_text(json.dumps({"name": workload["name"], "mode": "sequence", "objects": items}))
    with case.open("rb") as stdin:
        environment = os.environ | {"GOMAXPROCS": "1"}
        answer = subprocess.run([binary, "-bench"], stdin=stdin, capture_output=True, check=True, env=environment)
    return json.loads(answer.stdout)["podsPerSecond"]


def loading():
    """Seconds and peak MiB to load a kubectl dump of 5,000 nodes and 50,000 pods, in a process of its own."""
    dump = BUILD / "bench-dump.json"
    if not dump.exists():
        clusters.kubectl_dump(dump, 5000, 50000)
    code = (
        "import re, sys, time; from stowplan.edge.load import read_cluster; b = time.perf_counter(); "
        "s, _ = read_cluster([sys.argv[1]]); print(time.perf_counter() - b, "
        "int(re.search('VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) / 1024, len(s.nodes), sum(map(len, s.seats)))"
    )
    answer = subprocess.run([sys.executable, "-c", code, dump], capture_output=True, check=True, text=True).stdout.split()
    return {"seconds": float(answer[0]), "peakMiB": float(answer[1]), "fileMB": dump.stat().st_size / 1e6}


def measure(workload, binary):
    """One row of the table. A floor is divided by how much longer than on a quiet core short calls take beside the decisions."""
    found = decisions(workload)
    head = {"workload": workload["name"], "nodes": workload["nodes"], "pods": workload["pods"]}
    head["running"] = workload["nodes"] * workload["running"]
    peer = kube_scheduler(workload, binary) if binary and workload["oracle"] else None
    ratio = None if peer is None else found["stowplan"] / peer
    bounds = {"floor": workload["floor"], "target": workload["target"]}
    ok = workload["floor"] is None or found["stowplan"] >= workload["floor"] / found["slowness"]
    return head | found | {"peer": peer, "ratio": ratio} | bounds | {"ok": ok}


def show(row):
    def number(value, form):
        return "-" if value is None else format(value, form)

    sizes = (
        f"{row['workload']:26} {row['nodes']:7} {row['running']:7} {row['pods']:6} {row['placed']:6} {row['prepareSeconds']:7.2f}s"
    )
    bounds = f"{number(row['floor'], 'd'):>6} {number(row['target'], 'd'):>7} {row['slowness']:5.2f}"
    peer = f"{number(row['peer'], '.0f'):>6} {number(row['ratio'], '.1f'):>6}"
    print(f"{sizes} {row['stowplan']:8.0f} {bounds} {peer}{'' if row['ok'] else '  TOO SLOW'}", flush=True)


def measure_loading():
    """A row about loading, and whether it is fast enough."""
    found, slowness = loading(), max(1.0, short_call() / QUIET_CALL)
    fast = found["seconds"] <= 3 * slowness and found["peakMiB"] <= 300
    print(
        f"loading {found['fileMB']:.0f} MB of kubectl JSON (5,000 nodes, 50,000 pods): {found['seconds']:.2f} s, "
        f"peak {found['peakMiB']:.0f} MiB{'' if fast else '  TOO SLOW OR TOO LARGE'}"
    )
    return found | {"ok": fast}


def measure_rules():
    """What rules cost, by expression."""
    import rules  # noqa: PLC0415 - it measures with what is here

    found = []
    for row in rules.run(max(1.0, short_call() / QUIET_CALL)):
        rules.show(row)
        found.append(row)
    return found


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="workloads of workloads.yaml, `loading`, `rules`; all of them by default")
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of nodes instead of each workload's own")
    parser.add_argument("--no-peer", action="store_true", help="leave kube-scheduler's algorithm out")
    parser.add_argument("--all-peers", action="store_true", help="ask it for large clusters too")
    return parser.parse_args()


def main():
    BUILD.mkdir(exist_ok=True)
    asked = arguments()
    binary = None if asked.no_peer else oracle()
    print("rates are decisions per second of processor time; floors are divided by `slow`, how much slower than a quiet core's")
    print("a short NumPy call is (0.9 us); `peer` is kube-scheduler's own algorithm on one core, sampling nodes as is its default")
    print(f"{'workload':26} {'nodes':>7} {'running':>7} {'pods':>6} {'placed':>6} {'prepare':>8} {'stowplan':>8} ", end="")
    print(f"{'floor':>6} {'target':>7} {'slow':>5} {'peer':>6} {'ratio':>6}")
    rows = []
    for workload in workloads(asked.names, asked.sizes):
        peer = binary if asked.all_peers or workload["nodes"] in ORACLE_SIZES else None
        rows.append(measure(workload, peer))
        show(rows[-1])
    report = {"date": time.strftime("%Y-%m-%d"), "machine": platform.processor() or platform.machine(), "decisions": rows}
    ok = all(row["ok"] for row in rows)
    if not asked.names or "loading" in asked.names:
        report["loading"] = measure_loading()
        ok = ok and report["loading"]["ok"]
    if not asked.names or "rules" in asked.names:
        report["rules"] = measure_rules()
        ok = ok and all(row["ok"] for row in report["rules"])
    report["peakMiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    (BUILD / "bench.json").write_text(json.dumps(report, indent=2))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
