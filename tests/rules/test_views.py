"""What rules see of pods, nodes and namespaces."""

import pytest

from rules.scenes import ZONE, cluster, explained, passing, policy, scored
from stowplan.objects import read

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "a",
        "labels": {"pool": "x", ZONE: "z1"},
        "annotations": {"example.com/rack": "r7"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
    },
    "spec": {"providerID": "aws:///i-1", "taints": [{"key": "team", "value": "x", "effect": "PreferNoSchedule"}]},
    "status": {
        "allocatable": {"cpu": "3500m", "memory": "8Gi", "pods": "110", "example.com/gpu": "4"},
        "capacity": {"cpu": 4, "memory": "8Gi"},
        "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-02T00:00:00Z"}],
        "nodeInfo": {"kubeletVersion": "v1.37.2"},
        "images": [{"names": ["nginx:1", "nginx@sha256:0"], "sizeBytes": 1000}],
    },
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "namespace": "default",
        "labels": {"app": "w"},
        "annotations": {"note": "n"},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "w-1", "uid": "u", "controller": True}],
    },
    "spec": {
        "priority": 7,
        "serviceAccountName": "robot",
        "containers": [
            {"name": "c", "image": "nginx:1", "env": [{"name": "A", "value": "b"}], "resources": {"requests": {"cpu": "250m"}}}
        ],
    },
}
NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "default", "labels": {"tier": "gold"}, "annotations": {"a": "b"}},
}
NOW = 1767225600.0 + 3600  # an hour after the node was made


@pytest.mark.parametrize(
    "expression",
    [
        # short views of the node
        'node.name == "a" && node.labels.pool == "x" && node.labels["pool"] == "x"',
        'node.annotations["example.com/rack"] == "r7"',
        "node.allocatable.cpu == 3.5 && node.allocatable.memory == 8.0 * 1024.0 * 1024.0 * 1024.0",
        'node.allocatable["example.com/gpu"] == 4.0 && node.allocatable["example.com/other"] == 0.0',
        '"example.com/gpu" in node.allocatable && !("example.com/other" in node.allocatable)',
        "has(node.allocatable.cpu) && !has(node.requested.memory)",
        "node.requested.cpu == 1.0 && node.free.cpu == 2.5 && node.free.memory == node.allocatable.memory",
        'node.pods.size() == 1 && node.pods[0].labels.app == "w" && node.pods[0].requests.cpu == 1.0',
        'node.pods.all(p, p.namespace == "default" && p.priority == 0 && p.name == "run" && !has(p.owner))',
        'node.taints.exists(t, t.key == "team" && t.effect == "PreferNoSchedule") && !node.unschedulable && node.ready',
        'node.images.exists(i, i.name == "nginx:1" && i.size == 1000.0)',
        'node.age == duration("1h")',
        # the object itself
        'node.metadata.name == "a" && node.metadata.labels["pool"] == "x" && has(node.metadata.annotations)',
        'node.spec.providerID.startsWith("aws:") && node.spec.taints[0].value == "x"',
        'quantity(node.status.allocatable["cpu"]).isLessThan(quantity(node.status.capacity["cpu"]))',
        'node.status.conditions.exists(c, c.type == "Ready" && c.lastHeartbeatTime > node.metadata.creationTimestamp)',
        'semver(node.status.nodeInfo.kubeletVersion, true).isGreaterThan(semver("1.30.0"))',
        "has(node.spec) && !has(node.status.config) && !has(node.status.nodeInfo.bootID)",
        'has(node.status.nodeInfo) && node.status.nodeInfo.?bootID.orValue("none") == "none"',
        "node.status.?config.?active.hasValue() == false && !has(pod.status.phase)",
        'has(node.status.nodeInfo) && !has(node.status.phase) && node.status.?phase.orValue("none") == "none"',
        # the pod
        'pod.name == "p" && pod.namespace == "default" && pod.labels.app == "w" && pod.annotations.note == "n"',
        "pod.requests.cpu == 0.25 && pod.requests.memory == 0.0 && pod.priority == 7",
        'pod.owner.kind == "ReplicaSet" && pod.owner.name == "w-1"',
        'pod.spec.serviceAccountName == "robot" && pod.spec.containers[0].env[0].value == "b" && pod.metadata.labels.app == "w"',
        # its namespace
        'namespace.name == "default" && namespace.labels.tier == "gold" && namespace.annotations.a == "b"',
        'namespace.metadata.labels["kubernetes.io/metadata.name"] == "default" || namespace.metadata.labels.tier == "gold"',
        # domains and the cluster
        f'node.domain("{ZONE}").value == "z1" && node.domain("{ZONE}").nodes == 2 && node.domain("none").nodes == 0',
        f'node.domain("{ZONE}").allocatable.cpu == 11.5 && node.domain("{ZONE}").free.cpu == 10.5',
        f'node.domain("{ZONE}").pods({{"app": "w"}}) == 1 && node.domain("{ZONE}").pods({{"app": "w"}}, ["other"]) == 0',
        'cluster.nodes == 3 && cluster.requested.cpu == 2.0 && cluster.pods({"app": "w"}) == 2 && cluster.pods({"app": "q"}) == 0',
        # time
        'now == timestamp("2026-01-01T01:00:00Z") && now.getHours("Europe/Berlin") == 2',
        'now.isBetween("00:30", "02:00", "UTC") && !now.isBetween("01:01", "02:00", "UTC")',
        'now.isBetween("22:00", "06:00", "UTC") && now.isBetween("00:00", "24:00", "UTC")',
        'now.weekday("UTC") == "Thu" && now.weekday("Pacific/Honolulu") == "Wed"',
    ],
)
def test_what_a_rule_sees(expression):
    text = "node b cpu=8 zone=z1\nnode c cpu=8 zone=z2\npod run on=a cpu=1 labels=app=w\npod more on=c cpu=1 labels=app=w"
    assert "a" in passing(text, expression, NODE, POD, NAMESPACE, now=NOW)


def test_an_absent_member_is_an_error_that_rejects_the_node():
    text = "node b cpu=8 labels=pool=x\nnode c\npod p"
    assert passing(text, 'node.labels.pool == "x"') == ["b"]
    assert passing(text, 'node.labels.pool == "x"', onError="Admit") == ["b", "c"]
    found = explained(policy({"name": "r", "filter": 'node.labels.pool == "x"'}), cluster(text))
    assert found["infeasible"]["c"]["reasons"] == ["rule r failed: no such key: pool"]


def test_scores_that_have_no_value_are_zero_or_reject():
    text = "node b labels=w=3\nnode c labels=w=x\npod p"
    assert scored(text, 'int(node.labels["w"])') == {"b": 3, "c": 0}
    assert scored(text, 'int(node.labels["w"])', onError="Reject") == {"b": 3}
    assert scored(text, "0.0 / 0.0") == {"b": 0, "c": 0}


def test_errors_are_told_whatever_they_lead_to():
    text = "node b labels=w=3\nnode c labels=w=x\nnode d\npod p"
    rules = (
        {"name": "s", "score": 'int(node.labels["w"])'},
        {"name": "f", "filter": 'int(node.labels["w"]) > 0', "onError": "Admit"},
        {"name": "g", "filter": "true"},
    )
    found = explained(policy(*rules), cluster(text))
    assert found["feasible"] == ["b", "c", "d"]
    assert {rule: set(nodes) for rule, nodes in found["ruleErrors"].items()} == {"s": {"c", "d"}, "f": {"c", "d"}}
    assert found["ruleErrors"]["s"]["d"] == "no such key: w"
    assert found["ruleErrors"]["f"] == found["ruleErrors"]["s"]


def test_a_heartbeat_counts_only_for_rules_that_read_it():
    def beating(time, version="v1.37.2"):
        status = NODE["status"] | {
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": time}],
            "nodeInfo": {"kubeletVersion": version},
        }
        return read(NODE | {"status": status})

    store = cluster("pod p", NODE)
    explained(policy({"name": "r", "filter": 'node.status.nodeInfo.kubeletVersion == "v1.37.2"'}), store)
    before = store.epoch
    store.set_node(beating("2026-01-03T00:00:00Z"))
    assert store.epoch == before
    assert b"2026-01-03" in store.nodes[0].raw
    store.set_node(beating("2026-01-03T00:00:00Z", version="v1.38.0"))
    assert store.epoch == before + 1
    rejected = explained(policy({"name": "r", "filter": 'node.status.nodeInfo.kubeletVersion == "v1.37.2"'}), store)
    assert "a" in rejected["infeasible"]


def test_pods_that_are_thought_away_are_not_there():
    """Preemption asks about nodes without their less important pods."""
    text = "node a cpu=4\npod low on=a cpu=1 labels=app=w\npod p priority=10 labels=app=w"
    rule = {"name": "alone", "filter": "!node.pods.exists(p, p.labels.app == pod.labels.app)"}
    assert explained(policy(rule), cluster(text))["preemption"]["victims"] == ["default/low"]
    assert "victims" not in explained(policy(rule | {"preemptionHelps": False}), cluster(text))["preemption"]
    domain = {"name": "few", "filter": f'node.domain("{ZONE}").pods({{"app": "w"}}) == 0'}
    assert explained(policy(domain), cluster(text.replace("cpu=4", "cpu=4 zone=z")))["preemption"]["victims"] == ["default/low"]
    full = {"name": "reserve", "filter": "node.free.cpu - pod.requests.cpu >= 3.5"}
    assert explained(policy(full), cluster(text))["preemption"]["victims"] == ["default/low"]
