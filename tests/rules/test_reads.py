"""What a rule reads is what the checker found: from it follow caching, requeueing and preemption."""

import pytest

from rules.scenes import ZONE, cluster, policy
from stowplan.plugins.cel_rule import expressions_of
from stowplan.plugins.cel_rule.podview import SeatedView
from stowplan.plugins.cel_rule.reading import OF_PODS
from stowplan.policy.layers import reach_of
from stowplan.state import Cluster, Reach


def plugin(expression, *, variables=(), **rule):
    return policy({"name": "r", "filter": expression, **rule}, variables=variables).profiles["default-scheduler"].plugins["r"]


@pytest.mark.parametrize(
    ("expression", "columns", "reach"),
    [
        ("pod.priority > 0", set(), Reach.NODE),
        ("now > timestamp(0)", set(), Reach.NODE),
        ('node.labels[?"a"].orValue("") == "b"', {("labels", "a")}, Reach.NODE),
        ('"a" in node.labels || has(node.labels.b)', {("labels", "a"), ("labels", "b")}, Reach.NODE),
        ("node.labels.size() > 0", {("labels", None)}, Reach.NODE),
        ("node.labels[pod.labels.key] == pod.name", {("labels", None)}, Reach.NODE),
        ('node.metadata.labels["a"] == node.metadata.name', {("labels", "a"), ("name", None)}, Reach.NODE),
        ("node.taints.size() == 0 && node.unschedulable", {("taints", None), ("unschedulable", None)}, Reach.NODE),
        ("node.allocatable.cpu > 1.0", {("allocatable", None)}, Reach.NODE),
        ("node.free.cpu > 1.0", {("allocatable", None), ("requested", None)}, Reach.ROW),
        ("node.pods.exists(p, p.labels.app == 'x')", {("seats", None)}, Reach.ROW),
        ("node.status.nodeInfo.kubeletVersion == ''", {("raw object", ("status", "nodeInfo", "kubeletVersion"))}, Reach.NODE),
        ("node.annotations['x'] == ''", {("raw object", ("metadata", "annotations", "x"))}, Reach.NODE),
        ("node.ready", {("raw object", ("ready",))}, Reach.NODE),
        ("node.age > duration('1h')", {("raw object", ("metadata", "creationTimestamp"))}, Reach.NODE),
        (f'node.domain("{ZONE}").nodes > 1', {("matching pods", None), ("amounts by domain", None)}, Reach.DOMAIN),
        ("cluster.free.cpu > 1.0", {("matching pods", None), ("amounts by domain", None)}, Reach.DOMAIN),
    ],
)
def test_columns_and_reach(expression, columns, reach):
    found = plugin(expression)
    assert {(column.family, column.key) for column in found.reads} == columns
    assert reach_of(found) is reach


def test_variables_messages_and_conditions_count_too():
    found = plugin(
        "variables.b",
        variables=[("a", "node.free.cpu"), ("b", "variables.a > 1.0"), ("c", "node.ready")],
        messageExpression="node.labels.x",
        when="pod.annotations.y == ''",
    )
    assert {(column.family, column.key) for column in found.reads} == {("allocatable", None), ("requested", None), ("labels", "x")}
    expressions = expressions_of(found)
    assert set(expressions.variables) == {"a", "b"}
    assert expressions.reading.pod == {("annotations", "y")}


ALL = {"name", "namespace", "labels", "priority", "requests", "owner", "age"}


def test_all_members_of_a_pod_on_a_node_are_known():
    assert set(SeatedView.members) == OF_PODS == ALL


@pytest.mark.parametrize(
    ("expression", "of_pods", "others"),
    [
        ("node.pods.exists(p, p.priority > 0)", {"priority"}, {}),
        ("node.pods.exists(p, p.labels.app == pod.labels.app)", {"labels"}, {"pod": {("labels", "app")}}),
        ("node.pods.filter(p, p.age > duration('1h')).map(p, p.owner.name).size() > 0", {"age", "owner"}, {"timed": True}),
        ("node.pods.all(i, p, i < 3 || p.namespace == namespace.name)", {"namespace"}, {"namespace": {("name",)}}),
        ("node.pods.map(p, p.requests.cpu).sum() > 1.0", {"requests"}, {}),
        ("node.pods.size() > 1", set(), {}),
        ("node.pods.filter(p, p.priority > 0).exists(q, q.age > duration('1h'))", {"priority", "age"}, {"timed": True}),
        ("node.pods.sortBy(p, p.priority)[0].name == 'x'", {"priority", "name"}, {}),
        ("node.pods.first().hasValue()", ALL, {"timed": True}),
        ("node.pods.exists(p, p.priority > 0) && node.pods.map(p, p).size() > 0", ALL, {"timed": True}),
        ("cel.bind(all, node.pods, all.exists(p, p.name == 'x'))", {"name"}, {}),
        ("node.pods[0].priority > 0", {"priority"}, {}),
        ('node.domain("zone").pods({"app": pod.labels.app}) > 0', set(), {"pod": {("labels", "app")}, "beyond": True}),
        ("node.domain(pod.annotations.key).free.cpu > 1.0", set(), {"pod": {("annotations", "key")}, "beyond": True}),
        ("cluster.nodes > 1", set(), {"beyond": True, "cluster": True}),
        ("cluster.requested.cpu / cluster.allocatable.cpu < 0.5", set(), {"beyond": True, "cluster": True}),
        ("now.isBetween('22:00', '06:00', 'UTC')", set(), {"timed": True, "now": True}),
        ("pod.age > duration('1m')", set(), {"pod": {("age",)}, "timed": True, "now": True}),
        ("params.least < node.allocatable.cpu", set(), {}),
        ("node.allocatable[params.name] > 0.0", set(), {}),
        (
            "namespace.labels.tier == 'x' && namespace.annotations['y'] == ''",
            set(),
            {"namespace": {("labels", "tier"), ("annotations", "y")}},
        ),
        ("variables.old", set(), {"timed": True, "now": True}),
        ("variables.far > 1", set(), {"beyond": True, "cluster": True}),
        ("pod.spec.containers.exists(c, c.image == node.name)", set(), {"pod": {("spec", "containers")}}),
    ],
)
def test_what_is_read_besides_columns(expression, of_pods, others):
    variables = [("old", "node.age > duration('1h')"), ("far", "cluster.nodes"), ("unused", "node.pods.size() + cluster.nodes")]
    found = plugin(expression, variables=variables, params={"least": 2.0, "name": "cpu"})
    reading = expressions_of(found).reading
    assert reading.of_pods == of_pods
    assert reading.pods is ("node.pods" in expression)
    for name, nothing in (("pod", set()), ("namespace", set()), ("beyond", False), ("cluster", False), ("now", False)):
        assert getattr(reading, name) == others.get(name, nothing), name
    assert reading.timed is others.get("timed", False)
    assert reading.of_node is ("node" in expression or "cluster" in expression or "variables" in expression)


def test_an_amount_whose_name_is_computed_reads_all_amounts():
    reading = expressions_of(plugin("node.allocatable[pod.labels.resource] > 0.0")).reading
    assert {column.family: names for column, names in reading.amounts.items()} == {"allocatable": None}
    reading = expressions_of(plugin("node.free.cpu > 1.0 && node.allocatable['example.com/gpu'] > 0.0")).reading
    assert {column.family: names for column, names in reading.amounts.items()} == {
        "allocatable": {"cpu", "example.com/gpu"},
        "requested": {"cpu"},
    }


PODS = """pod a cpu=1 labels=app=x,other=1
pod b cpu=2 labels=app=x,other=2
pod c cpu=1 labels=app=y,other=1
pod web/d cpu=1 labels=app=x,other=1"""


@pytest.mark.parametrize(
    ("expression", "alike"),
    [
        ("true", {"a", "b", "c", "web/d"}),
        ("pod.labels.app == node.name", {"a", "b", "web/d"}),
        ("pod.requests.cpu > node.free.cpu", {"a", "c", "web/d"}),
        ("pod.labels.size() > 3", {"a", "web/d"}),
        ('cluster.pods({"q": "r"}) > 0', {"a", "b", "c"}),
        ("namespace.name == node.name", {"a", "b", "c"}),
        ("pod.name == node.name", {"a"}),
        ("variables.app == ''", {"a", "b", "web/d"}),
    ],
)
def test_pods_that_look_the_same_share_an_ask(expression, alike):
    store = cluster(f"node n cpu=4\n{PODS}")
    found = plugin(expression, variables=[("app", "pod.labels.app")])
    asks = {key.removeprefix("default/"): found.asks(pod, None, Cluster(store)) for key, pod in store.pending.items()}
    assert {name for name, ask in asks.items() if ask == asks["a"] and hash(ask) == hash(asks["a"])} == alike
    assert found.personal == (expression == "pod.name == node.name")


def test_the_moment_counts_only_for_rules_that_look_at_it():
    store = cluster(f"node n cpu=4\n{PODS}")
    pod = store.pending["default/a"]
    for expression, moves in (("now > timestamp(0)", True), ("node.age > duration('1h')", True), ("node.ready", False)):
        found = plugin(expression)
        store.set_now(1.0)
        before = found.asks(pod, None, Cluster(store))
        store.set_now(2.0)
        assert (found.asks(pod, None, Cluster(store)) != before) is moves
