from __future__ import annotations

import io
import json
import sys

import yaml


def test_places_only_what_fits(stowplan, dump, make):
    pods = [make.pod(f"p{i}", "8", "16Gi") for i in range(10)]
    answer = stowplan("simulate", "--cluster", dump(make.node("n1", "8"), make.node("n2", "4", "8Gi"), *pods))
    assert answer.code == 1
    assert answer.out.startswith("1 of 10 pending pods placed on 2 nodes; 9 do not fit\n")
    assert "web/p0 n1 375 0 1" in answer.words
    assert "web/p1, web/p2, web/p3, web/p4 and 5 more\n" in answer.out
    assert "  0/2 nodes are available: 2 Insufficient cpu, 2 Insufficient memory." in answer.out
    assert "n1 0% -> 100% 0% -> 100% 0 -> 1 of 110" in answer.words
    assert "n2 0% 0% 0 of 110" in answer.words
    assert "TOTAL 0% -> 67% 0% -> 67% 0 -> 1 of 220" in answer.words


def test_everything_fits(stowplan, dump, make):
    answer = stowplan("simulate", "--cluster", dump(make.node("n1"), make.node("n2"), make.pod("p", "1")))
    assert answer.code == 0
    assert "UNSCHEDULABLE" not in answer.out
    assert answer.words.splitlines()[4].startswith("web/p n1 ")
    assert answer.words.splitlines()[4].endswith(" 1 2")  # one other node with that score, two feasible


def test_pods_that_are_not_tried_do_not_fail_the_command(stowplan, dump, make):
    gated = make.pod("gated", schedulingGates=[{"name": "a"}, {"name": "b"}])
    answer = stowplan("simulate", "--cluster", dump(make.node("n1"), gated, make.pod("foreign", schedulerName="foo")))
    assert answer.code == 0
    assert "web/gated gated: waiting for scheduling gates: [a b]" in answer.words
    assert 'web/foreign no profile serves "foo"' in answer.words


def test_many_nodes_show_those_that_change_most_and_wide_shows_all(stowplan, dump, make):
    nodes = [make.node(f"n{i:02}", "4" if i == 7 else "1") for i in range(20)]
    cluster = dump(*nodes, *(make.pod(f"p{i}", "3") for i in range(1)))
    short = stowplan("simulate", "--cluster", cluster).out.partition("BEFORE -> AFTER")[2]
    assert short.startswith(", the 1 of 20 nodes that changes (-o wide: all)")
    assert [line[:3] for line in short.splitlines() if line.startswith("n")] == ["n07"]
    wide = stowplan("simulate", "--cluster", cluster, "-o", "wide").out.partition("BEFORE -> AFTER")[2]
    assert sum(line.startswith("n") for line in wide.splitlines()) == 20
    assert "0% -> 75% (3 of 4)" in wide


def test_nodes_that_change_stand_in_order_of_change(stowplan, dump, make):
    nodes = [make.node(f"n{i:02}", str(4 + i)) for i in range(14)]
    pods = [make.pod(f"p{i:02}", "3", nodeSelector={"kubernetes.io/hostname": f"n{i:02}"}) for i in range(14)]
    short = stowplan("simulate", "--cluster", dump(*nodes, *pods)).out.partition("BEFORE -> AFTER")[2]
    assert short.startswith(", the 10 of 14 nodes that change most")
    assert [line[:3] for line in short.splitlines() if line.startswith("n")] == [f"n{i:02}" for i in range(10)]
    none = stowplan("simulate", "--cluster", dump(*nodes)).out
    assert "no node changes" in none


def test_resources_appear_when_somebody_requests_them(stowplan, dump, make):
    gpu = {"nvidia.com/gpu": "2"}
    container = [{"name": "c", "resources": {"requests": gpu, "limits": gpu}}]
    nodes = [make.node("n1", **{"nvidia.com/gpu": "4"}), make.node("n2", **{"example.com/fpga": "1"})]
    table = stowplan("simulate", "--cluster", dump(*nodes, make.pod("p", containers=container))).words.partition("AFTER\n")[2]
    assert table.splitlines()[0] == "NODE CPU MEMORY PODS nvidia.com/gpu"
    assert table.splitlines()[1].endswith("0 -> 2 of 4")
    assert table.splitlines()[2].endswith(" -")


def test_documents(stowplan, dump, make):
    cluster = dump(make.node("n1"), make.pod("p", "1"), make.pod("q", "9"))
    as_json = stowplan("simulate", "--cluster", cluster, "-o", "json")
    content = json.loads(as_json.out)
    assert as_json.code == 1
    assert (content["apiVersion"], content["kind"]) == ("stowplan.io/v1alpha1", "Simulation")
    assert [step.get("node") for step in content["sequence"]] == ["n1", None]
    assert content["summary"] == {"nodes": 1, "pending": 2, "placed": 1, "unschedulable": 1, "notTried": 0, "evicted": 0}
    assert content["requested"]["total"]["cpu"] == {"before": "0", "after": "1", "allocatable": "4"}
    assert content["requested"]["nodes"]["n1"]["pods"] == {"before": "0", "after": "1", "allocatable": "110"}
    assert list(content)[-1] == "profiles"
    assert yaml.safe_load(stowplan("simulate", "--cluster", cluster, "-o", "yaml").out) == content


def test_amounts_name_only_nodes_that_change(stowplan, dump, make):
    cluster = dump(make.node("n1"), make.node("n2", "8"), make.pod("p", "5"))
    requested = json.loads(stowplan("simulate", "--cluster", cluster, "-o", "json").out)["requested"]
    assert list(requested["nodes"]) == ["n2"]
    assert requested["total"]["cpu"] == {"before": "0", "after": "5", "allocatable": "12"}


def test_the_same_every_time_and_from_standard_input(stowplan, dump, make, monkeypatch):
    cluster = dump(make.node("n1"), make.node("n2"), *(make.pod(f"p{i}", "1") for i in range(6)))
    from_file = stowplan("simulate", "--cluster", cluster)
    assert stowplan("simulate", "--cluster", cluster) == from_file
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(cluster.read_bytes())))
    assert stowplan("simulate", "--cluster", "-") == from_file


def test_several_inputs_make_one_cluster(stowplan, dump, make, tmp_path):
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "n1.yaml").write_text(yaml.safe_dump(make.node("n1")))
    answer = stowplan("simulate", "--cluster", dump(make.pod("p")), "--cluster", tmp_path / "nodes")
    assert answer.code == 0
    assert "1 of 1 pending pods placed on 1 node\n" in answer.out


def test_warnings_are_grouped_on_standard_error(stowplan, dump, make):
    strays = [make.pod(f"s{i}", on=f"gone{i}") for i in range(5)]
    maps = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{i}"}} for i in range(4)]
    answer = stowplan("simulate", "--cluster", dump(make.node("n1"), *strays, *maps))
    assert "gone0" in answer.err
    assert "gone4" not in answer.err
    assert "  ... and 2 more like it" in answer.err
    assert "note: left out 4 objects of kinds that scheduling does not read: ConfigMap (4)" in answer.err
    assert "gone" not in answer.out
