"""The volume plugins, as far as comparisons with kube-scheduler do not reach: columns that follow facts, pods that are alike,
suppositions, and one volume for one pod only."""

import random

import numpy as np
import pytest

from stowplan.edge.load import load_cluster, load_policy
from stowplan.loop.simulate import simulate
from stowplan.objects import CSINode, PersistentVolume, PersistentVolumeClaim, VolumeAttachment, read
from stowplan.plugins import IN_TREE
from stowplan.policy.choose import Chooser
from stowplan.state import CLAIMS, CSI_VOLUMES, UNLIMITED, Cluster, Store, Supposition

HOST = "kubernetes.io/hostname"
PLUGINS = {plugin.name: plugin for plugin in IN_TREE}
VOLUME_PLUGINS = ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")
POLICY = load_policy(None)


def node(name):
    labels = {HOST: name, "topology.kubernetes.io/zone": f"z{len(name) % 2}"}
    status = {"allocatable": {"cpu": "10", "memory": "10Gi", "pods": "100"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def pod(name, *volumes, on=None):
    spec = {
        "priority": 0,
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
        "volumes": [{"name": f"v{i}"} | volume for i, volume in enumerate(volumes)],
    }
    if on:
        spec["nodeName"] = on
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}


def claimed(name):
    return {"persistentVolumeClaim": {"claimName": name}}


def claim(name, storage_class="local", size="1Gi", *, volume=None, owner=None, modes=("ReadWriteOnce",)):
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    spec = {"storageClassName": storage_class, "accessModes": list(modes), "resources": {"requests": {"storage": size}}}
    if volume:
        metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        spec["volumeName"] = volume
    if owner:
        metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": owner, "controller": True}]
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def volume(name, storage_class="local", size="1Gi", on=None, **source):
    spec = {"storageClassName": storage_class, "accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}} | source
    if on:
        term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [on]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    status = {"phase": "Available"}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec, "status": status}


def storage_class(name, provisioner="kubernetes.io/no-provisioner"):
    waiting = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}} | waiting


def csi_node(name, **limits):
    drivers = [{"name": d, "nodeID": name} | ({"allocatable": {"count": c}} if c is not None else {}) for d, c in limits.items()]
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": drivers}}


def attachment(name, where, volume_name, attacher="d"):
    spec = {"attacher": attacher, "nodeName": where, "source": {"persistentVolumeName": volume_name}}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": name}, "spec": spec}


def csi(handle, driver="d"):
    return {"csi": {"driver": driver, "volumeHandle": handle}}


def placed(*objects):
    store = load_cluster(objects)
    return {p.pod.name: p.node or p.message for p in simulate(POLICY, store).placements}, store


# one volume, one pod


def test_two_pods_never_get_one_volume():
    objects = [node("a"), node("bb"), storage_class("local"), volume("here", on="a"), claim("x"), claim("y")]
    store = load_cluster([*objects, pod("p", claimed("x")), pod("q", claimed("y"))])
    before = dict(store.facts[PersistentVolume])
    found = {p.pod.name: p for p in simulate(POLICY, store).placements}
    assert found["p"].node == "a"
    assert found["q"].node is None
    assert "2 node(s) didn't find available persistent volumes to bind" in found["q"].message
    assert store.facts[PersistentVolume] == before  # the very same facts: equality is identity


def test_a_pod_that_shares_a_claim_follows_the_volume_of_the_first():
    objects = [node("a"), node("bb"), storage_class("local"), volume("v1", on="bb"), volume("v2", on="a", size="2Gi"), claim("x")]
    store = load_cluster([*objects, pod("p", claimed("x")), pod("q", claimed("x"))])
    first, second = simulate(POLICY, store).placements
    assert (first.feasible, second.feasible) == (2, 1)
    assert first.node == second.node


def test_a_volume_to_be_made_ties_later_users_to_the_node():
    objects = [node("a"), node("bb"), storage_class("fast", "csi.example"), claim("x", "fast")]
    store = load_cluster([*objects, pod("p", claimed("x")), pod("q", claimed("x"))])
    first, second = simulate(POLICY, store).placements
    assert (first.feasible, second.feasible) == (2, 1)
    assert first.node == second.node
    assert store.facts[PersistentVolumeClaim]["default/x"].selected_node is None


def test_one_claim_in_two_volumes_of_a_pod_takes_two_volumes():
    objects = [node("a"), node("bb"), storage_class("local"), claim("x"), pod("p", claimed("x"), claimed("x"))]
    objects += [volume("v1", on="a"), volume("v2", on="bb"), volume("v3", on="bb")]
    assert placed(*objects)[0] == {"p": "bb"}


def test_a_claim_for_one_pod_at_a_time_stops_its_twin():
    objects = [node("a"), claim("x", volume="v", modes=["ReadWriteOncePod"]), volume("v", **csi("h"))]
    found, _ = placed(*objects, pod("p", claimed("x")), pod("q", claimed("x")))
    assert found["p"] == "a"
    assert "ReadWriteOncePod access mode already in-use by another pod" in found["q"]


def test_claims_made_for_a_pod_are_found_by_its_name():
    ephemeral = {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
    objects = [node("a"), storage_class("fast", "csi.example"), claim("p-v0", "fast", owner="p"), claim("q-v0", "fast", owner="r")]
    found, _ = placed(*objects, *(pod(name, ephemeral) for name in ("p", "q", "r")))
    assert found["p"] == "a"
    assert "PVC default/q-v0 was not created for pod default/q (pod is not owner)" in found["q"]
    assert 'waiting for ephemeral volume controller to create the persistentvolumeclaim "r-v0"' in found["r"]


# limits


def limited(count):
    facts = [node("a"), node("bb"), csi_node("a", d=count), csi_node("bb", d=0)]
    for name in "xyz":
        facts += [claim(name, "fast", volume=f"v{name}"), volume(f"v{name}", "fast", **csi(name))]
    return facts


def test_limits_are_used_up():
    found, _ = placed(*limited(2), *(pod(f"p{name}", claimed(name)) for name in "xyz"))
    assert (found["px"], found["py"]) == ("a", "a")
    assert found["pz"].startswith("0/2 nodes are available: 2 node(s) exceed max volume count.")


def test_a_csi_node_reaches_the_class_of_a_pod():
    store = load_cluster([*limited(0), pod("p", claimed("x"))])
    chooser = Chooser(POLICY, store)
    waiting = store.pending["default/p"]
    assert chooser.choose(waiting).row is None
    store.set_fact(read(csi_node("bb", d=1)))
    assert chooser.choose(waiting).row == store.row_of["bb"]
    store.remove_fact(CSINode, "a")  # no limits are known there
    assert chooser.choose(waiting).feasible == 2
    store.set_fact(read(attachment("at", "bb", "vz")))
    assert chooser.choose(waiting).row == store.row_of["a"]
    store.remove_fact(VolumeAttachment, "at")
    assert chooser.choose(waiting).feasible == 2


def test_supposed_pods_count_as_if_they_were_there():
    store = load_cluster([*limited(2), pod("p", claimed("x"), on="a"), pod("q", claimed("y")), pod("r", claimed("x"))])
    rows = np.array([store.row_of["a"]] * 3)
    there, coming, same = (store.seats[rows[0]]["default/p"], store.pending["default/q"], store.pending["default/r"])
    worlds = [Supposition(added=[coming]), Supposition(removed=[there]), Supposition(added=[same], removed=[there])]
    supposed = Cluster(store).suppose(rows, worlds)[CSI_VOLUMES]
    assert supposed.count("d").tolist() == [2, 0, 1]
    names = frozenset({"x"})
    assert Cluster(store).suppose(rows, worlds)[CLAIMS].supposed(names).tolist() == [0, -1, 0]


def test_forgotten_asks_are_asked_again(monkeypatch):
    objects = [node("a"), node("bb"), storage_class("local"), *(volume(f"v{i}", on="a", size=f"{i}Gi") for i in range(1, 4))]
    objects += [claim(name) for name in "wxyz"] + [pod(f"p{name}", claimed(name)) for name in "wxyz"]
    usual, _ = placed(*objects, pod("plain"))
    monkeypatch.setattr("stowplan.policy.choose.MOST_NUMBERS", 1)
    assert placed(*objects, pod("plain"))[0] == usual
    assert [usual[f"p{name}"] for name in "wxy"] == ["a"] * 3


# columns follow facts


def column(store):
    """All that the column says, by node name."""
    view = Cluster(store)[CSI_VOLUMES]
    names = [n.name for n in store.nodes]
    drivers = ("d", "e", "ebs.csi.aws.com")
    held = {
        driver: list(zip(view.count(driver).tolist(), view.limit(driver).tolist(), view.installed(driver).tolist(), strict=True))
        for driver in drivers
    }
    rest = zip(view.known().tolist(), view.limited().tolist(), strict=True)
    faults = {text: mask.tolist() for text, mask in view.faults().items()}
    told = {
        name: ([held[d][i] for d in drivers], known, sorted(t for t in faults if faults[t][i]))
        for i, (name, known) in enumerate(zip(names, rest, strict=True))
    }
    used = [Cluster(store)[CLAIMS].used("default", [f"c{i}"]) for i in range(4)]
    return dict(sorted(told.items())), used


def events(dice):
    """Endless random changes: the name of a method of a store, and its arguments."""
    names = ["a", "bb", "ccc"]
    sources = [csi("h1"), csi("h2", "e"), csi("h1"), {"awsElasticBlockStore": {"volumeID": "vol-1"}}, {"nfs": {"server": "s"}}]
    inline = [claimed("c0"), claimed("c1"), claimed("c2"), {"awsElasticBlockStore": {"volumeID": "vol-1"}}]
    inline += [{"awsElasticBlockStore": {"volumeID": "aws://z/odd"}}, {"ephemeral": {}}]
    while True:
        name, number = dice.choice(names), dice.randrange(4)
        limits = {driver: dice.choice([None, 0, 3]) for driver in dice.sample(["d", "e"], dice.randrange(3))}
        facts = [
            csi_node(name, **limits),
            claim(f"c{number}", "fast", volume=dice.choice([None, "v0", "v1"]), owner=dice.choice([None, "p0"])),
            volume(f"v{number % 2}", **dice.choice(sources)),
            storage_class("fast", dice.choice(["d", "kubernetes.io/aws-ebs"])),
            attachment(f"at{number}", name, f"v{number % 2}"),
        ]
        gone = [
            (CSINode, name),
            (PersistentVolumeClaim, f"default/c{number}"),
            (PersistentVolume, f"v{number % 2}"),
            (VolumeAttachment, f"at{number}"),
        ]
        running = read(pod(f"p{number}", *dice.sample(inline, dice.randrange(3)), on=name))
        yield dice.choice(
            [
                ("set_node", read(node(name))),
                ("remove_node", name),
                *(("set_fact", read(fact)) for fact in facts * 2),
                *(("remove_fact", *key) for key in gone),
                *[("set_pod", running)] * 5,
                ("remove_pod", f"default/p{number}"),
            ]
        )


@pytest.mark.parametrize("seed", range(12))
def test_the_columns_are_what_a_new_store_would_have(seed):
    store = Store()
    column(store)
    for number, (change, *arguments) in zip(range(150), events(random.Random(seed)), strict=False):  # noqa: S311 - no secrets here
        if change != "remove_node" or arguments[0] in store.row_of:
            getattr(store, change)(*arguments)
        if number % 6 == 0:
            rebuilt = Store()
            for facts in store.facts.values():
                for fact in facts.values():
                    rebuilt.add(fact)
            for each in store.nodes:
                rebuilt.add(each)
            for pods in store.seats:
                for each in pods.values():
                    rebuilt.add(each)
            assert column(store) == column(rebuilt)


# rows answer for themselves


@pytest.mark.parametrize("seed", range(6))
def test_a_row_does_not_depend_on_the_others(seed):
    dice = random.Random(seed)  # noqa: S311 - no secrets here
    names = [f"n{'x' * i}" for i in range(6)]
    objects = [node(name) for name in names] + [storage_class("local"), storage_class("fast", "d")]
    objects += [csi_node(name, d=dice.choice([0, 1, 2, None])) for name in names[1:]]
    objects += [volume(f"l{i}", size=f"{i + 1}Gi", on=dice.choice(names)) for i in range(9)]
    for i in range(6):
        objects += [claim(f"b{i}", "fast", volume=f"b{i}"), volume(f"b{i}", "fast", on=dice.choice([None, *names]), **csi(f"h{i}"))]
        objects += [claim(f"w{i}", size=f"{dice.randint(1, 7)}Gi"), claim(f"d{i}", "fast")]
    disks = [{"gcePersistentDisk": {"pdName": name}} for name in "ab"]
    uses = [claimed(f"{kind}{i}") for kind in "bwd" for i in range(6)] + disks
    objects += [pod(f"r{i}", *dice.sample(uses, 2), on=dice.choice(names)) for i in range(6)]
    objects += [pod(f"p{i}", *dice.sample(uses, dice.randint(1, 3))) for i in range(8)]
    store = load_cluster(objects)
    everywhere = Cluster(store)
    profile = POLICY.profiles["default-scheduler"]
    for waiting in store.pending.values():
        for name in VOLUME_PLUGINS:
            plugin = PLUGINS[name]
            ask = plugin.asks(waiting, profile.args[name], everywhere)
            if ask is None or (whole := plugin.rejects(ask, everywhere)) is None:
                continue
            for row in range(len(names)):
                alone = plugin.rejects(ask, everywhere.rows(np.array([row])))
                said = {reason.text for reason, mask in alone.items() if mask[0]}
                assert said == {reason.text for reason, mask in whole.items() if mask[row]}


# reading


def test_volumes_of_in_tree_plugins_are_csi_volumes():
    def disk(labels=None, **source):
        item = volume("v", **source)
        item["metadata"]["labels"] = labels or {}
        return read(item).disk

    zone = "topology.kubernetes.io/zone"
    for written in ("vol-1", "aws://us-east-1a/vol-1", "aws:///vol-1"):
        assert disk(awsElasticBlockStore={"volumeID": written})[:2] == ("ebs.csi.aws.com", "vol-1")
    assert "Invalid format for AWS volume (aws://z/x)" in disk(awsElasticBlockStore={"volumeID": "aws://z/x"}).fault
    disks = {
        None: "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/pd",
        "us-east1-b": "projects/UNSPECIFIED/zones/us-east1-b/disks/pd",
        "us-east1-b__us-east1-c": "projects/UNSPECIFIED/regions/us-east1/disks/pd",
    }
    for zones, handle in disks.items():
        assert disk({zone: zones} if zones else None, gcePersistentDisk={"pdName": "pd"}).handle == handle
    assert "multiple or no regions" in disk({zone: "a-b-c__a-d-e"}, gcePersistentDisk={"pdName": "pd"}).fault
    assert not disk(azureFile={"shareName": "s"}).plugin.on
    assert disk(nfs={"server": "s"}) is None


def test_unlimited_is_no_limit():
    store = load_cluster([node("a"), csi_node("a", d=None, e=0)])
    view = Cluster(store)[CSI_VOLUMES]
    assert (view.limit("d").tolist(), view.limit("e").tolist(), view.limit("f").tolist()) == ([UNLIMITED], [0], [UNLIMITED])
