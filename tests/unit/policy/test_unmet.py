"""What a node lacks for a pending pod."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from stowplan import load_cluster, load_policy
from stowplan.policy.attempt import attempt
from stowplan.policy.unmet import cheapest

POLICY = load_policy(None)


def node(name, *, cpu=4, labels=None, taints=(), unschedulable=False):
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": list(taints), "unschedulable": unschedulable},
        "status": {"allocatable": {"cpu": str(cpu), "memory": "8Gi", "pods": "2"}},
    }


def pod(name="p", cpu="1", on="", **spec):
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "web"},
        "spec": {"containers": containers, "nodeName": on} | spec,
    }


def ways(*objects):
    store = load_cluster(objects)
    return [(way.needs, way.nodes) for way in cheapest(store, attempt(POLICY, store, store.pending["web/p"]))]


def taint(key, value="", effect="NoSchedule"):
    return {"key": key, "value": value, "effect": effect}


def test_lack_of_room():
    shrink = "shrink the cpu request by 500m (500m of 4000m free)"
    assert ways(node("a"), pod("u", "3500m", on="a"), pod()) == [((shrink,), ("a",))]
    assert ways(node("a"), pod("u", "4", on="a"), pod()) == [(("free 1 of cpu (0 of 4 free)",), ("a",))]
    assert ways(node("a"), pod("u", on="a"), pod("v", on="a"), pod()) == [(("remove a pod (it runs 2 of at most 2)",), ("a",))]


def test_amounts_of_a_resource_have_one_unit():
    def memory(amount, name="p", on=""):
        return pod(name, on=on, containers=[{"name": "c", "resources": {"requests": {"memory": amount}}}])

    shrink = "shrink the memory request by 1536Mi (512Mi of 8192Mi free)"
    assert ways(node("a"), memory("7680Mi", "u", "a"), memory("2Gi")) == [((shrink,), ("a",))]
    assert ways(node("a"), memory("1", "u", "a"), memory("8Gi"))[0][0] == (
        "shrink the memory request by 1Mi (8191Mi of 8192Mi free)",
    )
    assert ways(node("a", cpu=31.85), pod(cpu="48"))[0][0] == ("48 cpu requested, 31.85 at most",)


def test_nodes_that_are_too_small_stand_together_at_the_end():
    found = ways(node("a", cpu=2), node("b", cpu=1, taints=[taint("k")]), node("c"), pod("u", "2", on="c"), pod(cpu="3"))
    assert found == [(("shrink the cpu request by 1 (2 of 4 free)",), ("c",)), (("3 cpu requested, 2 at most",), ("a", "b"))]


def test_the_nearest_node_of_each_kind_and_its_equals():
    full = [node(f"f{i}") for i in range(3)]
    held = [pod(f"u{i}", cpu, on=f"f{i}") for i, cpu in enumerate(("3100m", "3900m", "3100m"))]
    tainted = [node("t2", taints=[taint("a", "b")]), node("t1", taints=[taint("a", "b")])]
    assert ways(*full, *held, *tainted, pod()) == [
        (("shrink the cpu request by 100m (900m of 4000m free)",), ("f0", "f2")),
        (("tolerate taint a=b:NoSchedule",), ("t1", "t2")),
    ]


def test_a_cordon_is_one_need_and_soft_taints_are_none():
    cordoned = node(
        "a", unschedulable=True, taints=[taint("node.kubernetes.io/unschedulable"), taint("x", effect="PreferNoSchedule")]
    )
    assert ways(cordoned, pod()) == [(("uncordon the node",), ("a",))]


def test_labels_and_ports():
    term = {
        "matchExpressions": [
            {"key": "disk", "operator": "In", "values": ["ssd"]},
            {"key": "gen", "operator": "Gt", "values": ["5"]},
        ]
    }
    required = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    node_needs = ways(node("a", labels={"disk": "hdd", "gen": "7"}), pod(affinity=required))
    assert node_needs == [(("meet required node affinity disk in (ssd) (the node has 'hdd')",), ("a",))]
    port = [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    taken = ways(node("a"), pod("u", on="a", containers=port), pod(containers=port))
    assert taken == [(("free host port 80/TCP, which web/u takes",), ("a",))]


def test_only_the_node_that_a_pod_is_bound_to_counts():
    pin = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
    required = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [pin]}}}
    assert ways(node("a"), node("b", cpu=0), pod(affinity=required)) == [(("1 cpu requested, none there",), ("b",))]


def test_pods_that_nothing_rejects_or_that_are_not_tried_need_nothing():
    assert ways(node("a"), pod()) == []
    assert ways(pod()) == []
    assert ways(node("a", cpu=0), pod(schedulingGates=[{"name": "g"}])) == []


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans(), st.booleans()), min_size=1, max_size=5))
def test_needs_are_exactly_what_is_wrong_with_a_node(rows):
    some = [
        node(
            f"n{i}",
            cpu=cpu,
            taints=[taint(f"k{t}") for t in range(taints)],
            unschedulable=cordoned,
            labels={"disk": "ssd" if labelled else "hdd"},
        )
        for i, (cpu, taints, cordoned, labelled) in enumerate(rows)
    ]
    store = load_cluster([*some, pod(cpu="2", nodeSelector={"disk": "ssd"})])
    found = attempt(POLICY, store, store.pending["web/p"])
    reported = {name: " ".join(way.needs) for way in cheapest(store, found) for name in way.nodes}
    for name, needs in reported.items():
        cpu, taints, cordoned, labelled = rows[int(name[1:])]
        if cpu < 2:
            largest = max(other for other, *_ in rows if other < 2)
            assert needs == f"2 cpu requested, {f'{largest} at most' if largest else 'none there'}"
            continue
        assert ("uncordon" in needs) == cordoned
        assert ("disk" in needs) == (not labelled)
        assert needs.count("tolerate") == taints
        assert "cpu" not in needs
    assert bool(reported) == bool(found.infeasible)
