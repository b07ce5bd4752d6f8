"""A real control plane on 127.0.0.1: etcd and kube-apiserver with RBAC, and whatever clients need to reach it.

There is no kubelet and, unless a test starts it, no scheduler and no controller: nodes are plain objects, nothing collects garbage.
"""

import base64
import http.client
import json
import secrets
import shutil
import subprocess
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from controlplane.build import Unavailable, programs
from controlplane.client import ApiError, Client
from controlplane.process import Process, free_ports

DISABLED_ADMISSION = (
    "ServiceAccount",  # nothing makes the ServiceAccounts that pods would need
    "TaintNodesByCondition",  # nothing takes the not-ready taint off new nodes
    "StorageObjectInUseProtection",  # nothing takes the finalizers off volumes and claims
    "PodGroupProtection",  # as for volumes
)


@dataclass(frozen=True, slots=True)
class User:
    """One line of the API server's token file."""

    name: str
    groups: tuple[str, ...] = ()
    token: str = ""

    def line(self) -> str:
        return f'{self.token},{self.name},{self.name},"{",".join(self.groups)}"\n'


def user(name: str, *groups: str) -> User:
    return User(name, groups, secrets.token_hex(16))


class ControlPlane:
    """Keeps all it has in `folder`. `users` are known besides `admin` (of system:masters) and `system:kube-scheduler`.

    `flags` are added to the API server's command line, as are feature gates in `gates`; both as kube-apiserver reads them.
    """

    def __init__(self, folder: Path, users: Sequence[User] = (), flags: Sequence[str] = (), gates: str = ""):
        self.folder, self.flags, self.gates = folder, tuple(flags), gates
        self.users = {each.name: each for each in (user("admin", "system:masters"), user("system:kube-scheduler"), *users)}
        self.programs = programs()
        self.etcd_port, peer_port, self.port = free_ports(3)
        self.server = f"https://127.0.0.1:{self.port}"
        self.ca_file = folder / "certificates" / "apiserver.crt"  # the API server makes it at its first start
        self.etcd = Process(self.etcd_arguments(peer_port), folder / "etcd.log")
        self.apiserver = Process(self.apiserver_arguments(), folder / "kube-apiserver.log")
        self.others: list[Process] = []
        self.clients: list[Client] = []
        self.admin = self.client(self.users["admin"].token)

    # Life

    def start(self) -> "ControlPlane":
        """Returns when the API server is ready, about 3 s later."""
        try:
            self.write_credentials()
            self.etcd.start()
            self.etcd.await_ready(self.etcd_ready)
            self.start_apiserver()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        self.stop_others()
        for each in self.clients:
            each.close()
        self.apiserver.stop()
        self.etcd.stop()

    def stop_others(self) -> None:
        """Stops what `run` has started, the youngest first."""
        while self.others:
            self.others.pop().stop()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def start_apiserver(self) -> float:
        """On the same port with the same certificate and data as before; the seconds until it was ready."""
        self.apiserver.start()
        return self.apiserver.await_ready(self.apiserver_ready)

    def restart_apiserver(self, kill: bool = True) -> float:
        """Killed, or with `kill=False` stopped, and started again; the seconds until it was ready."""
        if kill:
            self.apiserver.kill()
        else:
            self.apiserver.stop(30)
        return self.start_apiserver()

    def run(self, arguments: list[str], name: str, env: dict[str, str] | None = None) -> Process:
        """Starts a further program, which ends with the control plane; its output goes to NAME.log."""
        process = Process(arguments, self.folder / f"{name}.log", env)
        self.others.append(process)
        process.start()
        return process

    def compact(self) -> None:
        """Forgets the past in etcd, so that lists and watches from older resource versions answer 410."""
        header = self.etcd_call("kv/range", {"key": base64.b64encode(b"a").decode()})["header"]
        self.etcd_call("kv/compaction", {"revision": header["revision"], "physical": True})

    # Access

    def client(self, token: str | None) -> Client:
        """Closed when the control plane stops."""
        self.clients.append(Client(self.server, self.ca_file, token))
        return self.clients[-1]

    def kubeconfig(self, token: str | None = None, name: str = "admin") -> Path:
        """The path of a kubeconfig for a token, or for the token of the user `name`."""
        token = token or self.users[name].token
        certificate = base64.b64encode(self.ca_file.read_bytes()).decode()
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "tests", "cluster": {"server": self.server, "certificate-authority-data": certificate}}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": name}}],
            "current-context": "tests",
        }
        path = self.folder / f"{name.replace(':', '-')}.kubeconfig"
        path.write_text(json.dumps(content))  # JSON is YAML
        path.chmod(0o600)
        return path

    def service_account_token(self, name: str, namespace: str = "default", seconds: int = 36_000) -> str:
        """A token of a ServiceAccount, from the TokenRequest API."""
        path = self.admin.resource("serviceaccounts").path(namespace, name, "token")
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": seconds}}
        return self.admin.request("POST", path, request)["status"]["token"]

    def service_account_kubeconfig(self, name: str, namespace: str = "default") -> Path:
        return self.kubeconfig(self.service_account_token(name, namespace), f"{namespace}-{name}")

    # How the programs are started

    def write_credentials(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        tokens = self.folder / "tokens.csv"
        tokens.write_text("".join(each.line() for each in self.users.values()))
        tokens.chmod(0o600)
        if not shutil.which("openssl"):
            raise Unavailable("openssl is not installed: there is no key to sign ServiceAccount tokens with")
        key = ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self.folder / "service-account.key"]
        subprocess.run(key, check=True, capture_output=True)

    def etcd_arguments(self, peer_port: int) -> list[str]:
        client, peer = f"http://127.0.0.1:{self.etcd_port}", f"http://127.0.0.1:{peer_port}"
        return [
            str(self.programs / "etcd"),
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            f"--quota-backend-bytes={8 * 1024**3}",
            "--log-level=warn",
            "--unsafe-no-fsync",
        ]

    def apiserver_arguments(self) -> list[str]:
        key = self.folder / "service-account.key"
        return [
            str(self.programs / "kube-apiserver"),
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",  # a loopback address is no endpoint of the kubernetes Service
            f"--secure-port={self.port}",
            f"--cert-dir={self.ca_file.parent}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--authorization-mode=RBAC",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--service-account-issuer=https://tests.example",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            f"--disable-admission-plugins={','.join(DISABLED_ADMISSION)}",
            "--delete-collection-workers=8",
            "--profiling=false",
            *([f"--feature-gates={self.gates}"] if self.gates else []),
            *self.flags,
        ]

    def etcd_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.etcd_port}/health", timeout=5) as answer:
                return json.load(answer)["health"] == "true"
        except OSError:
            return False

    def etcd_call(self, what: str, body):
        with urllib.request.urlopen(
            f"http://127.0.0.1:{self.etcd_port}/v3/{what}", json.dumps(body).encode(), timeout=60
        ) as answer:
            return json.load(answer)

    def apiserver_ready(self) -> bool:
        try:
            return self.admin.request("GET", "/readyz") == "ok"
        except (OSError, http.client.HTTPException, ApiError):
            return False
