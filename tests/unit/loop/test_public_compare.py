"""`stowplan.compare`, as people use it."""

import pytest

import stowplan

PACKING = {"type": "MostAllocated", "resources": [{"name": "cpu"}]}
PACK = {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": PACKING}}]}
HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def node(name):
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}}


def pod(name, **spec):
    spec["containers"] = [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Mi"}}}]
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": {"priority": 0, **spec}}


@pytest.fixture
def cluster():
    return stowplan.load_cluster([node("a"), node("b"), pod("runs", nodeName="b"), pod("waits")])


def test_two_policies(cluster):
    found = stowplan.compare(None, stowplan.load_policy(HEAD | {"profiles": [PACK]}), cluster)
    assert found.differs
    (case,) = found.cases
    assert (case.old.node, case.new.node) == ("a", "b")
    assert found.running is None
    assert found.to_json()["summary"]["moved"] == 1


def test_pods_that_run_are_judged_where_that_is_wanted(cluster):
    found = stowplan.compare(None, None, cluster, stowplan.Wanted(running=5))
    assert not found.differs
    assert found.running.judged == 1


@pytest.mark.parametrize("wrong", ["policy.yaml", HEAD])
def test_what_is_still_to_be_loaded(cluster, wrong):
    for old, new in ((wrong, None), (None, wrong)):
        with pytest.raises(TypeError, match="load it with load_policy"):
            stowplan.compare(old, new, cluster)
    with pytest.raises(TypeError, match="load it with load_cluster"):
        stowplan.compare(None, None, "dump.json")


def test_a_comparison_is_short_to_look_at():
    found = stowplan.compare(None, None, stowplan.load_cluster([]))
    assert repr(found) == "<Comparison of 0 pending pods: none>"
