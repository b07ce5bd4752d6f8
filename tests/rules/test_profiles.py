"""Rules in profiles: where they may stand, how they join the plugins, and what is said about those that are wrong."""

import json

import pytest

from rules.scenes import cluster, document, explained, policy
from stowplan import load_policy, simulate
from stowplan.policy.compile import PolicyError, load
from stowplan.text import Code, Source

TWO = "node a cpu=4 label.disk=ssd\nnode b cpu=4\npod p"
SSD = {"name": "ssd", "score": 'node.labels[?"disk"].orValue("") == "ssd" ? 10 : 0'}
HEAD = "apiVersion: stowplan.io/v1alpha1\nkind: SchedulerPolicy\nprofiles:\n- schedulerName: default-scheduler\n"


def findings(body):
    """Code, the marked text, message and notes of each error."""
    with pytest.raises(PolicyError) as raised:
        load(Source("f.yaml", HEAD + body))
    return [(d.code, d.span.text, d.message, d.notes) for d in raised.value.diagnostics if d.is_error]


def kubernetes(*rules, **profile):
    """The same rules in a KubeSchedulerConfiguration."""
    config = [{"name": "stowplan.io/Rules", "args": {"rules": list(rules)}}, *profile.pop("pluginConfig", [])]
    members = {"schedulerName": "default-scheduler", "pluginConfig": config, **profile}
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [members]}


@pytest.mark.parametrize(
    ("written", "marked"),
    [
        ("node.labls.x == 'y'", "labls"),
        ("'node.labls.x == ''y'''", "labls"),
        ('"node.labels.x == \\"y\\" && node.labls.x == \\"y\\""', "labls"),
        ("|\n      node.labels.x == 'y'\n        && node.labls.x == 'y'", "labls"),
        (">-\n      node.labels.x == 'y' &&\n\n      node.labls.x\n      == 'y'", "labls"),
        ("node.labels.x == 'y' &&\n      node.labls.x == 'y'", "labls"),
        ("node.labels.x == 'y' &&", "'y' &&"),
    ],
)
def test_a_caret_lands_inside_the_scalar(written, marked):
    (found,) = findings(f"  rules:\n  - name: a\n    filter: {written}\n")
    assert found[0] in (Code.UNKNOWN_NAME, Code.EXPRESSION)
    assert found[1] == marked or written.endswith("&&")
    if marked == "labls":
        assert found[2] == "undefined field 'labls' in Node, did you mean \"labels\"?"


@pytest.mark.parametrize(
    ("body", "marked", "message"),
    [
        ("  rules:\n  - filter: 'true'\n", "filter: 'true'", "Required value"),
        ("  rules:\n  - name: a\n", "name: a", "Required value: a rule is a filter or a score"),
        (
            "  rules:\n  - name: a\n    filter: 'true'\n    score: '1'\n",
            "'true'",
            "Forbidden: a rule cannot be a filter and a score",
        ),
        ("  rules:\n  - name: a\n    filter: 'true'\n    weight: 2\n", "2", "Forbidden: only a score has it"),
        ("  rules:\n  - name: a\n    score: '1'\n    message: no\n", "no", "expected a string, got false"),
        ("  rules:\n  - name: a\n    score: '1'\n    weight: 0\n", "0", "Invalid value: 0"),
        ("  rules:\n  - name: a\n    filter: 'true'\n    mode: Watch\n", "Watch", 'Unsupported value: "Watch"'),
        ("  rules:\n  - name: a\n    filter: 'true'\n    onError: Zero\n", "Zero", 'Unsupported value: "Zero"'),
        ("  rules:\n  - name: a\n    filter: node.name\n", "node.name", "must give bool, this gives string"),
        ("  rules:\n  - name: a\n    score: node.ready\n", "node.ready", "must give int or double, this gives bool"),
        ("  rules:\n  - name: NodeName\n    filter: 'true'\n", "NodeName", '"NodeName" is the name of a plugin'),
        ("  rules:\n  - name: a\n    filter: 'true'\n    when: node.ready\n", "node", "undeclared reference to 'node'"),
        ("  rules:\n  - name: a\n    filter: node == node\n", "node == node", "the node as a whole cannot be used"),
        ("  rules:\n  - name: a\n    fliter: 'true'\n", "fliter", 'unknown field "profiles[0].rules[0].fliter"'),
        ("  variables:\n  - name: a-b\n    expression: '1'\n", "a-b", 'Invalid value: "a-b"'),
        ("  variables:\n  - {name: a, expression: variables.b}\n", "variables", "undeclared reference to 'variables'"),
    ],
)
def test_what_is_wrong_is_told_at_its_place(body, marked, message):
    found = [(span.strip(), text) for _, span, text, _ in findings(body)]
    assert any(span == marked and text.startswith(message) for span, text in found), found


def test_every_mistake_is_told_at_once():
    body = "  rules:\n  - {name: a, filter: node.x}\n  - {name: a, filter: node.y}\n  - {name: b, score: pod.z, mode: X}\n"
    assert [span for _, span, _, _ in findings(body)] == ["x", "a", "y", "z", "X"]


def test_rules_of_a_policy_are_unknown_to_kube_scheduler():
    config = kubernetes(SSD)
    config["profiles"][0]["rules"] = [SSD]
    with pytest.raises(PolicyError, match=r'unknown field "profiles\[0\].rules"'):
        load_policy(config)


def test_one_file_serves_both_schedulers():
    found = explained(load_policy(kubernetes(SSD)), cluster(TWO))
    assert found["scores"]["ssd"] == {"weight": 1, "raw": {"a": 10, "b": 0}, "normalized": {"a": 10, "b": 0}}
    assert found["best"] == ["a"]
    with pytest.raises(PolicyError, match=r"must be a positive integer here"):
        load_policy(kubernetes(SSD | {"weight": 0.5}))


def test_rules_run_after_the_built_in_plugins_in_order_of_writing():
    rules = ({"name": "z", "filter": "node.ready || true"}, SSD, {"name": "a", "filter": "true"})
    points = policy(*rules).profiles["default-scheduler"].points
    assert points["filter"][-2:] == ("z", "a")
    assert points["score"][-1] == "ssd"
    assert "ssd" not in points["filter"]


def test_rules_are_plugins_by_name():
    disabled = policy(SSD, plugins={"score": {"disabled": [{"name": "ssd"}]}})
    assert "ssd" not in explained(disabled, cluster(TWO))["scores"]
    alone = policy(SSD, plugins={"score": {"disabled": [{"name": "*"}]}})
    assert list(explained(alone, cluster(TWO))["scores"]) == ["ssd"]
    heavy = policy(SSD, plugins={"score": {"enabled": [{"name": "ssd", "weight": 7}]}})
    assert explained(heavy, cluster(TWO))["scores"]["ssd"]["weight"] == 7


def test_params_are_overridden_like_args():
    rule = {"name": "r", "params": {"allowed": ["a"]}, "filter": "node.name in params.allowed"}
    assert explained(policy(rule), cluster(TWO))["feasible"] == ["a"]
    given = policy(rule, pluginConfig=[{"name": "r", "args": {"allowed": ["b"]}}])
    assert explained(given, cluster(TWO))["feasible"] == ["b"]
    with pytest.raises(PolicyError, match=r'rule r has no parameter "alowed"'):
        policy(rule, pluginConfig=[{"name": "r", "args": {"alowed": ["b"]}}])


def test_totals_with_fractions_are_exact():
    rules = [{"name": f"r{i}", "score": "0.1", "weight": 0.1} for i in range(30)]
    found = explained(policy(*rules, plugins={"multiPoint": {"disabled": [{"name": "TaintToleration"}]}}), cluster(TWO))
    plain = explained(load_policy(None), cluster(TWO))
    without = plain["totals"]["a"] - 3 * 100
    assert found["totals"]["a"] == pytest.approx(without + 0.3, abs=0)
    assert found["scores"]["r0"]["weight"] == 0.1
    whole = explained(policy(SSD), cluster(TWO))
    assert whole["totals"] == {"a": plain["totals"]["a"] + 10, "b": plain["totals"]["b"]}
    assert all(isinstance(total, int) for total in whole["totals"].values())


@pytest.mark.parametrize(
    ("normalize", "wanted"),
    [
        ("None", {"a": 2, "b": 6, "c": 10}),
        ("MinMax", {"a": 0, "b": 50, "c": 100}),
        ("MaxToHundred", {"a": 20, "b": 60, "c": 100}),
        ("Reverse", {"a": 80, "b": 40, "c": 0}),
    ],
)
@pytest.mark.parametrize("number", ["int", "double"])
def test_normalisation(normalize, wanted, number):
    text = "node a labels=w=2\nnode b labels=w=6\nnode c labels=w=10\npod p"
    rule = {"name": "r", "score": f'{number}(node.labels["w"])', "normalize": normalize, "weight": -1}
    found = explained(policy(rule), cluster(text))["scores"]["r"]
    assert found["normalized"] == wanted
    assert found["weight"] == -1


def test_modes():
    rule = {"name": "r", "filter": 'node.name == "b"', "message": "not b"}
    assert explained(policy(rule), cluster(TWO))["feasible"] == ["b"]
    assert explained(policy(rule | {"mode": "Off"}), cluster(TWO))["feasible"] == ["a", "b"]
    watched = policy(rule | {"mode": "Audit"}, SSD)
    found = explained(watched, cluster(TWO))
    assert found["feasible"] == ["a", "b"]
    assert found["audit"] == {"r": {"rejects": {"a": "not b"}}}
    (placement,) = simulate(watched, cluster(TWO)).to_json()["sequence"]
    assert placement["node"] == "a"
    assert placement["audit"] == {"r": "not b"}


def test_messages():
    rule = {"name": "r", "filter": "false", "messageExpression": '"pod " + pod.name + " not on " + node.name'}
    found = explained(policy(rule), cluster(TWO))
    assert found["infeasible"]["b"] == {"code": "UnschedulableAndUnresolvable", "plugin": "r", "reasons": ["pod p not on b"]}
    assert found["message"].startswith("0/2 nodes are available: 1 pod p not on a, 1 pod p not on b.")
    broken = explained(policy(rule | {"messageExpression": 'node.labels["x"]'}), cluster(TWO))
    assert broken["infeasible"]["b"]["reasons"] == ["node(s) did not pass rule r"]
    when = explained(policy({"name": "r", "filter": "true", "when": 'pod.labels["x"] == "y"'}), cluster(TWO))
    assert when["infeasible"]["a"]["reasons"] == ["rule r failed: when: no such key: x"]


def test_a_policy_is_the_same_from_text_and_from_a_document():
    body = document(SSD)
    assert (
        load(Source("x", json.dumps(body))).profiles["default-scheduler"].points
        == load_policy(body).profiles["default-scheduler"].points
    )


@pytest.mark.parametrize(
    ("point", "field", "written", "hint"),
    [
        ("score", "normalize", "minmax", ('did you mean "MinMax"?',)),
        ("score", "normalize", "none", ('did you mean "None"?',)),
        ("score", "normalize", "foo", ()),
        ("score", "mode", "audit", ('did you mean "Audit"?',)),
        ("score", "onError", "zero", ('did you mean "Zero"?',)),
        ("filter", "onError", "Reejct", ('did you mean "Reject"?',)),
        ("filter", "mode", "enforced", ('did you mean "Enforce"?',)),
    ],
)
def test_values_that_are_none(point, field, written, hint):
    body = f"  rules:\n  - {{name: a, {point}: 'node.pods.size() {'> 1' if point == 'filter' else ''}', {field}: {written}}}\n"
    ((code, marked, message, notes),) = findings(body)
    assert (code, marked, notes) == (Code.UNSUPPORTED, written, hint)
    assert "supported values: " in message


def test_every_mistake_of_a_rule_at_once():
    body = "  rules:\n  - {name: a, mode: audit, normalize: minmax, weight: 0, wheight: 1, onError: x}\n"
    assert {marked for _, marked, _, _ in findings(body)} >= {"audit", "minmax", "0", "wheight", "x"}


def test_totals_of_rules_are_whole_where_they_can_be():
    scores = explained(policy({"name": "half", "score": 'node.name == "a" ? 3.5 : 4.0'}), cluster(TWO))["scores"]["half"]
    assert {node: repr(value) for node, value in scores["raw"].items()} == {"a": "3.5", "b": "4"}
