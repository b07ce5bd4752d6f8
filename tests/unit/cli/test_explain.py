from __future__ import annotations

import json

import pytest
import yaml


def preferring(value):
    term = {"weight": 100, "preference": {"matchExpressions": [{"key": "foo", "operator": "In", "values": [value]}]}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def taint(key, value):
    return {"key": key, "value": value, "effect": "NoSchedule"}


PORT = [{"name": "c", "image": "x", "ports": [{"containerPort": 80, "hostPort": 80}]}]


def fit(*resources, kind="MostAllocated"):
    strategy = {"type": kind, "resources": [{"name": name, "weight": weight} for name, weight in resources]}
    return {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}]}


def test_margin_shows_what_speaks_for_and_against_the_winner(stowplan, dump, make):
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "d", "namespace": "web"},
        "spec": {"selector": {"app": "d"}},
    }
    nodes = [make.node("n1", labels={"foo": "bar"}), make.node("n2", labels={"foo": "car"})]
    pods = [make.pod("a", "1", "1Gi", on="n1", affinity=preferring("bar")), make.pod("b", "1", "1Gi", affinity=preferring("bar"))]
    answer = stowplan("explain", "--cluster", dump(service, *nodes, *pods), "web/b")
    assert answer.code == 0
    first, _, decided = answer.out.splitlines()[:3]
    assert first == "web/b -> n1 (total 770, 2 of 2 nodes feasible, profile default-scheduler)"
    assert decided.startswith("decided by NodeAffinity (+200): ahead of n2 by 116; against it PodTopologySpread -68")
    assert "NodeAffinity x2 100 100 200 0 0 0" in answer.words
    assert "PodTopologySpread: weight 2 -> 6: n2 wins" in answer.out


def test_large_image_is_worth_what_its_spread_allows(stowplan, dump, make):
    image = {"names": ["huge:1"], "sizeBytes": 1500 << 20}
    nodes = [make.node(f"n{i}", images=[image] if i == 3 else None) for i in range(10)]
    pod = make.pod("p", containers=[{"name": "c", "image": "huge:1"}])
    answer = stowplan("explain", "--cluster", dump(*nodes, pod), "p")
    assert "web/p -> n3" in answer.out
    assert "decided by ImageLocality (+12): ahead of n0 by 12" in answer.out
    assert "ImageLocality x1 12 12 12 0 0 0 0 0 0" in answer.words


def test_skipped_plugins_say_so_and_silent_pods_show_what_scoring_assumes(stowplan, dump, make):
    used = [("14580m", "24600M"), ("15350m", "24200M"), ("13480m", "19500M")]
    nodes = [make.node(f"n{i}", "15600m", "28700Mi") for i in range(3)]
    pods = [make.pod(f"u{i}", cpu, memory, on=f"n{i}") for i, (cpu, memory) in enumerate(used)]
    answer = stowplan("explain", "--cluster", dump(*nodes, *pods, make.pod("p")), "p")
    assert "requests nothing; scored as cpu 100m, memory 200Mi" in answer.out
    assert "NodeResourcesBalancedAllocation skipped skipped skipped" in answer.words


def test_over_committed_by_silent_pods_counts_as_full(stowplan, dump, policy, make):
    silent = [make.pod(f"u{i}", on="n1") for i in range(12)]
    cluster = dump(make.node("n1", "1", "2Gi"), make.node("n2", "1", "2Gi"), *silent, make.pod("p"))
    most = stowplan("explain", "--policy", policy(fit(("cpu", 1), ("memory", 1))), "--cluster", cluster, "p")
    assert "web/p -> n1" in most.out
    assert "NodeResourcesFit x1 100 100 100 9 9 9" in most.words


@pytest.mark.parametrize(
    ("resources", "note"),
    [
        ([("cpu", 1), ("nvidia.com/gpu", 5)], "scores by cpu alone: the pod requests no nvidia.com/gpu"),
        ([("nvidia.com/gpu", 5)], "scores all nodes alike: the pod requests no nvidia.com/gpu"),
    ],
)
def test_resources_that_nobody_requests_are_named(request, resources, note):
    stowplan, dump, policy, make = map(request.getfixturevalue, ("stowplan", "dump", "policy", "make"))
    cluster = dump(make.node("n1"), make.node("n2", **{"nvidia.com/gpu": "8"}), make.pod("p", "1"))
    answer = stowplan("explain", "--policy", policy(fit(*resources)), "--cluster", cluster, "p")
    assert f"note: NodeResourcesFit {note}" in answer.out
    assert "tied with n2" in answer.out


def test_pods_that_no_scheduler_placed(stowplan, dump, make):
    tolerant = make.pod("r", "100m", tolerations=[{"operator": "Exists"}])
    bound = [make.pod("u", "2", on="n1"), make.pod("p", "3", on="n1"), make.pod("q", on="n1", schedulerName="none")]
    cluster = dump(make.node("n1", taints=[taint("k", "v")]), *bound, tolerant)
    unserved = stowplan("explain", "--cluster", cluster, "web/q")
    assert unserved.code == 0
    assert 'runs on n1; it was not scheduled by any scheduler known here: no profile serves "none"' in unserved.out
    by_hand = stowplan("explain", "--cluster", cluster, "web/p")
    assert "web/p runs on n1: that was decided before." in by_hand.out
    assert "n1 would be rejected today (TaintToleration: node(s) had untolerated taint(s))" in by_hand.out
    assert "not scheduled by any scheduler" in by_hand.out
    others = stowplan("explain", "--cluster", cluster, "web/r")
    assert others.code == 1
    assert "n1: free 1100m of cpu (1000m more than its 4000m are requested there)" in others.out


def test_every_node_with_its_first_and_with_all_failing_plugins(stowplan, dump, make):
    port = [{"name": "c", "image": "x", "ports": [{"containerPort": 80, "hostPort": 80}], "resources": {"requests": {"cpu": "2"}}}]
    pin = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n9"]}]}
    required = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [pin]}}}
    holders = [make.pod(f"h{i}", on=f"n{i}", containers=port) for i in range(1, 9)]
    pods = [make.pod("full", "3", on="n9"), *holders, make.pod("ds", containers=port, affinity=required)]
    cluster = dump(*(make.node(f"n{i}") for i in range(1, 10)), *pods)
    answer = stowplan("explain", "--cluster", cluster, "ds", "--all-nodes")
    assert answer.code == 1
    assert "0/9 nodes are available: 1 Insufficient cpu, 8 node(s) didn't satisfy plugin(s) [NodeAffinity]." in answer.out
    assert "8 node(s) didn't satisfy plugin(s) [NodeAffinity] NodeAffinity n1, n2, n3 and 5 more" in answer.words
    assert "n9 - NodeResourcesFit Insufficient cpu" in answer.words
    assert "NodePorts" not in answer.out
    assert "n9: shrink the cpu request by 1 (1 of 4 free)" in answer.out
    wide = stowplan("explain", "-o", "wide", "--cluster", cluster, "ds", "--all-nodes")
    assert "NodePorts: node(s) didn't have free ports for the requested pod ports" in wide.out


def test_the_init_container_that_dominates_is_named(stowplan, dump, make):
    init = [{"name": "big", "image": "i", "resources": {"requests": {"cpu": "3"}}}]
    cluster = dump(make.node("n1"), *(make.pod(name, "30m", on=on, initContainers=init) for name, on in (("a", "n1"), ("b", None))))
    answer = stowplan("explain", "--cluster", cluster, "b")
    assert "requests cpu 3; the cpu request is that of initContainers[big]" in answer.out
    assert "n1: shrink the cpu request by 2 (1 of 4 free)" in answer.out


def test_states_in_which_nobody_tries_a_pod(stowplan, dump, make):
    leaving = make.pod("leaving")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cluster = dump(make.node("n1"), make.pod("foreign", schedulerName="default-schedular"), leaving)
    answer = stowplan("explain", "--cluster", cluster, "foreign", "leaving")
    assert answer.code == 0
    assert answer.out.splitlines() == [
        'web/foreign waits: no scheduler serves "default-schedular" (did you mean default-scheduler?)',
        "",
        "web/leaving is being deleted: it is not scheduled any more",
    ]


def test_a_gated_pod_is_judged_as_if_it_were_not(stowplan, dump, make):
    gates = [{"name": "example.com/quota"}]
    cluster = dump(make.node("n1"), make.pod("gated", "1", schedulingGates=gates), make.pod("huge", "9", schedulingGates=gates))
    answer = stowplan("explain", "--cluster", cluster, "gated", "huge")
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert lines[:2] == [
        "web/gated is gated by SchedulingGates: waiting for scheduling gates: [example.com/quota]",
        "What follows judges it as if it were not gated.",
    ]
    assert lines[2].startswith("web/gated -> n1 (")
    assert "  cannot fit on n1: 9 cpu requested, 4 at most" in lines
    (content,) = json.loads(stowplan("explain", "--cluster", cluster, "gated", "-o", "json").out)["pods"]
    assert content["skipped"] == "gated"
    assert content["ifUngated"]["best"] == ["n1"]


def test_needs_of_a_pending_pod_are_named_cheapest_first(stowplan, dump, make):
    nodes = [
        make.node("big", taints=[taint("dedicated", "gpu")]),
        make.node("small", "1"),
        make.node("ssd", labels={"disk": "ssd"}),
    ]
    pods = [make.pod("u", "3500m", on="ssd"), make.pod("p", "1500m", nodeSelector={"disk": "ssd"})]
    answer = stowplan("explain", "--cluster", dump(*nodes, *pods), "p")
    ways = answer.out.partition("CHEAPEST FIRST\n")[2].splitlines()
    assert ways == [
        "  ssd: shrink the cpu request by 1000m (500m of 4000m free)",
        "  big: tolerate taint dedicated=gpu:NoSchedule; meet nodeSelector disk in (ssd) (the node has no such label)",
        "  cannot fit on small: 1500m cpu requested, 1000m at most",
    ]


def test_one_way_too_many_is_one_way(stowplan, dump, make):
    nodes = [make.node(f"n{i}", taints=[taint(f"k{j}", "v") for j in range(i)]) for i in range(1, 5)]
    cordoned = make.node("c")
    cordoned["spec"]["unschedulable"] = True
    keyed = [make.node(name, labels={"a": "b"}) for name in ("s1", "s2")]
    held = [make.pod("u1", "4", on="s1"), make.pod("u2", on="s2", containers=PORT)]
    pod = make.pod("p", "1", nodeSelector={"a": "b"}, containers=[PORT[0] | {"resources": {"requests": {"cpu": "1"}}}])
    out = stowplan("explain", "--cluster", dump(*nodes, cordoned, *keyed, *held, pod), "p").out
    assert "  s1: shrink" not in out
    assert "  s1: free 1 of cpu (0 of 4 free)\n" in out
    assert "  s2: free host port 80/TCP, which web/u2 takes\n" in out
    assert "  ... and 1 dearer way (-o wide)\n" in out


def test_preemption_and_missing_kinds_are_remedies(stowplan, dump, make):
    cluster = dump(make.node("n1"), make.pod("low", "3", on="n1", priority=0), make.pod("p", "2", priority=9))
    out = stowplan("explain", "--cluster", cluster, "p").out.partition("CHEAPEST FIRST\n")[2]
    assert out.startswith("  evict web/low from n1, as preemption does without being asked\n  n1: shrink the cpu request by 1 ")
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    cluster = dump(make.node("n1"), make.pod("p", volumes=volumes))
    answer = stowplan("explain", "--cluster", cluster, "p")
    assert answer.code == 1
    assert "  add persistentvolumes,persistentvolumeclaims,storageclasses," in answer.out.partition("CHEAPEST FIRST\n")[2]
    assert "the dump holds no persistentvolumeclaims, which web/p uses" in answer.err


def test_pod_that_runs_is_judged_without_itself(stowplan, dump, make):
    cluster = dump(make.node("n1"), make.node("n2"), make.pod("a", "4", on="n2"), make.pod("b", "4", on="n1"))
    answer = stowplan("explain", "--cluster", cluster, "a")
    assert answer.code == 0
    assert "web/a -> n2" in answer.out
    assert "n2 is the only node that passes every filter" in answer.out
    moved = stowplan("explain", "--cluster", dump(make.node("n1"), make.node("n2"), make.pod("a", "1", on="n2")), "a")
    assert "n2, where it runs, would not be chosen today: it is number 2 of 2 in the ranking" in moved.out


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_documents_carry_the_same_facts(stowplan, dump, make, form):
    cluster = dump(make.node("n1"), make.node("n2", "1"), make.pod("a", "2"), make.pod("b", "1", on="n1"), make.pod("c", "8"))
    read = json.loads if form == "json" else yaml.safe_load
    answer = stowplan("explain", "--cluster", cluster, "a", "b", "-o", form)
    content = read(answer.out)
    assert (content["apiVersion"], content["kind"]) == ("stowplan.io/v1alpha1", "Explanation")
    first, second = content["pods"]
    assert first["pod"] == "web/a"
    assert first["best"] == ["n1"]
    assert "boundTo" not in first
    assert second["boundTo"] == "n1"
    assert answer.code == 0
    assert list(content)[-1] == "profiles"
    assert first["requests"] == {"cpu": "2"}
    failing = stowplan("explain", "--cluster", cluster, "c", "-o", form)
    assert failing.code == 1
    assert read(failing.out)["pods"][0]["needs"] == [
        {"nodes": ["n1", "n2"], "needs": ["8 cpu requested, 4 at most"], "possible": False}
    ]


def test_documents_carry_margin_and_flips(stowplan, dump, make):
    nodes = [make.node("n1", labels={"foo": "bar"}), make.node("n2", labels={"foo": "car"})]
    cluster = dump(*nodes, make.pod("u", "1", "1Gi", on="n1"), make.pod("p", "1", "1Gi", affinity=preferring("bar")))
    (pod,) = json.loads(stowplan("explain", "--cluster", cluster, "p", "-o", "json").out)["pods"]
    assert (pod["margin"]["winner"], pod["margin"]["runnerUp"]) == ("n1", "n2")
    assert pod["margin"]["points"] == pod["totals"]["n1"] - pod["totals"]["n2"] == sum(pod["margin"]["parts"].values())
    assert pod["decidedBy"] == "NodeAffinity"
    flips = {flip.get("plugin", flip.get("resource")): flip for flip in pod["flips"]}
    assert flips["NodeAffinity"]["winner"] == "n2"
    assert flips["NodeAffinity"]["before"] == 2


def test_names(stowplan, dump, make):
    twin = make.pod("api-1")
    twin["metadata"]["namespace"] = "shop"
    cluster = dump(make.node("n1"), make.pod("api-1"), make.pod("api-2"), twin)
    both = stowplan("explain", "--cluster", cluster, "api-1")
    assert both.code == 2
    assert both.err == "Error: 2 pods are called api-1, which one: shop/api-1, web/api-1?\n"
    assert stowplan("explain", "--cluster", cluster, "shop/api-1").code == 0
    misspelt = stowplan("explain", "--cluster", cluster, "web/apj-2")
    assert misspelt.code == 2
    assert "did you mean web/api-2" in misspelt.err
    assert misspelt.out == ""
    wrong_namespace = stowplan("explain", "--cluster", cluster, "prod/api-2")
    assert "did you mean web/api-2" in wrong_namespace.err


def test_characters_that_terminals_obey_are_not_printed(stowplan, dump, make):
    answer = stowplan("explain", "--cluster", dump(make.node("n\x1b[31m1"), make.pod("p\x07")), "p\x07")
    assert answer.code == 0
    assert "\x1b" not in answer.out
    assert "\x07" not in answer.out


def test_top_sets_how_many_nodes_are_shown(stowplan, dump, make):
    cluster = dump(*(make.node(f"n{i}", str(i)) for i in range(1, 6)), make.pod("p", "1"))
    header = "PLUGIN WEIGHT "
    assert header + "n5 n4\n" in stowplan("explain", "--cluster", cluster, "p", "--top", "2").words + "\n"
    assert header + "n5 n4 n3 n2 n1\n" in stowplan("explain", "--cluster", cluster, "p", "--top", "9").words + "\n"


def test_pods_that_come_before_it_are_counted(stowplan, dump, make):
    line = "pending {} before it (simulate places {} first)"
    cluster = dump(make.node("n1"), *(make.pod(f"p{i}") for i in range(3)), make.pod("gated", schedulingGates=[{"name": "x"}]))
    assert "before it" not in stowplan("explain", "--cluster", cluster, "p0").out
    assert "stands; 1 " + line.format("pod comes", "it") in stowplan("explain", "--cluster", cluster, "p1").out
    assert "stands; 2 " + line.format("pods come", "them") in stowplan("explain", "--cluster", cluster, "p2").out
    runs = dump(make.node("n1"), make.pod("p"), make.pod("q", on="n1"))
    assert "before it" not in stowplan("explain", "--cluster", runs, "q").out
