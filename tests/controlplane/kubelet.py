"""A stand-in for the kubelets of all nodes: bound pods become Running and Ready, deleted ones go away."""

import datetime as dt

from controlplane.client import Client
from controlplane.standin import StandIn

READY = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")


def every(_pod) -> bool:
    return True


class Kubelet(StandIn):
    """`runs(pod)` says whether a bound pod becomes Running; every one unless told otherwise.

    `start_seconds` pass before a bound pod runs, `stop_seconds` before a deleted one is gone, whatever its grace period.
    """

    def __init__(self, client: Client, runs=every, start_seconds: float = 0.0, stop_seconds: float = 0.0):
        super().__init__(client)
        self.runs, self.start_seconds, self.stop_seconds = runs, start_seconds, stop_seconds
        self.begun: set[tuple[str, str]] = set()  # what was done, or is being done, to which pod
        self.follow("pods", self.see, fieldSelector="spec.nodeName!=")

    def see(self, event: str, pod) -> None:
        uid = pod["metadata"]["uid"]
        if event == "DELETED":
            self.begun -= {("run", uid), ("remove", uid)}
        elif "deletionTimestamp" in pod["metadata"]:
            self.begin("remove", self.remove, pod, self.stop_seconds)
        elif pod["status"]["phase"] == "Pending" and self.runs(pod):
            self.begin("run", self.run, pod, self.start_seconds)

    def begin(self, what: str, function, pod, delay: float) -> None:
        key = (what, pod["metadata"]["uid"])
        if key not in self.begun:
            self.begun.add(key)
            self.submit(function, pod, delay=delay)

    def remove(self, pod) -> None:
        meta = pod["metadata"]
        self.client.delete("pods", meta["name"], meta["namespace"], grace=0, uid=meta["uid"])

    def run(self, pod) -> None:
        """Makes a bound pod Running and Ready; the pod's other conditions stay."""
        self.write(pod, running(pod, dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")))

    def finish(self, pod, phase: str = "Succeeded") -> None:
        """Ends a pod as Succeeded or Failed."""
        self.write(pod, {"phase": phase, "conditions": [{"type": "Ready", "status": "False", "reason": "PodCompleted"}]})

    def write(self, pod, status) -> None:
        meta = pod["metadata"]
        patch = {"metadata": {"uid": meta["uid"]}, "status": status}  # another pod of that name answers 409
        self.client.patch("pods", meta["name"], patch, meta["namespace"], subresource="status", kind="strategic")


def running(pod, now: str):
    """The status that kubelet writes when all containers are up; `now` in RFC 3339."""
    containers = [
        {
            "name": each["name"],
            "image": each["image"],
            "imageID": "",
            "ready": True,
            "started": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": now}},
        }
        for each in pod["spec"]["containers"]
    ]
    conditions = [{"type": name, "status": "True", "lastTransitionTime": now} for name in READY]
    return {"phase": "Running", "startTime": now, "conditions": conditions, "containerStatuses": containers}
