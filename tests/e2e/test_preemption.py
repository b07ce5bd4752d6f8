"""Preemption on a real API server: who is evicted, what the pods say meanwhile, and what the victims are told."""

import pytest

from controlplane.kubelet import Kubelet
from controlplane.objects import condition, node, pod
from controlplane.waiting import eventually
from e2e.running import policy
from e2e.scenes import told

pytestmark = pytest.mark.slow


def priority(name, value):
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def budget(name, labels, least):
    spec = {"minAvailable": least, "selector": {"matchLabels": labels}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}


def occupant(name, on, **rest):
    return pod(name, nodeName=on, requests={"cpu": "6"}, **rest)


def allow(client, name, disruptions):
    """What the disruption controller would write."""
    client.patch(
        "poddisruptionbudgets",
        name,
        {"status": {"disruptionsAllowed": disruptions, "observedGeneration": 1}},
        subresource="status",
    )


def test_a_budget_is_kept_where_another_node_will_do(cluster, run):
    client = cluster.admin
    client.create_all([priority("urgent", 1000), node("guarded"), node("open")])
    client.create(budget("web", {"app": "web"}, 1))
    allow(client, "web", 0)
    client.create(occupant("protected", "guarded", labels={"app": "web"}))
    client.create(occupant("free", "open", labels={"app": "batch"}))
    with Kubelet(client, stop_seconds=2.0):
        eventually(lambda: client.get("pods", "free")["status"]["phase"] == "Running")
        run(policy())
        client.create(pod("comes", schedulerName="stowplan", priorityClassName="urgent", requests={"cpu": "6"}))
        victim = eventually(lambda: "deletionTimestamp" in (each := client.get("pods", "free"))["metadata"] and each)
        assert condition(victim, "DisruptionTarget")
        comes = eventually(lambda: (each := client.get("pods", "comes"))["status"].get("nominatedNodeName") and each)
        events = eventually(lambda: {each for each in told(client, "stowplan") if each[0] == "free"})
        target = condition(victim, "DisruptionTarget")
        assert (target["status"], target["reason"]) == ("True", "PreemptionByScheduler")
        assert target["message"] == "stowplan: preempting to accommodate a higher priority pod"
        assert comes["status"]["nominatedNodeName"] == "open"
        uid = comes["metadata"]["uid"]
        assert events == {("free", "Normal", "Preempted", "Preempting", f"Preempted by pod {uid} on node open")}
        waits = condition(comes, "PodScheduled")
        assert waits["reason"] == "Unschedulable"
        assert waits["message"].startswith("0/2 nodes are available: 2 Insufficient cpu. preemption: ")
        bound = eventually(lambda: (each := client.get("pods", "comes"))["spec"].get("nodeName") and each)
    assert bound["spec"]["nodeName"] == "open"
    assert "nominatedNodeName" not in bound["status"] or bound["status"]["nominatedNodeName"] == "open"
    assert client.get("pods", "protected")["status"]["phase"] == "Running"


def test_a_budget_is_broken_where_nothing_else_helps(cluster, run):
    client = cluster.admin
    client.create_all([priority("urgent", 1000), node("only"), budget("web", {"app": "web"}, 1)])
    allow(client, "web", 0)
    client.create(occupant("protected", "only", labels={"app": "web"}))
    with Kubelet(client):
        run(policy())
        client.create(pod("comes", schedulerName="stowplan", priorityClassName="urgent", requests={"cpu": "6"}))
        eventually(lambda: client.get("pods", "comes")["spec"].get("nodeName") == "only")
    assert not client.exists("pods", "protected")


def test_a_pod_that_never_preempts_waits(cluster, run):
    client = cluster.admin
    modest = priority("modest", 1000) | {"preemptionPolicy": "Never"}
    client.create_all([modest, node("only"), occupant("stays", "only")])
    with Kubelet(client) as kubelet:
        run(policy())
        client.create(pod("waits", schedulerName="stowplan", priorityClassName="modest", requests={"cpu": "6"}))
        waits = eventually(lambda: condition(client.get("pods", "waits"), "PodScheduled"))
        said = "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never."
        assert waits["message"] == said
        kubelet.finish(client.get("pods", "stays"))
        eventually(lambda: client.get("pods", "waits")["spec"].get("nodeName") == "only")
