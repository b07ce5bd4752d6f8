"""Volumes that are provisioned or chosen with the node, by the real binding protocol of claims and volumes."""

import pytest

from controlplane.objects import claim, node, nodes, pod, storage_class
from controlplane.volumes import PROVISIONER, SELECTED, VolumeControllers
from controlplane.waiting import eventually
from e2e.running import policy
from e2e.scenes import told

pytestmark = pytest.mark.slow
NO_PROVISIONER = "kubernetes.io/no-provisioner"


def uses(name, claim_name, **rest):
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}]
    return pod(name, schedulerName="stowplan", volumes=volumes, **rest)


def on(client, name):
    return eventually(lambda: client.get("pods", name)["spec"].get("nodeName"))


def local_volume(name, host):
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/mnt"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }


def test_a_claim_is_provisioned_before_its_pod_is_bound(cluster, run):
    client = cluster.admin
    client.create_all([*nodes(3), storage_class("waits", PROVISIONER), claim("data", "waits")])
    with VolumeControllers(client):
        run(policy())
        client.create(uses("web", "data"))
        node_name = on(client, "web")
    held = client.get("persistentvolumeclaims", "data")
    assert held["status"]["phase"] == "Bound"
    assert held["metadata"]["annotations"][SELECTED] == node_name


def test_without_a_provisioner_the_pod_is_not_bound(cluster, run):
    client = cluster.admin
    client.create_all([node("only"), storage_class("waits", PROVISIONER), claim("data", "waits")])
    run(policy())
    client.create(uses("web", "data"))
    eventually(lambda: client.get("persistentvolumeclaims", "data")["metadata"].get("annotations", {}).get(SELECTED) == "only")
    client.create(pod("other", schedulerName="stowplan"))
    on(client, "other")
    assert "nodeName" not in client.get("pods", "web")["spec"]


class FirstChoice:
    """Refuses the node that is asked about first, whenever it is asked about."""

    node = None

    def __contains__(self, node):
        self.node = self.node or node
        return node == self.node


def test_a_node_that_gets_no_volume_is_left(cluster, run):
    client = cluster.admin
    client.create_all([*nodes(3), storage_class("waits", PROVISIONER), claim("data", "waits")])
    with VolumeControllers(client, FirstChoice()) as controllers:
        run(policy())
        client.create(uses("web", "data"))
        node_name = eventually(lambda: client.get("pods", "web")["spec"].get("nodeName"), timeout=90)
        events = eventually(lambda: {each for each in told(client, "stowplan") if each[2] == "FailedScheduling"})
    assert {node for _, node in controllers.refused} == {controllers.refuses.node} != {node_name}
    assert any("provisioning failed for PVC" in each[4] for each in events), events


def test_pods_apart_by_rack_with_local_volumes(cluster, run):
    """kubernetes#65131: volumes of two pods that exclude each other must not be bound on one rack."""
    client = cluster.admin
    racks = {"a": "r1", "b": "r1", "c": "r2", "d": "r3"}
    for name, rack in racks.items():
        made = node(name)
        made["metadata"]["labels"]["rack"] = rack
        client.create(made)
    client.create(storage_class("local", NO_PROVISIONER))
    apart = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "rack"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    with VolumeControllers(client):
        client.create_all([local_volume(f"volume-{name}", name) for name in racks])
        eventually(lambda: all(each["status"].get("phase") == "Available" for each in client.list("persistentvolumes")))
        run(policy())
        client.create_all([claim(f"data-{at}", "local") for at in range(3)])
        client.create_all([uses(f"db-{at}", f"data-{at}", labels={"app": "db"}, affinity=affinity) for at in range(3)])
        hosts = [on(client, f"db-{at}") for at in range(3)]
    assert {racks[host] for host in hosts} == {"r1", "r2", "r3"}
    for at, host in enumerate(hosts):
        assert client.get("persistentvolumeclaims", f"data-{at}")["spec"]["volumeName"] == f"volume-{host}"
