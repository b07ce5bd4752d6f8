"""One measurement of the live benchmark, the same for every scheduler.

The scheduler runs as a standby, caches filled, while the pods are created: the benchmark holds its lease. Releasing it is the
starting shot. When a pod was bound is read off the revision that its last write got, compared with etcd's revision over time, so
that nobody but the scheduler asks anything of the API server meanwhile.
"""

import bisect
import contextlib
import re
import threading
import time
from dataclasses import dataclass, field

import live_workloads as shapes

from controlplane.process import usage

EVERY = 0.02
QUIET_SECONDS, QUIET_REVISIONS = 1.5, 4
"""It is over when etcd's revision hardly moves any more: leases are still renewed"""
REQUESTS = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
BACKGROUND = ('verb="WATCH"', 'resource="leases"')


@dataclass
class Trace:
    """etcd's revision and the scheduler's CPU seconds over time."""

    times: list[float] = field(default_factory=list)
    revisions: list[int] = field(default_factory=list)

    def when(self, revision: int) -> float:
        """The time of the first sample that has the revision."""
        return self.times[min(bisect.bisect_left(self.revisions, revision), len(self.times) - 1)]

    def quiet(self) -> bool:
        at = bisect.bisect_left(self.times, self.times[-1] - QUIET_SECONDS)
        return at > 0 and self.revisions[-1] - self.revisions[at] <= QUIET_REVISIONS


def hold(client, name: str, namespace: str) -> None:
    if client.exists("leases", name, namespace):
        client.delete("leases", name, namespace)
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    spec = {"holderIdentity": "bench", "leaseDurationSeconds": 3600, "acquireTime": now, "renewTime": now, "leaseTransitions": 1}
    meta = {"name": name, "namespace": namespace}
    client.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec})


def release(client, name: str, namespace: str) -> None:
    client.patch("leases", name, {"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}}, namespace)


def revision(plane) -> int:
    return int(plane.etcd_call("kv/range", {"key": "YQ==", "count_only": True})["header"]["revision"])


def requests(client) -> float:
    """Requests that the API server has answered, without watches and leases."""
    found = REQUESTS.findall(client.request("GET", "/metrics"))
    return sum(float(value) for labels, value in found if not any(each in labels for each in BACKGROUND))


def follow(plane, trace: Trace, timeout: float, done) -> None:
    """Samples until the cluster is quiet and `done()`."""
    end, asked = time.monotonic() + timeout, 0.0
    while True:
        trace.revisions.append(revision(plane))
        trace.times.append(time.monotonic())
        if trace.quiet() and trace.times[-1] - asked > 1:
            asked = trace.times[-1]
            if done():
                return
        if trace.times[-1] > end:
            raise TimeoutError(f"not all pods are bound after {timeout:.0f} s")
        time.sleep(EVERY)


@contextlib.contextmanager
def churning(client, scheduler: str, every: float = 0.1):
    """Things come and go while the block runs."""
    over = threading.Event()

    def churn() -> None:
        number = 0
        while not over.wait(every):
            made = client.create_all(shapes.churned(number, scheduler), workers=1)
            for each, resource in zip(made, ("nodes", "pods", "services"), strict=True):
                client.delete(resource, each["metadata"]["name"], shapes.NAMESPACE, grace=0)
            number += 1

    thread = threading.Thread(target=churn, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def measure(plane, contestant, workload, nodes: int, *, during=contextlib.nullcontext, timeout: float = 900.0):
    """pods/s from first to last binding, CPU milliseconds a pod, RSS and requests a pod.

    The contestant is a standby and ready; CPU counts from before the first pod is created until all is quiet.
    """
    client, count = plane.admin, workload["pods"][nodes]
    before = usage(contestant.pid)
    client.create_all(shapes.measured(workload, nodes, contestant.scheduler_name))
    asked, trace = requests(client), Trace()
    trace.revisions.append(revision(plane))
    trace.times.append(time.monotonic())
    start = trace.revisions[0]

    def unbound() -> int:
        waiting = client.list("pods", shapes.NAMESPACE, fieldSelector="spec.nodeName=")
        return sum(each["metadata"]["name"].startswith("pod-") for each in waiting)

    churn = churning(client, contestant.scheduler_name) if workload.get("churn") else contextlib.nullcontext()
    with during(contestant.pid):
        release(client, *contestant.lease)
        with churn:
            follow_churn(plane, trace, timeout, unbound, busy=bool(workload.get("churn")))
    after = usage(contestant.pid)
    calls = requests(client) - asked
    versions = sorted(
        int(each["metadata"]["resourceVersion"])
        for each in client.list("pods", shapes.NAMESPACE)
        if each["metadata"]["name"].startswith("pod-") and each["spec"].get("nodeName")
    )
    assert len(versions) == count, f"{len(versions)} of {count} pods are bound"
    assert versions[0] > start
    seconds = trace.when(versions[-1]) - trace.when(versions[0])
    return {
        "podsPerSecond": (count - 1) / max(seconds, EVERY),
        "cpuMsPerPod": 1000 * (after.cpu_seconds - before.cpu_seconds) / count,
        "rssMiB": after.rss / 2**20,
        "requestsPerPod": calls / count,
        "seconds": seconds,
    }


def follow_churn(plane, trace: Trace, timeout: float, unbound, *, busy: bool) -> None:
    """With churn it is never quiet: pods are counted now and then instead."""
    if not busy:
        follow(plane, trace, timeout, lambda: unbound() == 0)
        return
    end, asked = time.monotonic() + timeout, time.monotonic()
    while time.monotonic() < end:
        trace.revisions.append(revision(plane))
        trace.times.append(time.monotonic())
        if trace.times[-1] - asked > 1:
            asked = trace.times[-1]
            if unbound() == 0:
                return
        time.sleep(EVERY)
    raise TimeoutError(f"not all pods are bound after {timeout:.0f} s")
