"""Extenders are not asked offline, and every result says so."""

from __future__ import annotations

import json

import pytest
import yaml

GPU = "example.com/gpu"


@pytest.fixture
def extending(tmp_path):
    """Writes a configuration with some extenders; gives its path."""

    def write(*extenders):
        path = tmp_path / "scheduler.yaml"
        head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        path.write_text(head + yaml.safe_dump({"extenders": list(extenders)}))
        return path

    return write


def extender(url="http://x", **members):
    return {"urlPrefix": url} | members


@pytest.fixture
def cluster(dump, make):
    limits = {"requests": {GPU: "1"}, "limits": {GPU: "1"}}
    wanting = make.pod("gpu", containers=[{"name": "c", "resources": limits}])
    nodes = [make.node("n1", **{GPU: "1"}), make.node("n2")]
    return dump(*nodes, make.pod("plain", "1"), wanting, make.pod("gated", schedulingGates=[{"name": "g"}]))


def outcome(answer):
    content = json.loads(answer.out)
    return content.pop("extenders", None), content


@pytest.mark.parametrize("verb", ["simulate", "explain"])
def test_an_extender_for_all_pods_is_left_out_of_every_verdict(stowplan, extending, cluster, verb):
    config = extending(extender(filterVerb="filter", prioritizeVerb="prioritize", weight=2))
    pods = ["plain", "gpu", "gated"] if verb == "explain" else []
    arguments = [verb, "--cluster", cluster, *pods, "-o", "json"]
    extenders, rest = outcome(stowplan(*arguments, "--policy", config))
    assert extenders == [
        {
            "urlPrefix": "http://x",
            "place": f"{config}:4",
            "verbs": ["filter", "prioritize"],
            "podsWithoutIt": ["web/plain", "web/gpu"],
        }
    ]
    assert (None, rest) == outcome(stowplan(*arguments))  # nothing else changes


def test_managed_resources_concern_those_who_request_them(stowplan, extending, cluster):
    config = extending(extender(filterVerb="f", managedResources=[{"name": GPU}]))
    extenders, _ = outcome(stowplan("simulate", "--policy", config, "--cluster", cluster, "-o", "json"))
    assert extenders[0]["podsWithoutIt"] == ["web/gpu"]
    assert extenders[0]["managedResources"] == [GPU]
    table = stowplan("simulate", "--policy", config, "--cluster", cluster)
    line = f"without extender http://x ({config}:4) for 1 of 2 pods, which request {GPU}: which nodes it rejects\n"
    assert line in table.out
    assert "without extender" in stowplan("explain", "--policy", config, "--cluster", cluster, "gpu").out
    assert "without extender" not in stowplan("explain", "--policy", config, "--cluster", cluster, "plain").out


def test_an_extender_that_only_binds_changes_no_verdict(stowplan, extending, cluster):
    config = extending(extender(bindVerb="bind"))
    assert outcome(stowplan("simulate", "--policy", config, "--cluster", cluster, "-o", "json"))[0] is None
    answer = stowplan("simulate", "--policy", config, "--cluster", cluster)
    assert "without extender" not in answer.out
    assert f"{config}:4" in answer.err


def test_each_extender_has_its_line(stowplan, extending, cluster):
    config = extending(extender("http://x", filterVerb="f"), extender("http://y", preemptVerb="p", prioritizeVerb="s", weight=1))
    lines = [
        line for line in stowplan("explain", "--policy", config, "--cluster", cluster, "plain").out.splitlines() if "//" in line
    ]
    assert lines == [
        f"without extender http://x ({config}:4): which nodes it rejects",
        f"without extender http://y ({config}:6): how it scores them, which victims it spares",
    ]


def test_resources_that_the_scheduler_ignores_are_not_checked(stowplan, extending, dump, make):
    limits = {"requests": {GPU: "1"}, "limits": {GPU: "1"}}
    objects = dump(make.node("n1"), make.pod("gpu", containers=[{"name": "c", "resources": limits}]))
    managed = [{"name": GPU, "ignoredByScheduler": True}]
    answer = stowplan(
        "simulate", "--policy", extending(extender(filterVerb="f", managedResources=managed)), "--cluster", objects, "-o", "json"
    )
    extenders, content = outcome(answer)
    assert content["sequence"][0]["node"] == "n1"
    assert extenders[0]["podsWithoutIt"] == ["web/gpu"]
    assert stowplan("simulate", "--cluster", objects).code == 1
