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


def test_which_keys_there_are():
    store = load_cluster(read_notation("node n cpu=4 mem=8Gi\npod fits cpu=1\npod big cpu=50\npod gated cpu=1 gates=x\n"))
    fits, big, gated = explain(None, store).to_json(analysis=True)["pods"]
    assert {"best", "feasible", "requests"} <= fits.keys()
    assert not {"margin", "message", "needs"} & fits.keys()
    assert {"infeasible", "message", "needs", "requests"} <= big.keys()
    assert not {"margin", "best", "flips"} & big.keys()
    assert gated.keys() == {"pod", "profile", "skipped", "preEnqueue", "ifUngated"}


@pytest.mark.parametrize("verb", [explain, simulate])
def test_what_is_handed_over_unloaded_is_a_clear_error(cluster, verb):
    for found in ("sp.yaml", {"kind": "x"}):
        with pytest.raises(TypeError, match="load it with load_policy"):
            verb(found, cluster)
    for found in ("dump.json", [], None):
        with pytest.raises(TypeError, match="load it with load_cluster"):
            verb(None, found)
    assert verb(None, cluster).to_json() == verb(POLICY, cluster).to_json()


def test_reprs_are_short(cluster):
    assert repr(explain(POLICY, cluster)) == "<Explanation of 2 pods on 2 nodes: default/waits, shop/waits>"
    assert repr(simulate(POLICY, cluster)).startswith("<Simulation of 2 pending pods on 2 nodes: ")
    assert repr(POLICY) == "<Policy with default-scheduler>"
