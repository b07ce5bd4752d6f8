"""Fields of the raw object, age, readiness, taints and images: in columns a rule says what it says node by node."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.scenes import policy
from rules.test_paths import outcome
from stowplan import load_cluster
from stowplan.objects import read
from stowplan.plugins import cel_rule
from stowplan.plugins.cel_rule import columns
from stowplan.state import Cluster

IN_COLUMNS = (
    "node.ready",
    "!node.ready || node.unschedulable",
    "node.age > duration('1h') && node.age < duration('20000h')",
    'node.annotations["rack"] == "r1"',
    'node.annotations[?"rack"].orValue("none") != "r1"',
    '"rack" in node.annotations && has(node.annotations.rack)',
    'node.annotations.?rack.optMap(r, r + "x").orValue("") == "r1x"',
    "node.annotations.size() > 1",
    'node.annotations.exists(k, k == "rack" && node.annotations[k] == "r2")',
    'node.annotations.exists(k, v, k.startsWith("r") && v.endsWith(node.name))',
    'node.metadata.annotations["rack"] == "r1"',
    "has(node.metadata.annotations)",
    'has(node.metadata.annotations.rack) && node.metadata.?annotations["rack"].orValue("") == "r2"',
    'node.metadata.annotations[pod.labels.key] == "r1"',
    'node.metadata.name == "n1" || node.metadata.labels["pool"] == "x"',
    'node.metadata.uid == "" || node.metadata.creationTimestamp < timestamp("2026-01-01T00:00:00Z")',
    'node.spec.providerID.startsWith("aws:")',
    'has(node.spec.providerID) ? node.spec.providerID.size() > 5 : node.spec.?podCIDR.orValue("") == ""',
    "has(node.spec) && has(node.status) && has(node.metadata)",
    'node.spec.taints.exists(t, t.key == "a" && t.effect == "NoSchedule")',
    'semver(node.status.nodeInfo.kubeletVersion, true).isLessThan(semver("1.37.0"))',
    'has(node.status.nodeInfo.architecture) && node.status.nodeInfo.architecture == "arm64"',
    'node.status.?nodeInfo.?architecture.orValue("amd64") == "amd64"',
    'node.status.conditions.exists(c, c.type == "Ready" && c.status == "True")',
    'node.status.conditions.filter(c, c.status == "True").size() == 1',
    'node.status.conditions[0].type == "Ready" || node.status.conditions.map(c, c.type).exists(t, t == "Other")',
    'quantity(node.status.allocatable["cpu"]).isGreaterThan(quantity("2"))',
    "node.status.capacity.cpu == node.status.allocatable.cpu || node.status.capacity == node.status.allocatable",
    "has(node.status.nodeInfo) && node.spec == node.spec",
    'node.taints.exists(t, t.key == "a" && t.value == "b")',
    'node.taints.filter(t, t.effect == "NoSchedule").size() == 0',
    'node.images.exists(i, i.name == "nginx:1" && i.size > 100.0)',
    "node.images.map(i, i.size).sum() < 1500.0",
    "node.images.exists(i, node.taints.exists(t, i.name.startsWith(t.key)))",
    "node.labels.exists(k, node.labels[k] == node.annotations[?k].orValue(node.name))",
    'has(node.apiVersion) && node.apiVersion == "v1" && node.kind == "Node"',
)  # fmt: skip
BY_ROWS = ('node.metadata.?labels[?"pool"].orValue("") == "x"', "dyn(node.metadata) == node.metadata")
ALL = (*IN_COLUMNS, *BY_ROWS)
FIELDS = {
    "annotations": st.fixed_dictionaries({}, optional={"rack": st.sampled_from(("r1", "r2")), "note": st.just("n1")}),
    "creationTimestamp": st.sampled_from(("2026-01-01T00:00:00Z", "2024-02-29T01:02:03.5Z")),
    "labels": st.fixed_dictionaries({}, optional={"pool": st.sampled_from(("x", "n1"))}),
    "uid": st.just("u"),
}
SPEC = {
    "providerID": st.sampled_from(("aws:///i-1", "gce")),
    "podCIDR": st.just("10.0.0.0/24"),
    "unschedulable": st.booleans(),
    "taints": st.lists(
        st.fixed_dictionaries({"key": st.sampled_from("an"), "value": st.just("b"), "effect": st.just("NoSchedule")}), max_size=2
    ),
}
AMOUNTS = st.fixed_dictionaries({}, optional={"cpu": st.sampled_from(("2", "3500m", "4")), "memory": st.just("8Gi")})
INFO = {"kubeletVersion": st.sampled_from(("v1.36.1", "v1.37.2", "?")), "architecture": st.sampled_from(("arm64", "amd64"))}
CONDITION = st.fixed_dictionaries({"type": st.sampled_from(("Ready", "Other")), "status": st.sampled_from(("True", "False"))})
STATUS = {
    "allocatable": AMOUNTS,
    "capacity": AMOUNTS,
    "nodeInfo": st.fixed_dictionaries({}, optional=INFO),
    "conditions": st.lists(CONDITION, max_size=2),
    "images": st.lists(st.fixed_dictionaries({"names": st.just(["nginx:1", "n"]), "sizeBytes": st.integers(0, 999)}), max_size=2),
}
PART = {
    "metadata": st.fixed_dictionaries({}, optional=FIELDS),
    "spec": st.fixed_dictionaries({}, optional=SPEC),
    "status": st.fixed_dictionaries({}, optional=STATUS),
}
NODES = st.lists(
    st.fixed_dictionaries({"metadata": PART["metadata"]}, optional=dict(list(PART.items())[1:])), min_size=1, max_size=6
)
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default", "labels": {"key": "rack"}}}


def store_of(nodes):
    items = [
        {"apiVersion": "v1", "kind": "Node", **node, "metadata": {**node["metadata"], "name": f"n{index}"}}
        for index, node in enumerate(nodes)
    ]
    return load_cluster([*items, {**POD, "spec": {"containers": [{"name": "c", "image": "i"}]}}])


@cache
def compiled(text):
    return policy({"name": "r", "filter": text}).profiles["default-scheduler"].plugins["r"]


def said(text, store):
    view, plugin = Cluster(store), compiled(text)
    return outcome(plugin, plugin.asks(store.pending["default/p"], None, view), view)


@given(NODES)
@settings(max_examples=60, deadline=None)
def test_columns_and_rows_agree(nodes):
    store = store_of(nodes)
    for text in ALL:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cel_rule, "SOME", -1)
            in_columns = said(text, store)
            patch.setattr(cel_rule, "suits", lambda _: False)
            assert said(text, store) == in_columns, text


@pytest.mark.parametrize("text", IN_COLUMNS)
def test_no_node_is_looked_at_by_itself(text, monkeypatch):
    node = {"metadata": {"annotations": {"rack": "r1"}, "labels": {"pool": "x"}}, "spec": {"providerID": "aws:1"}}
    store = store_of([node, {"metadata": {}}])
    monkeypatch.setattr(cel_rule, "SOME", -1)
    monkeypatch.setattr(columns.NodeColumns, "value", None)
    monkeypatch.setattr("stowplan.plugins.cel_rule.rawcolumns.NodeView", None)
    said(text, store)


def test_new_values_are_seen():
    store = store_of([{"metadata": {"annotations": {"rack": "r2"}}}, {"metadata": {}}])
    text = 'node.annotations[?"rack"].orValue("") == "r1"'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cel_rule, "SOME", -1)
        ((_, _, refused),) = said(text, store)[0]
        assert refused == (0, 1)
        store.set_node(read({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "annotations": {"rack": "r1"}}}))
        ((_, _, refused),) = said(text, store)[0]
        assert refused == (0,)
