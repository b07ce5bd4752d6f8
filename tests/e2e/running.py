"""`stowplan run` as a process on the control plane of the tests, with the rights that deploy/ grants and no others."""

import http.client
import json
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from controlplane.build import programs
from controlplane.plane import ControlPlane
from controlplane.process import Process, Usage, free_ports

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
NAMESPACE, ACCOUNT = "stowplan-system", "stowplan"
LEASE = {"resourceName": "stowplan", "resourceNamespace": NAMESPACE}
"""the only one that deploy/role.yaml allows"""
PROGRAM = (Path(sys.executable).with_name("stowplan"),)
SAMPLE = re.compile(r"^(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def deploy(plane: ControlPlane) -> Path:
    """`kubectl apply -k deploy/`; the kubeconfig of its ServiceAccount."""
    kubectl = shutil.which("kubectl") or programs("kubectl") / "kubectl"
    command = [kubectl, f"--kubeconfig={plane.kubeconfig()}", "apply", "--kustomize", DEPLOY]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return plane.service_account_kubeconfig(ACCOUNT, NAMESPACE)


def policy(*profiles, elect: bool = False, **members):
    """A policy of the given profiles, or of one that has kube-scheduler's plugins and is named `stowplan`."""
    return {
        "apiVersion": "stowplan.io/v1alpha1",
        "kind": "SchedulerPolicy",
        "leaderElection": {"leaderElect": elect, **LEASE},
        "profiles": list(profiles) or [{"schedulerName": "stowplan"}],
        **members,
    }


class Stowplan:
    """A `stowplan run`; `told` is its policy, None for the one in deploy/, or a list of flags that say where it is."""

    def __init__(self, plane: ControlPlane, kubeconfig: Path, told=None, name: str = "stowplan", *, flags=(), program=PROGRAM):
        file = DEPLOY / "policy.yaml"
        if isinstance(told, dict):
            file = plane.folder / f"{name}.policy.json"
            file.write_text(json.dumps(told))
        [self.port] = free_ports(1)
        self.log = plane.folder / f"{name}.log"
        self.log.unlink(missing_ok=True)
        where = ["--kubeconfig", str(kubeconfig), "--bind-address", "127.0.0.1", "--port", str(self.port)]
        source = told if isinstance(told, list) else ["--policy", str(file)]
        command = [*program, "run", *source, *where, "--log-format", "json", *flags]
        self.forgiven, self.since = 0.0, ""
        self.process: Process = plane.run(command, name)

    # Asking it

    def fetch(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def answers(self, path: str) -> bool:
        try:
            return self.fetch(path)[0] == http.client.OK
        except (OSError, http.client.HTTPException):
            return False

    def await_ready(self, timeout: float = 60.0) -> float:
        return self.process.await_ready(lambda: self.answers("/readyz"), timeout)

    def samples(self, name: str) -> list[tuple[dict[str, str], float]]:
        """The series of one metric, as (labels, value)."""
        found = SAMPLE.finditer(self.fetch("/metrics")[1])
        return [(dict(LABEL.findall(each["labels"] or "")), float(each["value"])) for each in found if each["name"] == name]

    def leads(self) -> bool:
        try:
            return any(value == 1 for _, value in self.samples("leader_election_master_status"))
        except (OSError, http.client.HTTPException):
            return False

    def lines(self) -> list[dict]:
        """What it has logged; each line must be an object."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def usage(self) -> Usage:
        return self.process.usage()

    # What must be true of every run

    def denied(self) -> float:
        """How many requests were answered with 403."""
        return sum(value for labels, value in self.samples("rest_client_requests_total") if labels["code"] == "403")

    def forgive(self) -> None:
        """Denials until now do not count: an API server that has just started does not know any rights yet."""
        self.forgiven = self.denied()
        self.since = time.strftime("%Y-%m-%dT%H:%M:%S.999Z", time.gmtime())

    def check(self) -> None:
        """No verb was denied, nothing was raised. To be called while it runs, or after it has ended."""
        lines = self.lines()
        traces = [line for line in lines if "trace" in line]
        assert not traces, traces[:3]
        refused = [line for line in lines if "forbidden" in json.dumps(line).lower() and line["ts"] > self.since]
        assert not refused, refused[:5]
        if self.process.running():
            assert self.denied() == self.forgiven

    def stop(self, timeout: float = 20.0) -> int | None:
        """SIGTERM; the exit status."""
        return self.process.stop(timeout)
