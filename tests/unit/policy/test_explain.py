"""Explanations and simulations as Python gets them."""

from __future__ import annotations

import pytest

from stowplan import explain, load_cluster, load_policy, simulate
from stowplan.edge.notation import read_notation

POLICY = load_policy()
TEXT = """
node a cpu=4 mem=8Gi
node b cpu=2 mem=8Gi
pod waits cpu=1
pod shop/waits cpu=1
pod runs cpu=2 on=a
"""


@pytest.fixture
def cluster():
    return load_cluster(read_notation(TEXT))


def test_one_name_or_several(cluster):
    one = explain(POLICY, cluster, "default/waits")
    assert one.pods == ("default/waits",)
    assert one.to_json() == explain(POLICY, cluster, ["default/waits"]).to_json()
    assert len(explain(POLICY, cluster).to_json()["pods"]) == 2


def test_unknown_names_are_one_clear_error(cluster):
    with pytest.raises(KeyError) as caught:
        explain(POLICY, cluster, "default/wait")
    assert str(caught.value).startswith("there is no pod default/wait among 3")
    assert "did you mean default/waits" in str(caught.value)
    with pytest.raises(KeyError, match="2 pods are called waits"):
        explain(POLICY, cluster, ["waits"])


def test_a_pod_that_runs_is_judged_anew_and_put_back(cluster):
    (pod,) = explain(POLICY, cluster, ["default/runs"]).to_json()["pods"]
    assert pod["boundTo"] == "a"
    assert pod["best"] == ["a"]
    assert cluster.place_of("default/runs") == "a"
    assert "default/runs" not in cluster.pending


def test_analysis_only_on_demand(cluster):
    found = explain(POLICY, cluster, "default/waits")
    assert "requests" not in found.to_json()["pods"][0]
    analysed = found.to_json(analysis=True)["pods"][0]
    assert analysed["requests"] == {"cpu": "1"}
    assert analysed["margin"]["winner"] in ("a", "b")


def test_simulate_names_the_choices(cluster):
    with pytest.raises(ValueError, match="preemption is report or apply, not 'maybe'"):
        simulate(POLICY, cluster, preemption="maybe")
