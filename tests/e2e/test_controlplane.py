"""The control plane of the tests is a real one, and the stand-ins do what kubelets and volume controllers do."""

import time

import pytest

from controlplane.build import VERSION
from controlplane.cleaning import clean
from controlplane.client import ApiError
from controlplane.components import start_scheduler
from controlplane.kubelet import Kubelet
from controlplane.objects import claim, condition, namespace, node, nodes, pod, pods, storage_class
from controlplane.volumes import PROVISIONER, SELECTED, VolumeControllers
from controlplane.waiting import eventually

pytestmark = pytest.mark.slow


def bound(client, count, **query):
    """The pods if `count` of them have a node."""
    found = client.list("pods", fieldSelector="spec.nodeName!=", **query)
    return found if len(found) >= count else None


def gone(client, resource, name):
    return eventually(lambda: not client.exists(resource, name))


def test_it_is_the_real_one(cluster):
    assert cluster.admin.request("GET", "/version")["gitVersion"] == VERSION
    used = cluster.apiserver.usage()
    assert used.cpu_seconds > 0.1
    assert 100 * 2**20 < used.rss <= used.peak_rss


def test_cleaning_leaves_what_the_api_server_makes(cluster):
    client = cluster.admin

    def everything():
        kinds = (
            "namespaces",
            "nodes",
            "pods",
            "persistentvolumeclaims",
            "priorityclasses",
            "clusterroles",
            "leases",
            "storageclasses",
        )
        return {kind: sorted(each["metadata"]["name"] for each in client.list(kind)) for kind in kinds}

    before = everything()
    assert [len(before[kind]) for kind in ("namespaces", "nodes", "pods")] == [4, 0, 0]
    held = pod("held", "team", nodeName="node-0000")
    held["metadata"]["finalizers"] = ["tests.example/never"]
    client.create_all([namespace("team"), *nodes(2), storage_class("waits", PROVISIONER)])
    client.create_all([held, pod("free"), claim("data", "waits", "team")])
    client.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 7})
    client.create(
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "ours", "namespace": "kube-system"}}
    )
    client.create({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "ours"}, "rules": []})
    clean(client)
    assert everything() == before


def test_kube_scheduler_binds_across_a_restart_of_the_api_server(cluster):
    cluster.admin.create_all(nodes(20))
    scheduler = start_scheduler(cluster)
    cluster.admin.create_all(pods(100, prefix="first"))
    eventually(lambda: bound(cluster.admin, 100))
    seconds = cluster.restart_apiserver()
    cluster.admin.create_all(pods(100, prefix="second"))
    begin, found = time.monotonic(), eventually(lambda: bound(cluster.admin, 200), timeout=60)
    print(f"ready {seconds:.1f} s after the kill; 100 pods bound {time.monotonic() - begin:.1f} s after they were created")
    assert len({each["metadata"]["uid"] for each in found}) == 200
    assert max(sum(each["spec"]["nodeName"] == name for each in found) for name in (f"node-{at:04}" for at in range(20))) <= 20
    assert "scheduler_schedule_attempts_total" in scheduler.metrics()


def test_zones_and_taints_reach_kube_scheduler(cluster):
    taint = {"key": "dedicated", "value": "yes", "effect": "NoSchedule"}
    cluster.admin.create_all([node("tainted", "zone-a", taints=[taint]), node("elsewhere", "zone-b")])
    start_scheduler(cluster)
    cluster.admin.create(pod("nowhere", nodeSelector={"topology.kubernetes.io/zone": "zone-a"}))
    told = eventually(lambda: condition(cluster.admin.get("pods", "nowhere"), "PodScheduled"))
    assert told["reason"] == "Unschedulable"
    assert told["message"].startswith("0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector")
    assert "1 node(s) had untolerated taint(s)" in told["message"]


def test_kubelet_runs_and_removes_pods(cluster):
    client = cluster.admin
    client.create_all(nodes(2))
    with Kubelet(client, runs=lambda each: each["metadata"]["name"] != "held") as kubelet:
        for name in ("running", "held", "unbound"):
            client.create(pod(name, **({} if name == "unbound" else {"nodeName": "node-0001"})))
        running = eventually(lambda: condition(each := client.get("pods", "running"), "Ready") and each)
        assert running["status"]["phase"] == "Running"
        assert condition(running, "Ready")["status"] == "True"
        assert [each["ready"] for each in running["status"]["containerStatuses"]] == [True]
        kubelet.finish(running)
        assert client.get("pods", "running")["status"]["phase"] == "Succeeded"
        cluster.restart_apiserver()
        client.delete("pods", "held")
        gone(client, "pods", "held")
        assert client.get("pods", "unbound")["status"]["phase"] == "Pending"


def test_without_a_kubelet_a_deleted_pod_stays(cluster):
    cluster.admin.create(node("only"))
    cluster.admin.create(pod("stays", nodeName="only"))
    cluster.admin.delete("pods", "stays")
    assert cluster.admin.get("pods", "stays")["metadata"]["deletionGracePeriodSeconds"] == 30
    with Kubelet(cluster.admin, stop_seconds=0.3):
        gone(cluster.admin, "pods", "stays")


def test_a_claim_that_waits_for_its_consumer(cluster):
    client, refuses = cluster.admin, {"node-0000", "node-0001", "node-0002"}
    client.create_all([*nodes(3), storage_class("waits", PROVISIONER), claim("data", "waits")])
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    with VolumeControllers(client, refuses) as controllers:
        assert not controllers.refused  # nobody has chosen a node
        client.create(pod("uses", volumes=volumes))
        start_scheduler(cluster)
        eventually(lambda: controllers.refused)
        assert client.get("persistentvolumeclaims", "data")["status"]["phase"] == "Pending"
        refuses.clear()
        placed = eventually(lambda: bound(client, 1))[0]
    held = client.get("persistentvolumeclaims", "data")
    volume = client.get("persistentvolumes", held["spec"]["volumeName"])
    assert placed["spec"]["nodeName"] == held["metadata"]["annotations"][SELECTED]
    assert (held["status"]["phase"], volume["status"]["phase"]) == ("Bound", "Bound")
    [term] = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == [placed["spec"]["nodeName"]]


def test_a_claim_that_is_provisioned_at_once(cluster):
    client = cluster.admin
    client.create_all([storage_class("now", PROVISIONER, mode="Immediate"), claim("data", "now")])
    with VolumeControllers(client):
        eventually(lambda: client.get("persistentvolumeclaims", "data")["status"]["phase"] == "Bound")


def test_a_service_account_may_do_what_it_was_granted(cluster):
    cluster.admin.create(namespace("team"))
    cluster.admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader", "namespace": "team"}})
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    rbac = "rbac.authorization.k8s.io"
    cluster.admin.create({"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": "reader"}, "rules": rules})
    cluster.admin.create(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "team"}],
        }
    )
    reader = cluster.client(cluster.service_account_token("reader", "team"))
    assert eventually(lambda: allowed(reader.list, "pods"))
    assert not allowed(reader.list, "nodes")
    assert not allowed(reader.create, pod("refused"))


def allowed(call, *arguments):
    try:
        call(*arguments)
    except ApiError as error:
        if error.status == 403:
            return False
        raise
    return True


def test_the_past_can_be_forgotten(cluster):
    client = cluster.admin
    old = client.create(node("old"))["metadata"]["resourceVersion"]
    client.delete("nodes", "old")
    cluster.compact()
    cluster.restart_apiserver()  # its own memory of the past goes too
    with pytest.raises(ApiError, match="410 Expired"):
        client.request("GET", "/api/v1/nodes", resourceVersion=old, resourceVersionMatch="Exact", limit=1)
