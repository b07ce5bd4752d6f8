from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest
import yaml

SAMPLE = Path(__file__).parents[3] / "profiles" / "sample" / "cluster.yaml"
PROFILES = sorted(path for path in SAMPLE.parents[1].glob("*.yaml") if not path.name.endswith(".stowtest.yaml"))
NO_TAINTS = {"plugins": {"multiPoint": {"disabled": [{"name": "TaintToleration"}]}}}
FULL_FIRST = {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}]}
TAINT = [{"key": "team", "value": "x", "effect": "NoSchedule"}]


@pytest.fixture
def tainted(dump, make):
    """A pod that only the tainted node has room for."""
    return dump(make.node("n1", taints=TAINT), make.node("n2", "1"), make.pod("p", "2"))


@pytest.mark.parametrize("profile", PROFILES, ids=lambda path: path.stem)
def test_a_policy_does_not_differ_from_itself(stowplan, profile):
    answer = stowplan("diff", profile, profile, "--cluster", SAMPLE)
    assert answer.code == 0, answer.out
    assert answer.out.startswith("all 12 pending pods fare alike\n")
    assert "running pods that were judged would fare alike" in answer.out
    assert "REQUESTED" not in answer.out


@pytest.mark.parametrize("profile", PROFILES, ids=lambda path: path.stem)
def test_both_sides_are_what_simulate_says(stowplan, profile):
    found = json.loads(stowplan("diff", "default", profile, "--cluster", SAMPLE, "-o", "json", "--running", "no").out)
    differing = {}
    sides = [json.loads(stowplan("simulate", "--cluster", SAMPLE, "-o", "json", *more).out) for more in ((), ("--policy", profile))]
    for side, simulated in zip(("old", "new"), sides, strict=True):
        assert found[side]["summary"] == simulated["summary"]
        nodes = {step["pod"]: step.get("node") for step in simulated["sequence"]}
        for case in found["pods"]:
            assert case[side].get("node") == nodes[case["pod"]]
        differing[side] = nodes
        for name, amounts in simulated["requested"]["total"].items():
            assert found["requested"]["total"][name][side] == amounts["after"]
            assert found["requested"]["total"][name]["now"] == amounts["before"]
    assert {key for key in differing["old"] if differing["old"][key] != differing["new"][key]} == {
        case["pod"] for case in found["pods"] if case["change"] != "otherReason"
    }
    assert found["summary"]["same"] == found["summary"]["pending"] - len(found["pods"])


def test_margins_and_swings_add_up(stowplan, policy):
    found = json.loads(stowplan("diff", "default", policy(FULL_FIRST), "--cluster", SAMPLE, "-o", "json").out)
    scored = 0
    for case in found["pods"]:
        for side in ("old", "new"):
            place = case["nodes"][case[side]["node"]][side]
            assert place["total"] == case[side]["score"] == sum(score["weighted"] for score in place["scores"].values())
        pair = [case["nodes"][case[side]["node"]] for side in ("old", "new")]
        if all("total" in node[side] for node in pair for side in ("old", "new")):
            scored += 1
            leads = {side: pair[1][side]["total"] - pair[0][side]["total"] for side in ("old", "new")}
            assert leads["old"] <= 0 <= leads["new"]
            change = sum((swing["new"] or 0) - (swing["old"] or 0) for swing in case["swings"])
            assert change == leads["new"] - leads["old"]
    assert scored >= 4


def test_newly_placed_and_newly_pending(stowplan, tainted, policy):
    lax = policy(NO_TAINTS)
    placed = stowplan("diff", "default", lax, "--cluster", tainted)
    assert placed.code == 1
    assert placed.out.startswith("1 of 1 pending pods fares differently: 1 newly placed\n")
    assert "web/p n1 " in placed.words
    assert "TaintToleration: node(s) had untolerated taint(s)" in placed.words.partition("NEWLY PLACED")[2]
    pending = stowplan("diff", lax, "default", "--cluster", tainted)
    assert pending.code == 1
    assert "1 newly pending" in pending.out
    assert "web/p n1 TaintToleration: node(s) had untolerated taint(s)" in pending.words
    assert "  0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s)." in pending.out


def test_a_move_names_the_plugin_and_the_weight(stowplan, dump, make, policy):
    nodes = [make.node("n1", labels={"disk": "ssd"}), make.node("n2")]
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    prefers = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}}
    cluster = dump(*nodes, make.pod("w", "3", "12Gi", on="n1"), make.pod("p", "1", affinity=prefers))
    weak = policy({"plugins": {"score": {"disabled": [{"name": "NodeAffinity"}]}}})
    answer = stowplan("diff", "default", weak, "--cluster", cluster, "--running", "no")
    assert "web/p n1 n2 " in answer.words
    assert "NodeAffinity -200 -> none" in answer.words
    back = stowplan("diff", weak, "default", "--cluster", cluster, "--running", "no").words
    assert "web/p n2 n1 " in back
    assert "NodeAffinity none -> +200" in back


def test_weights_are_told_old_and_new(stowplan, dump, make, tmp_path):
    cluster = dump(make.node("n1"), make.node("n2"), make.pod("w", "1", "1Gi", on="n1"), make.pod("p", "1", "1Gi"))
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    paths = []
    for weight in (1, 7):
        score = {"score": {"enabled": [{"name": "NodeResourcesFit", "weight": weight}]}}
        path = tmp_path / f"w{weight}.yaml"
        path.write_text(yaml.safe_dump(head | {"profiles": [{"plugins": score, **FULL_FIRST}]}))
        paths.append(path)
    assert stowplan("diff", *paths, "--cluster", cluster).code == 0
    answer = stowplan("diff", "default", paths[1], "--cluster", cluster)
    assert "web/p n2 n1 " in answer.words
    assert "(weight 1 -> 7)" in answer.out


def test_what_follows_only_from_earlier_pods(stowplan, dump, make, policy):
    nodes = [make.node("n1", "4"), make.node("n2", "3")]
    pods = [make.pod("w", "2", "4Gi", on="n1"), make.pod("p1", "2", "2Gi", priority=10), make.pod("p2", "2", "2Gi")]
    found = json.loads(stowplan("diff", "default", policy(FULL_FIRST), "--cluster", dump(*nodes, *pods), "-o", "json").out)
    assert [(case["pod"], case["cause"]) for case in found["pods"]] == [("web/p1", "policy"), ("web/p2", "earlierPods")]
    assert found["pods"][1]["nodes"]["n1"]["new"]["refused"]["reasons"] == ["Insufficient cpu"]


def test_another_reason_is_a_difference(stowplan, dump, make, policy):
    cluster = dump(make.node("n1", "1", taints=TAINT), make.pod("p", "2"))
    answer = stowplan("diff", "default", policy(NO_TAINTS), "--cluster", cluster)
    assert answer.code == 1
    assert "1 pending for another reason" in answer.out
    said = answer.words.partition("PENDING AS BEFORE, FOR ANOTHER REASON\n")[2].splitlines()
    assert said[0] == "web/p"
    assert said[1].startswith("old: 0/1 nodes are available: 1 node(s) had untolerated taint(s).")
    assert said[2].startswith("new: 0/1 nodes are available: 1 Insufficient cpu.")


def test_a_profile_that_is_gone_leaves_its_pods_pending(stowplan, dump, make, policy):
    cluster = dump(make.node("n1"), make.pod("p", "1"))
    answer = stowplan("diff", "default", policy({"schedulerName": "other"}), "--cluster", cluster)
    assert answer.code == 1
    assert 'no profile serves "default-scheduler"' in answer.out


def test_running_pods_are_counted_by_workload(stowplan, dump, make, policy):
    def replica(name, on):
        pod = make.pod(name, "1", "4Gi", on=on)
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "api-5d", "uid": "u", "controller": True}
        pod["metadata"] |= {"labels": {"app": "d", "pod-template-hash": "5d"}, "ownerReferences": [owner]}
        return pod

    static = make.pod("kubelet", "1", on="n1")
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "n", "controller": True}
    static["metadata"]["ownerReferences"] = [owner]
    cluster = dump(make.node("n1"), make.node("n2"), replica("a", "n1"), replica("b", "n1"), static)
    new = policy(FULL_FIRST)
    answer = stowplan("diff", "default", new, "--cluster", cluster)
    assert answer.code == 1
    assert answer.out.startswith("all 0 pending pods fare alike\n")
    assert "RUNNING PODS, EACH SCHEDULED ANEW: 2 OF 2 WOULD FARE DIFFERENTLY" in answer.out
    assert "web/Deployment/api 2 2 a: n2 -> n1, " in answer.words
    assert stowplan("diff", "default", new, "--cluster", cluster, "--running", "no").code == 0


def test_utilisation_by_zone_names_what_differs(stowplan, dump, make, policy):
    zone = "topology.kubernetes.io/zone"
    nodes = [make.node(f"n{i}", labels={zone: "a" if i < 3 else "b"}) for i in (1, 2, 3)]
    bare = make.node("n4", "1")
    pods = [make.pod("w", "2", "8Gi", on="n3"), make.pod("p", "1", "4Gi", topologySpreadConstraints=[])]
    cluster = dump(*nodes, bare, *pods)
    answer = stowplan("diff", "default", policy(FULL_FIRST), "--cluster", cluster, "--running", "no")
    zones = answer.words.partition("REQUESTED BY ZONE, OLD -> NEW\n")[2].splitlines()
    assert zones[1:3] == ["a 12% -> 0% 12% -> 0% 1 -> 0 of 220", "b 50% -> 75% 50% -> 75% 1 -> 2 of 110"]
    by_node = answer.words.partition("REQUESTED BY NODE, OLD -> NEW\n")[2].splitlines()
    assert [line.split()[0] for line in by_node[1:4]] == ["n1", "n3", "TOTAL"]
    found = json.loads(stowplan("diff", "default", policy(FULL_FIRST), "--cluster", cluster, "-o", "json").out)["requested"]
    assert list(found["zones"]) == ["a", "b", ""]
    assert found["zones"]["b"]["cpu"] == {"now": "2", "old": "2", "new": "3", "allocatable": "4"}
    assert list(found["nodes"]) == ["n1", "n2", "n3", "n4"]


def test_documents(stowplan, tainted, policy):
    new = policy(NO_TAINTS)
    answer = stowplan("diff", "default", new, "--cluster", tainted, "-o", "json")
    found = json.loads(answer.out)
    assert answer.code == 1
    assert (found["apiVersion"], found["kind"], found["differs"]) == ("stowplan.io/v1alpha1", "PolicyDiff", True)
    assert (found["old"]["policy"], found["new"]["policy"]) == ("kube-scheduler's defaults", str(new))
    assert "TaintToleration" in found["old"]["profiles"]["default-scheduler"]["filter"]
    assert "TaintToleration" not in found["new"]["profiles"]["default-scheduler"]["filter"]
    assert yaml.safe_load(stowplan("diff", "default", new, "--cluster", tainted, "-o", "yaml").out) == found


def test_the_page_goes_to_a_file_or_to_standard_output(stowplan, tainted, policy, tmp_path):
    new, page = policy(NO_TAINTS), tmp_path / "diff.html"
    answer = stowplan("diff", "default", new, "--cluster", tainted, "--html", page)
    assert answer.code == 1
    assert "NEWLY PLACED" in answer.out
    assert stowplan("diff", "default", new, "--cluster", tainted, "-o", "html").out == page.read_text(encoding="utf-8")
    assert stowplan("diff", "default", new, "--cluster", tainted, "--html", tmp_path / "none" / "x.html").code == 3


def test_a_policy_from_standard_input(stowplan, tainted, policy, monkeypatch):
    text = policy(NO_TAINTS).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    answer = stowplan("diff", "default", "-", "--cluster", tainted)
    assert answer.code == 1
    assert "NEW standard input: 1 placed" in answer.out
    twice = stowplan("diff", "-", "-", "--cluster", tainted)
    assert (twice.code, "can be read once" in twice.err) == (2, True)
    assert stowplan("diff", "default", "-", "--cluster", "-").code == 2


def test_wrong_input(stowplan, tainted, tmp_path):
    assert stowplan("diff", "default", tmp_path / "missing.yaml", "--cluster", tainted).code == 3
    assert stowplan("diff", "default", "--cluster", tainted).code == 2
    assert stowplan("diff", "default", "", "--cluster", tainted).code == 2


def test_rules_that_read_annotations_see_those_of_running_pods(stowplan, dump, make, tmp_path):
    running = make.pod("w", "1", on="n1")
    running["metadata"]["annotations"] = {"team": "x"}
    cluster = dump(make.node("n1"), make.node("n2"), running)
    new = tmp_path / "rules.yaml"
    rule = {"name": "own", "filter": 'node.name != "n1" || pod.metadata.annotations[?"team"].orValue("") != "x"'}
    new.write_text(
        json.dumps(
            {
                "apiVersion": "stowplan.io/v1alpha1",
                "kind": "SchedulerPolicy",
                "profiles": [{"schedulerName": "default-scheduler", "rules": [rule]}],
            }
        )
    )
    answer = stowplan("diff", "default", new, "--cluster", cluster)
    assert answer.code == 1, answer.err
    assert "web/Pod/w 1 1 w: n1 -> n2, n1 refused: own" in answer.words


def test_counts_add_up_and_every_pending_pod_is_listed(stowplan, dump, make, policy):
    taints = [{"key": "k", "effect": "NoSchedule"}]
    pinned = {"nodeSelector": {"kubernetes.io/hostname": "n1"}}
    nodes = [make.node("n1", taints=taints), make.node("n2", "8")]
    pods = [make.pod("moves", **pinned), *(make.pod(f"p{i}", "500m") for i in range(7)), make.pod("big", "90")]
    other = [make.pod("foreign", schedulerName="foo")]
    cluster, lax = dump(*nodes, *pods, *other), policy(NO_TAINTS)
    found = json.loads(stowplan("diff", "default", lax, "--cluster", cluster, "-o", "json").out)
    changed, same = [case["pod"] for case in found["pods"]], {case["pod"]: case for case in found["unchanged"]}
    assert len(same) == found["summary"]["same"]
    assert sorted([*changed, *same]) == sorted(f"web/{pod['metadata']['name']}" for pod in [*pods, *other])
    assert same["web/foreign"]["skipped"] == "no profile"
    table = stowplan("diff", "default", lax, "--cluster", cluster)
    assert f"; {len(same)} as before\n" in table.out
    listed = stowplan("diff", "default", lax, "--cluster", cluster, "-o", "wide").out
    assert all(pod in listed.partition("AS BEFORE")[2] for pod in same)
    page = stowplan("diff", "default", lax, "--cluster", cluster, "-o", "html").out
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert {case["pod"] for case in data["unchanged"]} == same.keys()
