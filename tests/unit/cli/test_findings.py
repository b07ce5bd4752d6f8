"""Codes of what is wrong with a dump, and no noise beside errors."""

from __future__ import annotations

import gzip

import pytest

from stowplan.text import Code


def test_codes_of_inputs_that_cannot_be_read(stowplan, tmp_path):
    (tmp_path / "empty.json").write_text(" \n")
    (tmp_path / "folder").mkdir()
    missing = stowplan("simulate", "--cluster", tmp_path / "none.json")
    assert missing.code == 3
    assert missing.err.startswith(f"error[{Code.UNREADABLE}]: ")
    assert stowplan("simulate", "--cluster", tmp_path / "folder").err.startswith(f"error[{Code.UNREADABLE}]: ")
    assert stowplan("simulate", "--cluster", tmp_path / "empty.json").err.startswith(f"error[{Code.EMPTY}]: ")


def test_a_pod_on_a_missing_node_has_its_code(stowplan, dump, make):
    answer = stowplan("simulate", "--cluster", dump(make.node("n1"), make.pod("p", on="gone")))
    assert answer.err.startswith(f"warning[{Code.MISSING_NODE}]: pod web/p is bound to node gone")


def test_no_word_about_nodes_beside_errors(stowplan, tmp_path, dump, make):
    (tmp_path / "broken.json").write_text('{"kind": "Node", ')
    broken = stowplan("simulate", "--cluster", tmp_path / "broken.json")
    assert broken.code == 3
    assert "no nodes" not in broken.err
    assert "the dump holds no nodes: add nodes" in stowplan("simulate", "--cluster", dump(make.pod("p"))).err


OWNER = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u", "controller": True}]


def test_kinds_that_the_dump_lacks(stowplan, dump, make):
    owned = make.pod("p")
    owned["metadata"]["ownerReferences"] = OWNER
    claiming = make.pod("c", resourceClaims=[{"name": "gpu", "resourceClaimName": "g"}])
    bare = stowplan("simulate", "--cluster", dump(make.node("n1"), owned, claiming, complete=False)).err
    assert "Services, the ReplicaSets of web/p are not in the dump" in bare
    assert "add services,replicasets to the dump" in bare
    assert "the dump holds no resourceclaims, which web/c uses: add resourceclaims,resourceslices,deviceclasses" in bare
    labels = {"matchLabels": {"app": "d"}}
    replicas = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web-1", "namespace": "web"},
        "spec": {"selector": labels},
    }
    assert stowplan("simulate", "--cluster", dump(make.node("n1"), owned, replicas)).err == ""
    owned["spec"]["nodeName"] = "n1"
    assert stowplan("simulate", "--cluster", dump(make.node("n1"), owned)).err == ""
    assert "add replicasets to the dump" in stowplan("explain", "--cluster", dump(make.node("n1"), owned), "p").err
    foreign = make.pod("p")
    foreign["metadata"]["ownerReferences"] = [OWNER[0] | {"apiVersion": "apps.kruise.io/v1"}]
    assert stowplan("simulate", "--cluster", dump(make.node("n1"), foreign)).err == ""
    assert stowplan("simulate", "--cluster", dump(make.node("n1"), complete=False)).err == ""


def test_a_cluster_without_services_is_a_note_that_can_be_silenced(stowplan, dump, make):
    cluster = dump(make.node("n1"), make.pod("p"), make.pod("q"), complete=False)
    for verb in (["simulate"], ["explain", "p", "q"], ["diff", "default", "default"]):
        told = stowplan(*verb, "--cluster", cluster).err
        assert told.count("Services: none in the dump: fine if the cluster has none") == 1
        assert told.startswith("note: ")
        assert stowplan(*verb, "--cluster", cluster, "--complete").err == ""
    owned = make.pod("p")
    owned["metadata"]["ownerReferences"] = OWNER
    cluster = dump(make.node("n1"), owned, complete=False)
    assert "STW406" in stowplan("simulate", "--cluster", cluster).err
    assert stowplan("simulate", "--cluster", cluster, "--complete").err == ""


@pytest.mark.parametrize(("effect", "known"), [("NoSched", False), ("", False), ("noschedule", False), ("NoExecute", True)])
def test_effects_of_taints_that_mean_nothing(stowplan, dump, make, effect, known):
    told = stowplan("simulate", "--cluster", dump(make.node("n1", taints=[{"key": "k", "effect": effect}]))).err
    assert ("STW407" not in told) is known
    assert known or f'node n1 has a taint of effect "{effect}", which counts as none' in told


def test_topology_keys_that_no_node_has(stowplan, dump, make, tmp_path):
    rules = tmp_path / "policy.yaml"
    rules.write_text(
        "apiVersion: stowplan.io/v1alpha1\nkind: SchedulerPolicy\nprofiles:\n- schedulerName: default-scheduler\n"
        "  rules: [{name: a, score: 'node.domain(\"zone\").nodes'}]\n"
    )
    cluster = dump(make.node("n1", labels={"topology.kubernetes.io/zone": "a"}), make.pod("p"))
    for verb in (["simulate"], ["explain", "p"]):
        told = stowplan(*verb, "--policy", rules, "--cluster", cluster).err
        assert told.count("STW316") == 1
        assert '0 of 1 nodes have the label "zone": did you mean "topology.kubernetes.io/zone"?' in told
    told = stowplan("eval", "--cluster", cluster, 'node.domain("zone").nodes').err
    assert told.count("STW316") == 1


def test_a_finding_is_found_by_its_number(stowplan):
    assert stowplan("rule", "302").out == stowplan("rule", "stw302").out
    assert stowplan("rule", "99").code == 2


def test_a_failed_expectation_has_a_code_of_its_own(stowplan, tmp_path):
    (tmp_path / "a.stowtest.yaml").write_text(
        "policy: scheduler.yaml\ntests:\n- cluster: |\n    node n1 cpu=1\n    pod p cpu=5\n  pod: p\n  expect: {node: n1}\n"
    )
    (tmp_path / "scheduler.yaml").write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    answer = stowplan("test", tmp_path)
    assert answer.code == 1
    assert "error[STW501]: tests[0].expect.node: expected node n1" in answer.out


def test_a_dump_and_a_configuration_in_each_others_place(stowplan, dump, policy, make):
    cluster, configuration = dump(make.node("n1"), make.pod("p")), policy({"schedulerName": "s"})
    swapped = stowplan("simulate", "--cluster", cluster, "--policy", cluster)
    assert swapped.code == 3
    assert f"{cluster}: this is a cluster dump (kind List), which is for --cluster, not --policy" in swapped.err
    packed = cluster.with_suffix(".gz")
    packed.write_bytes(gzip.compress(configuration.read_bytes()))
    assert "gunzip it first" in stowplan("simulate", "--cluster", cluster, "--policy", packed).err
    other = stowplan("simulate", "--cluster", configuration)
    assert other.code == 3
    assert "a scheduler configuration is no cluster: give it with --policy" in other.err
    assert str(configuration) in other.err


def test_blank_files_are_unreadable_everywhere(stowplan, dump, make, tmp_path):
    (tmp_path / "blank.yaml").write_text("\n")
    for call in (["validate"], ["convert"], ["simulate", "--cluster"], ["simulate", "--cluster", dump(make.node("n")), "--policy"]):
        assert stowplan(*call, tmp_path / "blank.yaml").code == 3


def test_misspelt_commands_get_a_suggestion(stowplan):
    answer = stowplan("explian", "web/p")
    assert answer.code == 2
    assert "there is no command explian; did you mean explain?" in answer.err
