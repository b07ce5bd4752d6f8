"""`make bench-live`: stowplan and kube-scheduler on a real API server, the same workloads one after the other in one run.

Both may send 5,000 requests a second and have their defaults otherwise; who begins alternates from round to round. Prints a table
of medians, writes build/bench-live.json and the chart engine/docs/bench-live.svg. `--nodes 500 --workloads Basic --rounds 1` runs a
part, which draws no chart; `--profile FILE` writes stowplan's profile (py-spy, if it is installed).
"""

import argparse
import contextlib
import json
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import live_chart
import live_measure as measuring
import live_workloads as shapes

from controlplane.build import Unavailable
from controlplane.cleaning import empty
from controlplane.components import start_scheduler
from controlplane.objects import namespace
from controlplane.plane import ControlPlane
from e2e.running import LEASE, NAMESPACE, Stowplan, deploy, policy

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
RESULT, CHART = ROOT / "build" / "bench-live.json", ROOT / "engine" / "docs" / "bench-live.svg"
RATES = {"qps": 5000, "burst": 5000}
FIGURES = ("podsPerSecond", "cpuMsPerPod", "rssMiB", "requestsPerPod")


@dataclass
class Contestant:
    """A scheduler that waits for its lease."""

    pid: int
    scheduler_name: str
    lease: tuple[str, str]
    stop: object


def start_stowplan(plane, kubeconfig, workload) -> Contestant:
    members = shapes.five_rules() if workload.get("rules") else {}
    told = policy({"schedulerName": "stowplan", **members}, elect=True, clientConnection=RATES)
    measuring.hold(plane.admin, LEASE["resourceName"], NAMESPACE)
    process = Stowplan(plane, kubeconfig, told)
    process.process.await_ready(lambda: process.answers("/readyz?exclude=leaderElection"), 120)
    return Contestant(
        process.process.pid, "stowplan", (LEASE["resourceName"], NAMESPACE), lambda: (process.check(), process.stop())
    )


def start_kube_scheduler(plane, _kubeconfig, _workload) -> Contestant:
    measuring.hold(plane.admin, "kube-scheduler", "kube-system")
    told = {"leaderElection": {"leaderElect": True}, "clientConnection": RATES}
    scheduler = start_scheduler(plane, told)
    return Contestant(scheduler.process.pid, "default-scheduler", ("kube-scheduler", "kube-system"), scheduler.stop)


STARTS = {"stowplan": start_stowplan, "kube-scheduler": start_kube_scheduler}


def profiler(path: str | None, name: str):
    """py-spy on the process while the block runs."""

    @contextlib.contextmanager
    def profiled(pid: int):
        if path is None or name != "stowplan":
            yield
            return
        spy = shutil.which("py-spy") or str(pathlib.Path(sys.executable).with_name("py-spy"))
        child = subprocess.Popen([spy, "record", "--pid", str(pid), "--format", "raw", "--rate", "200", "--output", path])
        try:
            yield
        finally:
            child.send_signal(2)
            child.wait()

    return profiled


def empty_cluster(client) -> None:
    for resource in ("pods", "services"):
        empty(client, resource, shapes.NAMESPACE)
    client.delete_all("events", shapes.NAMESPACE)


def once(plane, kubeconfig, name: str, workload, nodes: int, *, profile=None):
    """One scheduler, one workload, one round."""
    empty_cluster(plane.admin)
    plane.admin.create_all(shapes.bound_before(workload, nodes))
    contestant = STARTS[name](plane, kubeconfig, workload)
    try:
        time.sleep(1)
        return measuring.measure(plane, contestant, workload, nodes, during=profiler(profile, name))
    finally:
        contestant.stop()


def median(rounds):
    return {figure: statistics.median(each[figure] for each in rounds) for figure in FIGURES} if rounds else None


def row_of(workload, nodes: int, found):
    ours, theirs = median(found["stowplan"]), median(found["kube-scheduler"])
    row = {"workload": workload["name"], "nodes": nodes, "pods": workload["pods"][nodes], "stowplan": ours, "peer": theirs}
    row["ratio"] = ours["podsPerSecond"] / theirs["podsPerSecond"] if ours and theirs else None
    row["cpuRatio"] = ours["cpuMsPerPod"] / theirs["cpuMsPerPod"] if ours and theirs else None
    row["rounds"] = found
    return row


def show(row) -> None:
    def told(side):
        if side is None:
            return f"{'-':>8} {'-':>7} {'-':>5} {'-':>5}"
        return f"{side['podsPerSecond']:8.0f} {side['cpuMsPerPod']:7.2f} {side['rssMiB']:5.0f} {side['requestsPerPod']:5.2f}"

    ratios = f"{row['ratio']:6.2f} {row['cpuRatio']:6.2f}" if row["ratio"] else f"{'-':>6} {'-':>6}"
    print(
        f"{row['workload']:27} {row['nodes']:5} {row['pods']:5} |{told(row['stowplan'])} |{told(row['peer'])} | {ratios}",
        flush=True,
    )


def machine() -> str:
    info = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    models = [line.partition(":")[2].strip() for line in info.splitlines() if line.startswith("model name")]
    memory = int(pathlib.Path("/proc/meminfo").read_text(encoding="utf-8").split()[1]) / 2**20
    return f"{len(models)} x {models[0] if models else platform.machine()}, {memory:.0f} GiB, Python {platform.python_version()}"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", default="500,5000", help="numbers of nodes, of 500 and 5000")
    parser.add_argument("--workloads", default="", help="names, with commas; all unless told")
    parser.add_argument("--schedulers", default=",".join(STARTS))
    parser.add_argument("--profile", metavar="FILE")
    return parser.parse_args()


def contest(plane, told, workloads) -> list[dict]:
    kubeconfig, rows = deploy(plane), []
    names = told.schedulers.split(",")
    plane.admin.create_all([namespace(shapes.NAMESPACE), shapes.priority_class()])
    heading = f"{'pods/s':>8} {'CPU ms':>7} {'MiB':>5} {'calls':>5}"
    print(f"{'':39} |{'stowplan':>28} |{'kube-scheduler':>28} | {'ratios':>13}")
    print(f"{'workload':27} {'nodes':>5} {'pods':>5} |{heading} |{heading} | {'pods/s':>6} {'CPU':>6}", flush=True)
    for nodes in map(int, told.nodes.split(",")):
        empty_cluster(plane.admin)
        empty(plane.admin, "nodes")
        plane.admin.create_all(shapes.node(number) for number in range(nodes))
        for workload in workloads:
            found = {name: [] for name in STARTS}
            for turn in range(told.rounds):
                for name in names if turn % 2 == 0 else reversed(names):
                    if name == "stowplan" or not workload.get("rules"):
                        found[name].append(once(plane, kubeconfig, name, workload, nodes, profile=told.profile))
            rows.append(row_of(workload, nodes, found))
            show(rows[-1])
    return rows


def main() -> int:
    told = arguments()
    workloads = yaml.safe_load((HERE / "live.yaml").read_text(encoding="utf-8"))
    wanted = [name for name in told.workloads.split(",") if name]
    chosen = [each for each in workloads if not wanted or each["name"] in wanted]
    about = {"date": time.strftime("%Y-%m-%d"), "machine": machine(), "rounds": told.rounds}
    print(f"{about['machine']}; medians of {told.rounds} rounds; CPU in milliseconds a pod, calls of the API server a pod")
    with tempfile.TemporaryDirectory() as folder:
        try:
            plane = ControlPlane(pathlib.Path(folder)).start()
        except Unavailable as reason:
            print(reason, file=sys.stderr)
            return 2
        with contextlib.closing(contextlib.ExitStack()) as stack:
            stack.callback(plane.stop)
            rows = contest(plane, told, chosen)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(about | {"rows": rows}, indent=2))
    if chosen == workloads and told.nodes == "500,5000":
        CHART.write_text(live_chart.draw(about, rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
