"""Paths that are no files, or hold no end: read with a bound, and refused with a reason."""

from __future__ import annotations

import json
import os
import threading
import time

import pytest

from stowplan import ClusterError, PolicyError, load_cluster, load_policy
from stowplan.edge import configurations, dump
from stowplan.edge.stowtest import run_file

CONFIGURATION = "kubescheduler.config.k8s.io"
POLICY = f"apiVersion: {CONFIGURATION}/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture
def pipe(tmp_path, monkeypatch):
    monkeypatch.setattr(configurations, "UNWRITTEN", 0.2)
    monkeypatch.setattr(configurations, "SILENT", 0.5)
    path = tmp_path / "pipe.yaml"
    os.mkfifo(path)
    return path


def writing(path, *pieces, pause=0.0):
    def write():
        with path.open("w") as stream:
            for piece in pieces:
                time.sleep(pause)
                stream.write(piece)
                stream.flush()

    thread = threading.Thread(target=write, daemon=True)
    thread.start()


def test_a_policy_without_an_end():
    with pytest.raises(PolicyError, match="/dev/zero: larger than 8 MiB"):
        load_policy("/dev/zero")


def test_a_cluster_without_an_end(tmp_path, monkeypatch):
    with pytest.raises(ClusterError, match="/dev/zero: this is binary data"):
        load_cluster("/dev/zero")
    monkeypatch.setattr(dump, "LARGEST", 3 << 20)
    large = tmp_path / "large.yaml"
    large.write_bytes(b"# nothing\n" * (600 << 10))
    with pytest.raises(ClusterError, match=r"large.yaml: larger than"):
        load_cluster(large)


def test_a_list_that_is_read_piece_by_piece_may_be_of_any_size(tmp_path, monkeypatch):
    monkeypatch.setattr(dump, "LARGEST", 3 << 20)
    node = {"kind": "Node", "metadata": {"name": "", "annotations": {"x": "y" * 4000}}}
    items = [node | {"metadata": {**node["metadata"], "name": f"n{number}"}} for number in range(1500)]
    path = tmp_path / "list.json"
    path.write_text(json.dumps({"kind": "List", "items": items}, indent=4))
    assert path.stat().st_size > 4 << 20
    assert len(load_cluster(path).nodes) == 1500


@pytest.mark.parametrize("pause", [0.0, 0.3])
def test_a_pipe_is_read_to_its_end(pipe, pause):
    """As of `<(helm template ...)`, which may take its time."""
    writing(pipe, POLICY, "profiles: [{schedulerName: ", "a}]\n", pause=pause)
    assert list(load_policy(pipe).profiles) == ["a"]
    writing(pipe, "kind: Node\n", "metadata: {name: n}\n", pause=pause)
    assert len(load_cluster(pipe).nodes) == 1


def test_a_pipe_that_nobody_writes_to(pipe):
    with pytest.raises(PolicyError, match=r"this is a pipe, and for 0.2 s nothing has come out of it"):
        load_policy(pipe)
    with pytest.raises(ClusterError, match=r"this is a pipe, and for 0.2 s nothing has come out of it"):
        load_cluster(pipe)
    (broken,) = run_file(pipe).broken
    assert "this is a pipe" in broken.message


def test_a_pipe_that_falls_silent(pipe):
    writing(pipe, POLICY, "profiles: []", pause=0.1)
    held = os.open(pipe, os.O_RDWR)
    with pytest.raises(PolicyError, match=r"this is a pipe, and for 0.5 s nothing has come out of it"):
        load_policy(pipe)
    os.close(held)


def test_a_pipe_in_a_folder_of_a_cluster_is_passed_over(pipe):
    (pipe.parent / "nodes.yaml").write_text("kind: Node\nmetadata: {name: n}\n")
    assert len(load_cluster(pipe.parent).nodes) == 1


# One meaning of a policy: what commands take, the Python interface and tests of policies take


@pytest.fixture
def people(tmp_path):
    """Policies as people have them."""
    inner = POLICY.replace("\n", "\n    ")
    wrapped = f"kind: ConfigMap\napiVersion: v1\nmetadata: {{name: c}}\ndata:\n  a.yaml: |\n    {inner}"
    texts = {
        "old": f"apiVersion: {CONFIGURATION}/v1beta3\nkind: KubeSchedulerConfiguration\nprofiles: [{{schedulerName: x}}]\n",
        "foreign": f"{POLICY}profiles: [{{schedulerName: x, plugins: {{filter: {{enabled: [{{name: Coscheduling}}]}}}}}}]\n",
        "wrapped": f"{wrapped}profiles: [{{schedulerName: x}}]\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", ["old", "foreign", "wrapped"])
def test_a_policy_as_people_have_it(people, name):
    path = people / f"{name}.yaml"
    assert list(load_policy(path, strict=False).profiles) == ["x"]
    with pytest.raises(PolicyError):
        load_policy(path)
    test = people / f"{name}.stowtest.yaml"
    cluster = "node n1 cpu=4\n  pod p cpu=1 scheduler=x"
    test.write_text(
        f"policy: {path.name}\ncluster: |\n  {cluster}\ntests:\n- {{expect: {{node: n1}}}}\n"
        "- {args: {NodeResourcesFit: {ignoredResources: [a]}}, expect: {node: n1}}\n"
    )
    report = run_file(test)
    assert (report.broken, [result.failures for result in report.results]) == ([], [[], []])


def test_a_document_means_what_its_file_means():
    document = {
        "apiVersion": f"{CONFIGURATION}/v1beta3",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"filter": {"enabled": [{"name": "Coscheduling"}]}}}],
    }
    with pytest.raises(PolicyError):
        load_policy(document)
    found = load_policy(document, strict=False)
    assert list(found.profiles) == ["default-scheduler"]
    assert any("Coscheduling" in each.message for each in found.warnings)
