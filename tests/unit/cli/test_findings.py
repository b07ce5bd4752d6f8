"""Codes of what is wrong with a dump, and no noise beside errors."""

from __future__ import annotations

import gzip

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
