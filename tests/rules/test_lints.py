"""What is accepted in rules and hardly meant."""

import pytest

from rules.scenes import cluster, policy
from stowplan.cli.main import run
from stowplan.policy.compile import load
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
        'filter: node.allocatable["example.com/gpu"] > 0.0',
    ],
)
def test_what_is_fine(line):
    assert load(Source("f.yaml", f"{HEAD}    {line}\n")).warnings == ()


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
