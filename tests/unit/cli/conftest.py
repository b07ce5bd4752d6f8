"""Objects and dumps that the tests of the command line share, and the command itself."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stowplan.cli.main import run
from stowplan.edge.logs import ROOT


class Objects:
    """Kubernetes objects with the members that matter here."""

    @staticmethod
    def node(name, cpu="4", memory="16Gi", *, labels=None, taints=None, images=None, **resources) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name} | (labels or {})},
            "spec": {"taints": taints or []},
            "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": "110"} | resources, "images": images or []},
        }

    @staticmethod
    def pod(name, cpu=None, memory=None, on=None, **spec) -> dict[str, Any]:
        requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
        container = {"name": "main", "image": "app:1", "resources": {"requests": requests}}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "web", "labels": {"app": "d"}},
            "spec": {"schedulerName": "default-scheduler", "containers": [container], "nodeName": on or ""} | spec,
        }


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """Standard output with runs of spaces as one, so that tests need no column widths."""
        return "\n".join(" ".join(line.split()) for line in self.out.splitlines())


@pytest.fixture
def make() -> Objects:
    return Objects()


@pytest.fixture
def dump(tmp_path):
    """Writes a dump of some objects, and unless it is to be incomplete of the Service that every cluster has; gives its path."""

    def write(*objects: dict[str, Any], complete: bool = True) -> Path:
        path = tmp_path / "dump.json"
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "kubernetes", "namespace": "default"}, "spec": {}}
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*objects, *([service] if complete else [])]}))
        return path

    return write


@pytest.fixture
def policy(tmp_path):
    """Writes a configuration of one profile; gives its path."""

    def write(profile: dict[str, Any]) -> Path:
        path = tmp_path / "scheduler.yaml"
        head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
        path.write_text(json.dumps(head | {"profiles": [profile]}))
        return path

    return write


@pytest.fixture
def stowplan(capsys):
    """Runs the command in this process."""

    def call(*arguments: object) -> Answer:
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


@pytest.fixture
def own_logging():
    """Logging may be set up; what was before is restored."""
    root, ours = logging.getLogger(), logging.getLogger(ROOT)
    before, severity, own = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:] = before
    root.setLevel(severity)
    ours.setLevel(own)
    logging.captureWarnings(False)
