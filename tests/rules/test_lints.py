"""What is accepted in rules and hardly meant."""

import json

import pytest

from rules.scenes import cluster, policy
from stowplan.cli.main import run
from stowplan.edge.notation import read_notation
from stowplan.policy.compile import PolicyError, load
from stowplan.policy.rule_lints import lints_on
from stowplan.text import Code, Source

HEAD = (
    "apiVersion: stowplan.io/v1alpha1\nkind: SchedulerPolicy\nprofiles:\n"
    "- schedulerName: default-scheduler\n  rules:\n  - name: a\n"
)


@pytest.mark.parametrize(
    ("line", "code", "marked"),
    [
        ("score: 10 * (node.pods.size() / 3)", Code.WHOLE_DIVISION, "node.pods.size() / 3"),
        ('filter: node.name > "n9"', Code.TEXT_ORDER, 'node.name > "n9"'),
        ("score: pod.priority", Code.IGNORES_NODE, "pod.priority"),
        ('filter: node.labels["pool"] == pod.name', Code.UNGUARDED, 'node.labels["pool"]'),
        ('filter: has(node.labels.pool) || node.labels.pool == "x"', Code.UNGUARDED, "node.labels.pool"),
        ('filter: has(node.labels.pol) && node.labels.pool == "x"', Code.UNGUARDED, "node.labels.pool"),
        ("filter: 'has(node.labels.pool) ? true : node.labels.pool == \"x\"'", Code.UNGUARDED, "node.labels.pool"),
        ('filter: node.labels[?"pool"].orValue("x") != "" && node.labels.pool == "x"', Code.UNGUARDED, "node.labels.pool"),
        ("filter: node.labels.pool == pod.name", Code.UNGUARDED, "node.labels.pool"),
        ('filter: node.metadata.annotations["x"] == ""', Code.UNGUARDED, 'node.metadata.annotations["x"]'),
    ],
)
def test_what_is_hardly_meant(line, code, marked):
    (found,) = load(Source("f.yaml", f"{HEAD}    {line}\n")).warnings
    assert (found.code, found.span.text) == (code, marked)


@pytest.mark.parametrize(
    "line",
    [
        "score: node.free.cpu / node.allocatable.cpu",
        "score: double(node.pods.size()) / 3.0",
        'filter: int(node.labels[?"generation"].orValue("0")) > 9',
        'filter: has(node.labels.pool) && node.labels.pool == "x"',
        'filter: \'"pool" in node.labels && node.labels["pool"] == "x"\'',
        'filter: node.labels.?pool.orValue("") == "x"',
        'filter: node.labels[?"pool"].hasValue() && node.labels["pool"] == "x"',
        'filter: node.labels["pool"] == "x" && has(node.metadata.labels.pool)',
        "filter: '!has(node.labels.pool) || node.labels.pool == \"x\"'",
        "filter: 'has(node.labels.pool) ? node.labels.pool == \"x\" : false'",
        'filter: node.labels[?"pool"].orValue("") != "" && node.labels.pool == pod.name',
        'filter: node.labels[?"pool"].orValue("") in ["a", "b"] && node.labels.pool == pod.name',
        'filter: node.allocatable["example.com/gpu"] > 0.0',
    ],
)
def test_what_is_fine(line):
    assert load(Source("f.yaml", f"{HEAD}    {line}\n")).warnings == ()


GUARDS = [
    'pod.labels[?"t"].hasValue()',
    "has(pod.labels.t)",
    '"t" in pod.metadata.labels',
    'pod.labels["t"] == "x"',
    'pod.labels[?"t"].orValue("") != ""',
    "has(pod.labels.t) && pod.priority > 1",
    'has(pod.labels.t) && has(pod.labels.u) || "t" in pod.labels',
    'variables.t != ""',
]
VARIABLES = """  variables:
  - {name: t, expression: 'pod.labels[?"t"].orValue("")'}
  - {name: plain, expression: 'pod.labels.t'}
"""


def unguarded(when, rule, **more):
    members = "".join(f"    {key}: {value}\n" for key, value in more.items())
    text = f"{HEAD.replace('  rules:', VARIABLES + '  rules:')}    when: {when!r}\n    {rule}\n{members}"
    found = [d for d in load(Source("f.yaml", text)).warnings if d.code is Code.UNGUARDED]
    return [d for d in found if not d.message.endswith("the variable then has no value")]  # nobody uses it


@pytest.mark.parametrize("when", GUARDS)
def test_what_when_makes_sure_of(when):
    assert not [d for d in unguarded(when, 'filter: node.name == pod.labels["t"]') if "when" not in d.path]
    assert not [d for d in unguarded(when, "filter: node.name == variables.plain") if "when" not in d.path]


@pytest.mark.parametrize(
    "when", ['pod.labels[?"t"].orValue("x") != ""', "!has(pod.labels.t)", "!has(pod.labels.t) || pod.priority > 1", "true"]
)
def test_what_when_leaves_open(when):
    (found,) = unguarded(when, 'filter: node.name == pod.labels["t"]')[-1:]
    assert found.span.text == 'pod.labels["t"]'
    (found,) = unguarded(when, "filter: node.name == variables.plain")
    assert (found.span.text, found.path) == ("pod.labels.t", "profiles[0].variables[1].expression")


@pytest.mark.parametrize(
    ("rule", "more", "outcome"),
    [
        ("filter: node.labels.a == ''", {}, "the filter then rejects the node"),
        ("filter: node.labels.a == pod.name", {"onError": "Admit"}, "the filter then lets the node pass"),
        ("score: int(node.labels.a)", {}, "the score of the node is then 0"),
        ("score: int(node.labels.a)", {"onError": "Reject"}, "the rule then rejects the node"),
        ("score: int(pod.labels.a) + node.pods.size()", {}, "the score of every node is then 0"),
        ("filter: node.ready", {"messageExpression": "node.labels.a"}, "the message is then the plain one"),
    ],
)
def test_the_text_says_what_happens(rule, more, outcome):
    assert [d.message.partition(": ")[2] for d in unguarded("has(pod.labels.t)", rule, **more)] == [outcome]


def test_variables_that_branch_are_looked_at_once():
    chain = "".join(f"  - {{name: v{i}, expression: variables.v{i - 1} + variables.v{i - 1}}}\n" for i in range(1, 40))
    text = HEAD.replace("  rules:", f"  variables:\n  - {{name: v0, expression: pod.labels.t}}\n{chain}  rules:")
    found = load(Source("f.yaml", f"{text}    filter: node.name == variables.v4\n")).warnings
    assert [d.span.text for d in found if d.code is Code.UNGUARDED] == ["pod.labels.t"]


def test_shipped_policies_are_clean(capsys):
    assert run(["validate", "--strict", "profiles", "--format", "concise"]) == 0
    assert "STW" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"score": 'int(node.labels["no"])'}, "rule r failed on 2 of 2 nodes (counted as 0) for default/p: no such key: no"),
        ({"score": 'int(node.labels["pool"])'}, "rule r failed on 2 of 2 nodes (counted as 0) for default/p: "),
        ({"score": "1.0 / (node.free.cpu - 4.0)"}, "rule r failed on 2 of 2 nodes (counted as 0) for default/p: the score is no"),
        ({"filter": 'node.labels["no"] == "x"', "onError": "Admit"}, "rule r failed on 2 of 2 nodes (let pass) for default/p: "),
        ({"filter": 'node.labels["no"] == "x"'}, None),
        ({"score": 'int(node.labels["no"])', "onError": "Reject"}, None),
        ({"score": "node.free.cpu"}, None),
    ],
)
def test_errors_that_leave_no_trace_are_told(rule, told):
    found = [d for d in lints_on(policy({"name": "r", **rule}), cluster(TEXT), verdicts=False) if d.code is Code.FAILING]
    assert [d.message.startswith(told or "") for d in found] == ([True] if told else [])


def test_remarks_are_for_validate(capsys, tmp_path):
    nodes, rules = tmp_path / "nodes.json", tmp_path / "policy.yaml"
    nodes.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": read_notation(TEXT)}))
    rules.write_text(f"{HEAD}    score: int(node.labels.pool)\n")
    assert run(["validate", str(rules)]) == 0
    assert "STW314" in capsys.readouterr().out
    for command in (["simulate"], ["explain", "p"]):
        assert run([*command, "--policy", str(rules), "--cluster", str(nodes)]) == 0
        seen = capsys.readouterr()
        assert "STW314" not in seen.err
        assert "rule a failed on 2 of 2 nodes (counted as 0)" in seen.err
    assert "2 of 2" in seen.out


TEXT = "node a cpu=4 label.pool=x\nnode b cpu=4 label.pool=y\npod p cpu=1 labels=app=w"


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ({"filter": 'node.labels[?"pol"].orValue("x") == "x"'}, [Code.UNKNOWN_LABEL, Code.CONSTANT]),
        ({"filter": "node.free.cpu > 1.0"}, [Code.CONSTANT]),
        ({"filter": "node.free.cpu > 9.0"}, [Code.CONSTANT]),
        ({"score": "node.free.cpu"}, [Code.CONSTANT]),
        ({"filter": 'node.labels[?"pool"].orValue("") == "x"', "when": 'pod.labels.app == "q"'}, [Code.CONSTANT]),
        ({"filter": 'node.labels[?"pool"].orValue("") == "x"'}, []),
    ],
)
def test_what_is_strange_on_a_cluster(rule, found):
    assert [lint.code for lint in lints_on(policy({"name": "r", **rule}), cluster(TEXT))] == found


def test_a_label_that_no_node_has_is_told_with_a_suggestion():
    (lint, _) = lints_on(policy({"name": "r", "filter": 'node.labels[?"pol"].orValue("x") == "x"'}), cluster(TEXT))
    assert lint.message == 'r: 0 of 2 nodes have the label "pol"'
    assert lint.notes == ('did you mean "pool"?',)


def test_eval_tells_lints(capsys, tmp_path):
    path = tmp_path / "nodes.yaml"
    path.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: a, labels: {pool: x}}\nstatus: {allocatable: {cpu: 4}}\n")
    assert run(["eval", "--cluster", str(path), 'node.labels[?"pol"].orValue("")']) == 0
    err = capsys.readouterr().err
    assert 'warning[STW316]: expression: 0 of 1 nodes have the label "pol"' in err
    assert 'did you mean "pool"?' in err


def told(line, code=Code.UNGUARDED):
    return [d.span.text for d in load(Source("f.yaml", f"{HEAD}    {line}\n")).warnings if d.code is code]


@pytest.mark.parametrize(
    ("expression", "lacking"),
    [
        ('pod.owner.kind == "Job"', ["pod.owner"]),
        ('pod.spec.priorityClassName == "x"', ["pod.spec.priorityClassName"]),
        ('pod.spec.nodeSelector["disk"] == "ssd"', ['pod.spec.nodeSelector["disk"]']),
        ("has(pod.spec.affinity.nodeAffinity)", ["pod.spec.affinity"]),
        ('node.spec.providerID == "x"', ["node.spec.providerID"]),
        ('node.pods.exists(p, p.owner.kind == "Job")', ["p.owner"]),
        ('node.pods.all(p, p.labels.app == "x")', ["p.labels.app"]),
        ('node.pods.filter(p, p.priority > 1).all(q, q.owner.kind == "x")', ["q.owner"]),
        ('node.domain("rack").value == "x"', ['node.domain("rack").value']),
        ('pod.spec.containers.all(c, c.resources.limits["cpu"] == "1")', ['c.resources.limits["cpu"]']),
        ('has(pod.owner) && pod.owner.kind == "Job"', []),
        ('has(pod.owner.kind) && pod.owner.kind == "Job"', ["pod.owner"]),
        ('pod.?owner.kind.orValue("") == "Job"', []),
        ('node.pods.exists(p, has(p.owner) && p.owner.kind == "Job")', []),
        ('node.pods.filter(p, has(p.owner)).all(q, q.owner.kind == "x")', []),
        ("node.pods.map(p, has(p.owner), p.owner.kind).size() > 0", []),
        ("has(pod.spec.affinity) && has(pod.spec.affinity.nodeAffinity)", []),
        ('node.status.nodeInfo.osImage == "x" && pod.spec.containers.size() > 1', []),
        ('pod.requests["example.com/gpu"] > 0.0', []),
    ],
)
def test_members_that_may_be_missing(expression, lacking):
    assert told(f"filter: {expression!r}") == lacking


def test_the_remedy_for_a_member_is_to_ask():
    warnings = load(Source("f.yaml", f'{HEAD}    filter: pod.owner.kind == "Job"\n')).warnings
    (found,) = [d for d in warnings if d.code is Code.UNGUARDED]
    assert found.message == 'pod may lack "owner": the filter then rejects every node'
    assert found.notes[0].startswith("ask first: has(pod.owner)")


@pytest.mark.parametrize(("word", "label"), [("zone", "topology.kubernetes.io/zone"), ("hostname", "kubernetes.io/hostname")])
def test_short_words_are_no_topology_keys(word, label):
    (found,) = load(Source("f.yaml", f'{HEAD}    score: 1000 - node.domain("{word}").nodes\n')).warnings
    assert (found.code, found.notes) == (Code.UNKNOWN_LABEL, (f'did you mean "{label}"?',))
    assert not told('score: 1000 - node.domain("rack").nodes', Code.UNKNOWN_LABEL)


@pytest.mark.parametrize(
    ("key", "notes"),
    [
        ("zone", ('did you mean "topology.kubernetes.io/zone"?',)),
        ("topology.kubernetes.io/zon", ('did you mean "topology.kubernetes.io/zone"?',)),
        ("row", ('did you mean "dc.example.com/row"?',)),
        ("nothing-like-it", ()),
    ],
)
@pytest.mark.parametrize(
    "expression", ['node.domain("KEY").nodes', "cluster.nodes + variables.own", 'size(node.labels[?"KEY"].orValue(""))']
)
def test_labels_that_no_node_has(key, notes, expression):
    variables = f"  variables: [{{name: own, expression: 'node.domain(\"{key}\").nodes'}}]\n  rules:"
    found = load(Source("f.yaml", f"{HEAD.replace('  rules:', variables)}    score: {expression.replace('KEY', key)}\n"))
    text = "node n1 zone=a labels=dc.example.com/row=1\nnode n2 zone=b labels=dc.example.com/row=2\npod p"
    strange = [d for d in lints_on(found, cluster(text), verdicts=False) if d.code is Code.UNKNOWN_LABEL]
    assert [(d.message, d.notes) for d in strange] == [(f'a: 0 of 2 nodes have the label "{key}"', notes)]


@pytest.mark.parametrize(
    ("expression", "marked"),
    [
        ('now.isBetween("22:00", "06:00", "Europe/Berln")', 'now.isBetween("22:00", "06:00", "Europe/Berln")'),
        ('now.isBetween("22:00", "6 am", "UTC")', 'now.isBetween("22:00", "6 am", "UTC")'),
        ('now.weekday("Mars/North") == "Mon" || node.ready', 'now.weekday("Mars/North")'),
        ('now.getHours("CET/X") > 3', 'now.getHours("CET/X")'),
        ('quantity("20Gii").isGreaterThan(quantity("1"))', 'quantity("20Gii")'),
        ('ip("10.0.0.300").family() == 4', 'ip("10.0.0.300")'),
        ('cidr("10.0.0.0/40").prefixLength() == 4', 'cidr("10.0.0.0/40")'),
        (
            'cidr("10.0.0.0/" + string(node.pods.size())).containsIP("10.0.0.x")',
            'cidr("10.0.0.0/" + string(node.pods.size())).containsIP("10.0.0.x")',
        ),
        ('url("::").getHost() == "x"', 'url("::")'),
        ('semver("1.x").major() == 1', 'semver("1.x")'),
        ('duration("1x") > duration("1s")', '"1x"'),
        ('timestamp("soon") > now', '"soon"'),
        ('node.name.matches("(")', '"("'),
        ('"%d".format(["a"]) == node.name', '"a"'),
        ('int("1e") + node.pods.size() > 1', 'int("1e")'),
        ("1 / 0 + node.pods.size() > 1", "1 / 0"),
        ('["a"][1] == node.name', '["a"][1]'),
    ],
)
def test_what_can_only_fail_is_refused(expression, marked):
    with pytest.raises(PolicyError) as caught:
        load(Source("f.yaml", f"{HEAD}    filter: {expression!r}\n"))
    (found,) = caught.value.diagnostics
    assert found.code is Code.EXPRESSION
    assert found.span.text == marked


@pytest.mark.parametrize(
    "expression",
    [
        'now.isBetween("22:00", "06:00", "Europe/Berlin")',
        'quantity("20Gi").isGreaterThan(quantity("1"))',
        'isQuantity("20Gii") || node.ready',
        "node.pods.size() / 0 > 1 || node.ready",
        'cidr("10.0.0.0/8").containsIP("10.0.0.1")',
    ],
)
def test_what_can_succeed_is_not(expression):
    load(Source("f.yaml", f"{HEAD}    filter: {expression!r}\n"))


@pytest.mark.parametrize("point", ["multiPoint", "score", "filter"])
def test_the_name_that_holds_rules_is_ours(point):
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: s\n"
    listed = f"  plugins: {{{point}: {{enabled: [{{name: stowplan.io/Rules}}]}}}}\n"
    rules = "  pluginConfig:\n  - name: stowplan.io/Rules\n    args: {rules: [{name: a, filter: node.ready}]}\n"
    plain, named = (load(Source("f.yaml", head + text + rules), compat=False) for text in ("", listed))
    assert named.warnings == plain.warnings == ()
    assert named.profiles["s"].points == plain.profiles["s"].points
    assert [d.code for d in load(Source("f.yaml", head + listed), compat=False).warnings] == [Code.NO_EFFECT]
    with pytest.raises(PolicyError, match="each of its rules has a weight of its own"):
        load(Source("f.yaml", head + listed.replace("Rules}", "Rules, weight: 3}") + rules), compat=False)
    with pytest.raises(PolicyError, match="does not exist"):
        load(Source("f.yaml", head + listed + rules), compat=True)


def test_variables_do_not_know_params():
    text = HEAD.replace("  rules:", "  variables: [{name: v, expression: params.most > 3}]\n  rules:")
    with pytest.raises(PolicyError) as refused:
        load(Source("f.yaml", f"{text}    params: {{most: 4}}\n    filter: variables.v && node.name != 'x'\n"))
    (found,) = refused.value.diagnostics
    assert (found.path, found.span.text) == ("profiles[0].variables[0].expression", "params")
    assert found.notes == ("params are those of one rule, variables are there for all of them: use params in the rules themselves",)
