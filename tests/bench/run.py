"""`make bench`: decisions per second with every node scored, and loading; ratios against kube-scheduler where its binary is.

Prints a table, writes build/bench.json, exits 1 if a floor is missed. `python tests/bench/run.py NAME...` runs some only.
STOWPLAN_ORACLE names a binary that answers `-bench < case.json`; else the one that tests/differential has built is used.
"""

import json
import os
import pathlib
import platform
import resource
import subprocess
import sys
import time

import numpy as np
import yaml

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import clusters

from stowplan import load_cluster, load_policy
from stowplan.policy.choose import Chooser
from stowplan.state import collector_off

ROOT = pathlib.Path(__file__).parents[2]
BUILD = ROOT / "build"
ORACLE_PODS = 300
QUIET_CALL = 0.9e-6
"""seconds that one short NumPy call takes on a quiet core; floors are scaled by what it takes now"""


def short_call():
    """Seconds per short NumPy call, now."""
    values, out = np.arange(50, dtype=np.float64), np.empty(50)
    best = 1.0
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(20_000):
            np.subtract(values, 1.0, out=out)
        best = min(best, (time.perf_counter() - begin) / 20_000)
    return best


def decisions(workload):
    """Decisions per second of one workload: choosing and assuming, first use of each class included; making columns apart."""
    store, policy = load_cluster(clusters.objects(workload)), load_policy(None)
    names, pods = [node.name for node in store.nodes], list(store.pending.values())
    chooser, placed = Chooser(policy, store), 0
    begin = time.perf_counter()
    chooser.choose(pods[0])  # columns are made from the facts on first use
    prepared = time.perf_counter()
    with collector_off():
        for pod in pods:
            choice = chooser.choose(pod)
            if choice.row is not None:
                store.assume(pod, names[choice.row], choice.facts)
                placed += 1
    seconds = time.perf_counter() - prepared
    return {"prepareSeconds": prepared - begin, "perSecond": len(pods) / seconds, "placed": placed}


def oracle():
    """Path of kube-scheduler's algorithm as a binary, if it is at hand."""
    named = os.environ.get("STOWPLAN_ORACLE")
    built = [pathlib.Path(named)] if named else sorted(BUILD.glob("oracle/*/oracle"))
    return next((path for path in built if path.exists()), None)


def kube_scheduler(workload, binary):
    """Decisions per second of kube-scheduler's own algorithm, as configured by default (it samples nodes), on one core."""
    case = BUILD / "bench-case.json"
    items = list(clusters.objects(workload | {"pods": ORACLE_PODS}))
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


def measure(workload, slowness, binary):
    """One row of the table."""
    found = decisions(workload) | {"name": workload["name"], "floor": workload["floor"]}
    if binary and workload.get("oracle"):
        found["kubeScheduler"] = kube_scheduler(workload, binary)
        found["ratio"] = found["perSecond"] / found["kubeScheduler"]
    found["ok"] = found["perSecond"] >= workload["floor"] / max(1.0, slowness)
    return found


def main():
    BUILD.mkdir(exist_ok=True)
    wanted = set(sys.argv[1:])
    slowness, binary = short_call() / QUIET_CALL, oracle()
    print(f"one short NumPy call takes {slowness:.2f} x a quiet core's; floors are divided by that where it is above 1")
    sizes = f"{'workload':28} {'nodes':>7} {'pods':>6} {'placed':>6} {'prepare':>8}"
    print(f"{sizes} {'decisions/s':>12} {'floor':>6} {'kube-scheduler/s':>17} {'ratio':>7}")
    rows = []
    for workload in yaml.safe_load((pathlib.Path(__file__).parent / "workloads.yaml").read_text()):
        if wanted and workload["name"] not in wanted:
            continue
        row = measure(workload, slowness, binary)
        rows.append(row)
        theirs = f"{row['kubeScheduler']:17.0f} {row['ratio']:7.1f}" if "ratio" in row else f"{'-':>17} {'-':>7}"
        sizes = f"{workload['nodes']:7} {workload['pods']:6} {row['placed']:6} {row['prepareSeconds']:7.2f}s"
        print(
            f"{row['name']:28} {sizes} {row['perSecond']:12.0f} {row['floor']:6} {theirs}{'' if row['ok'] else '  TOO SLOW'}",
            flush=True,
        )
    report = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": platform.processor() or platform.machine(),
        "slowness": slowness,
        "decisions": rows,
    }
    ok = all(row["ok"] for row in rows)
    if not wanted or "loading" in wanted:
        report["loading"] = found = loading()
        fast = found["seconds"] <= 3 * max(1.0, slowness) and found["peakMiB"] <= 300
        ok = ok and fast
        print(
            f"loading {found['fileMB']:.0f} MB of kubectl JSON (5,000 nodes, 50,000 pods): {found['seconds']:.2f} s, "
            f"peak {found['peakMiB']:.0f} MiB{'' if fast else '  TOO SLOW OR TOO LARGE'}"
        )
    report["peakMiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    (BUILD / "bench.json").write_text(json.dumps(report, indent=2))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
