"""kube-scheduler beside the system under test, and kube-controller-manager where a test wants Deployments or garbage collection."""

import http.client
import json
import ssl

from controlplane.build import programs
from controlplane.plane import ControlPlane
from controlplane.process import Process, free_ports

API_VERSION = "kubescheduler.config.k8s.io/v1"


def start_scheduler(plane: ControlPlane, config=None, name: str = "kube-scheduler", gates: str = "") -> "Scheduler":
    """kube-scheduler with a KubeSchedulerConfiguration; returns when it is ready.

    What the configuration does not say: no leader election, a client that does not throttle, the rights of
    system:kube-scheduler. `name` is that of its log, for several at once.
    """
    told = {
        "apiVersion": API_VERSION,
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        **(config or {}),
    }
    connection = {"kubeconfig": str(plane.kubeconfig(name="system:kube-scheduler")), "qps": 5000, "burst": 5000}
    told["clientConnection"] = connection | told.get("clientConnection", {})
    path, [port] = plane.folder / f"{name}.json", free_ports(1)
    path.write_text(json.dumps(told))
    arguments = [
        str(plane.programs / "kube-scheduler"),
        f"--config={path}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={plane.folder / name}",
        "--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics",
        *([f"--feature-gates={gates}"] if gates else []),
    ]
    scheduler = Scheduler(plane.run(arguments, name), port)
    scheduler.process.await_ready(scheduler.ready)
    return scheduler


class Scheduler:
    """A running kube-scheduler."""

    def __init__(self, process: Process, port: int):
        self.process, self.port = process, port

    def fetch(self, path: str) -> tuple[int, str]:
        unverified = ssl._create_unverified_context()  # noqa: S323 -- its certificate lives in its memory alone
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=unverified)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def ready(self) -> bool:
        try:
            return self.fetch("/readyz")[0] == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False

    def metrics(self) -> str:
        """In Prometheus' text format."""
        return self.fetch("/metrics")[1]

    def stop(self) -> None:
        self.process.stop()


def start_controllers(plane: ControlPlane, *controllers: str) -> Process:
    """kube-controller-manager with the named controllers only, `deployment-controller` and the like.

    It is built on first use, about two minutes more.
    """
    arguments = [
        str(programs("kube-controller-manager") / "kube-controller-manager"),
        f"--kubeconfig={plane.kubeconfig()}",
        f"--controllers={','.join(controllers)}",
        "--leader-elect=false",
        "--kube-api-qps=1000",
        "--kube-api-burst=1000",
        "--secure-port=0",
    ]
    return plane.run(arguments, "kube-controller-manager")
