"""The programs of a real control plane: etcd, kube-apiserver and kube-scheduler, built from the Go module beside this file.

A cold build takes about eight minutes of two cores, so the programs are kept in `build/controlplane/HASH` for as long as go.mod,
go.sum and the mains are the same. `python -m controlplane.build [NAME...]` (with `tests` on the path) builds and prints the folder;
it exits 2 where they cannot be built.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

SOURCE = Path(__file__).parent
BUILD = SOURCE.parents[1] / "build" / "controlplane"
VERSION = "v1.37.2"
NEEDED = ("etcd", "kube-apiserver", "kube-scheduler")
PACKAGES = {
    "etcd": "./etcd",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
}
GO = (1, 26)


class Unavailable(Exception):  # noqa: N818 -- a reason to skip, not a failure
    """The control plane cannot be had on this machine; the text says why."""


def fingerprint() -> str:
    digest = hashlib.sha256(VERSION.encode())
    for path in sorted([SOURCE / "go.mod", SOURCE / "go.sum", *SOURCE.glob("*/*.go")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def folder() -> Path:
    return BUILD / fingerprint()


def missing(names=NEEDED) -> list[str]:
    return [name for name in names if not (folder() / name).is_file()]


def require_go() -> None:
    """Raises `Unavailable` unless Go is installed and new enough."""
    if not shutil.which("go"):
        raise Unavailable("go is not installed: kube-apiserver and kube-scheduler cannot be built")
    told = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=True, cwd=SOURCE.root).stdout
    version = re.match(r"go(\d+)\.(\d+)", told)
    if version and (int(version[1]), int(version[2])) < GO:
        raise Unavailable(f"{told.strip()} is installed, but kube-apiserver and kube-scheduler need Go {GO[0]}.{GO[1]}")


def programs(*names: str) -> Path:
    """The folder that holds the needed programs and those named besides; builds what is missing. Raises `Unavailable`.

    All are built by one command, so that what they share is compiled once.
    """
    wanted, target = (*NEEDED, *names), folder()
    if not missing(wanted):
        return target
    require_go()
    target.mkdir(parents=True, exist_ok=True)
    with locked(target / ".lock"):  # another worker may be building the same
        lacking = missing(wanted)
        if lacking:
            compile_into(target, lacking)
    return target


def compile_into(target: Path, names: list[str]) -> None:
    # Clients read the API server's version, which is set at link time only.
    flags = ["-ldflags", f"-s -w -X k8s.io/component-base/version.gitVersion={VERSION}"]
    partial = target / "partial"
    command = ["go", "build", "-mod=readonly", "-buildvcs=false", *flags, "-o", f"{partial}/"]
    subprocess.run([*command, *(PACKAGES[name] for name in names)], cwd=SOURCE, check=True)
    for name in names:
        (partial / name).replace(target / name)
    shutil.rmtree(partial)


@contextlib.contextmanager
def locked(path: Path):
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def main() -> int:
    lacking, begin = missing((*NEEDED, *sys.argv[1:])), time.monotonic()
    if lacking and shutil.which("go"):
        print(f"building {', '.join(lacking)} {VERSION}: up to 10 minutes on 2 cores when nothing is cached", file=sys.stderr)
    try:
        target = programs(*sys.argv[1:])
    except Unavailable as reason:
        print(reason, file=sys.stderr)
        return 2
    if lacking:
        print(f"built in {time.monotonic() - begin:.0f} s", file=sys.stderr)
    print(os.path.relpath(target))
    return 0


if __name__ == "__main__":
    sys.exit(main())
