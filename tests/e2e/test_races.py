"""What may happen between a decision and its Binding: the pod is another one, the answer is lost, somebody else was faster."""

import sys
from pathlib import Path

import pytest

from controlplane.objects import node, pod
from controlplane.waiting import eventually
from e2e.running import policy
from e2e.scenes import told

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("meddling.py")


@pytest.fixture
def meddled(run, tmp_path):
    """Starts a scheduler whose first Binding meets with an accident."""
    return lambda how: run(policy(), program=(sys.executable, str(SCRIPT), how, str(tmp_path)))


def place(client, name):
    return eventually(lambda: client.get("pods", name)["spec"].get("nodeName"))


def test_a_pod_that_was_recreated_is_decided_anew(cluster, meddled, tmp_path):
    """kubernetes#102761: the decision for the old pod must not be carried out on the new one."""
    client = cluster.admin
    client.create_all([node("small", capacity={"cpu": "1"}), node("large", capacity={"cpu": "8"})])
    client.create(pod("filler", nodeName="large", requests={"cpu": "6"}))  # the old pod goes to the small node, the new one cannot
    meddled("held")
    old = client.create(
        pod("web-0", schedulerName="stowplan", requests={"cpu": "100m"}, nodeSelector={"kubernetes.io/hostname": "small"})
    )
    eventually((tmp_path / "asked").exists)
    client.delete("pods", "web-0", grace=0)
    new = client.create(pod("web-0", schedulerName="stowplan", requests={"cpu": "2"}))
    (tmp_path / "go").touch()
    assert place(client, "web-0") == "large"
    assert client.get("pods", "web-0")["metadata"]["uid"] == new["metadata"]["uid"] != old["metadata"]["uid"]
    events = client.list("events.events.k8s.io", "default")
    assert {each["reason"] for each in events if each["regarding"]["uid"] == old["metadata"]["uid"]} <= {"FailedScheduling"}
    # what the old pod had taken is free again
    client.create(pod("fits", schedulerName="stowplan", requests={"cpu": "1"}, nodeSelector={"kubernetes.io/hostname": "small"}))
    assert place(client, "fits") == "small"


def test_a_binding_whose_answer_is_lost_is_no_failure(cluster, meddled):
    """keptn#2881, rke#350: the 409 of a second attempt is not told as FailedScheduling."""
    client = cluster.admin
    client.create_all([node("a"), node("b")])
    scheduler = meddled("unanswered")
    client.create(pod("web", schedulerName="stowplan"))
    where = place(client, "web")
    events = eventually(lambda: told(client, "stowplan"))
    assert events == {("web", "Normal", "Scheduled", "Binding", f"Successfully assigned default/web to {where}")}
    assert scheduler.samples("stowplan_bind_failures_total") == []


def test_a_pod_that_somebody_else_binds_is_theirs(cluster, meddled, tmp_path):
    client = cluster.admin
    client.create_all([node("small", capacity={"cpu": "1"}), node("large")])
    (tmp_path / "node").write_text("small")
    meddled("elsewhere")
    client.create(pod("web", schedulerName="stowplan", requests={"cpu": "600m"}, nodeSelector={"kubernetes.io/hostname": "large"}))
    assert place(client, "web") == "small"
    # the room is counted where the pod is, and no more where it was meant to go
    client.create(pod("whole", schedulerName="stowplan", requests={"cpu": "8"}))
    assert place(client, "whole") == "large"
    assert not {each for each in told(client, "stowplan") if each[2] == "FailedScheduling"}
