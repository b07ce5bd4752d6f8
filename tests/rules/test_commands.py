"""`stowplan eval` and `stowplan test`."""

import json
import os
import subprocess
import sys
import time
from xml.etree import ElementTree as ET

import pytest

from stowplan.cli.main import run
from stowplan.edge.notation import read_notation

TEXT = "node a cpu=4 label.disk=ssd\nnode b cpu=8\npod busy on=a cpu=1\npod p cpu=1 labels=app=w"
POLICY = """apiVersion: stowplan.io/v1alpha1
kind: SchedulerPolicy
profiles:
- schedulerName: default-scheduler
  variables:
  - {name: app, expression: 'pod.labels[?"app"].orValue("")'}
  rules:
  - {name: ssd, filter: 'node.labels[?"disk"].orValue("") == "ssd"', message: not an SSD}
  - {name: never, filter: 'true'}
"""


@pytest.fixture
def dump(tmp_path):
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": read_notation(TEXT)}))
    return str(path)


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return str(path)


def evaluated(capsys, *arguments):
    code = run(["eval", "-o", "json", *arguments])
    return code, json.loads(capsys.readouterr().out)


def test_eval_gives_value_and_cost_of_every_node(capsys, dump):
    code, found = evaluated(capsys, "--cluster", dump, "node.free.cpu / node.allocatable.cpu")
    assert code == 0
    assert found["type"] == "double"
    assert found["reads"] == ["allocatable", "requested"]
    assert [(one["node"], one["value"]) for one in found["values"]] == [("a", 0.75), ("b", 1.0)]
    assert all(one["cost"] > 0 for one in found["values"])


def test_eval_tells_errors_of_single_nodes(capsys, dump):
    code, found = evaluated(capsys, "--cluster", dump, 'node.labels["disk"]')
    assert code == 1
    assert [one.get("value", one.get("error")) for one in found["values"]] == ["ssd", "no such key: disk"]


def test_eval_knows_the_pod_the_profile_and_the_moment(capsys, dump, policy):
    code, found = evaluated(capsys, "--cluster", dump, "--policy", policy, "--pod", "p", "variables.app")
    assert (code, found["values"][0]["value"]) == (0, "w")
    code, found = evaluated(capsys, "--cluster", dump, "--now", "2026-11-30T12:00:00Z", 'now + duration("1h")')
    assert found["values"] == [{"value": "2026-11-30T13:00:00Z", "cost": found["values"][0]["cost"]}]


def test_eval_tables(capsys, dump):
    assert run(["eval", "--cluster", dump, "node.pods.size()"]) == 0
    out = capsys.readouterr().out
    assert "int; 2 nodes; 0 errors" in out
    assert "a     1" in out


def test_eval_of_what_is_no_expression(capsys, dump):
    assert run(["eval", "--cluster", dump, "node.labls"]) == 3
    assert "expression:1:6: error[STW303]: undefined field 'labls' in Node, did you mean \"labels\"?" in capsys.readouterr().err


def test_eval_asks_cel_python(capsys, dump):
    pytest.importorskip("celpy")
    for expression in (
        "node.free.cpu / node.allocatable.cpu",
        'has(node.labels.disk) && node.labels["disk"] == "ssd"',
        "[1, node.pods.size()]",
    ):
        code, found = evaluated(capsys, "--cluster", dump, "--engine", "cel-python", expression)
        own = evaluated(capsys, "--cluster", dump, expression)[1]
        assert code == 0
        assert [one["value"] for one in found["values"]] == [one["value"] for one in own["values"]]
        assert found["evaluated"] == "rows: by cel-python"
    code, found = evaluated(capsys, "--cluster", dump, "--engine", "cel-python", 'node.labels["disk"]')
    assert code == 1
    assert found["values"][0]["value"] == "ssd"
    assert "no such" in found["values"][1]["error"]


def test_eval_says_how_to_get_cel_python(capsys, dump, monkeypatch):
    monkeypatch.setitem(sys.modules, "celpy", None)
    assert run(["eval", "--cluster", dump, "--engine", "cel-python", "1 + 1"]) == 2
    assert "cel-python is not installed: pip install 'stowplan[cel-python]'" in capsys.readouterr().err


def test_eval_counts_values_only_where_some_are_alike(capsys, dump):
    assert run(["eval", "--cluster", dump, "node.free.cpu / 9.0"]) == 0
    out = capsys.readouterr().out
    assert "VALUES" not in out
    assert "a     0.333333" in out
    assert run(["eval", "--cluster", dump, "node.free.cpu > 0.0"]) == 0
    assert "    2  true" in capsys.readouterr().out


def test_eval_names_what_is_read_as_expressions_do(capsys, dump):
    assert run(["eval", "--cluster", dump, 'node.pods.size() + (node.ready ? 1 : 0) + node.domain("zone").nodes']) == 0
    assert "reads of the node: other nodes, pods, ready\n" in capsys.readouterr().out


@pytest.mark.parametrize("expression", ["node", "pod", "node.labels"])
def test_eval_cuts_long_values(capsys, tmp_path, expression):
    labels = {f"label-{number}": "x" * 40 for number in range(20)}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels": labels}, "status": {}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "d", "labels": labels},
        "spec": {"priority": 0},
    }
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, pod]}))
    assert run(["eval", "--cluster", str(path), expression]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) < 200
    assert "-o json has all of them" in out
    assert run(["eval", "--cluster", str(path), "-o", "wide", expression]) == 0
    assert "label-19" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["SchedulerPolicy", "KubeSchedulerConfiguration"])
def test_test_says_what_a_policy_is(capsys, tmp_path, kind):
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY.replace("SchedulerPolicy", kind))
    assert run(["test", str(path)]) == 3
    out = capsys.readouterr().out
    assert f"this is a {kind}, not a file of tests" in out
    assert "unknown field" not in out


def suite(tmp_path, *tests, head="policy: policy.yaml"):
    path = tmp_path / "some.stowtest.yaml"
    path.write_text("\n".join([head, "cluster: |", *(f"  {line}" for line in TEXT.splitlines()), "tests:", *tests]) + "\n")
    return str(path)


@pytest.mark.usefixtures("policy")
def test_test_passes(capsys, tmp_path):
    path = suite(
        tmp_path,
        "- {name: one, expect: {node: a, feasible: [a], ranking: [a], rejected: {b: [ssd, not an SSD]}}}",
        "- {name: two, expect: {placements: {p: a}}}",
        "- {name: three, cluster: pod q cpu=4, pod: q, expect: {unschedulable: true, message: 1 not an SSD}}",
    )
    assert run(["test", path]) == 0
    out = capsys.readouterr().out
    assert "3 of 3 tests passed in 1 file" in out
    assert "no test makes a difference with: never" in out


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize(
    ("expect", "message", "place"),
    [
        ("{node: b}", "expected node b, got a", "node"),
        ("{unschedulable: true}", "expected no node, got a", "unschedulable"),
        ("{feasible: [a, b]}", "expected a, b, got a", "feasible"),
        ("{ranking: [b]}", "expected b, got a (", "ranking"),
        ("{rejected: {b: no}}", "expected b to be rejected with", "rejected.b"),
        ("{rejected: {c: no}}", "there is no node c", "rejected.c"),
        ("{node: c}", "there is no node c in the cluster of the test; nodes are a, b", "node"),
        ("{feasible: [a, c]}", "there is no node c", "feasible"),
        ("{ranking: [c]}", "there is no node c", "ranking"),
        ("{score: {NodeResourcesFit: {c: 1}}}", "there is no node c", "score.NodeResourcesFit.c"),
        ("{placements: {p: c}}", "there is no node c", "placements.p"),
        ("{score: {NodeResourcesFit: {a: 1}}}", "expected 1, got ", "score.NodeResourcesFit.a"),
        ("{score: {ssd: {a: 1}}}", "ssd gave no scores", "score.ssd"),
        ("{placements: {p: b}}", "expected b, got a", "placements.p"),
        ("{message: nothing}", "expected 'nothing' in the message, got None", "message"),
    ],
)
def test_a_failure_is_told_at_its_place(capsys, tmp_path, expect, message, place):
    path = suite(tmp_path, f"- {{name: one, expect: {expect}}}")
    assert run(["test", path]) == 1
    line = next(line for line in capsys.readouterr().out.splitlines() if message in line)
    assert line.strip().startswith(f"{path}:8:")
    assert f": tests[0].expect.{place}: " in line


@pytest.mark.usefixtures("policy")
def test_junit(tmp_path):
    report = tmp_path / "report.xml"
    path = suite(tmp_path, "- {name: good, expect: {node: a}}", "- {name: bad <&>, expect: {node: b}}")
    assert run(["test", path, "--junit", str(report)]) == 1
    root = ET.fromstring(report.read_text())  # noqa: S314 - our own file
    assert [(case.get("name"), len(case)) for case in root.iter("testcase")] == [("good", 0), ("bad <&>", 1)]


def test_junit_is_xml_whatever_names_hold(tmp_path, policy):  # noqa: ARG001 - the file it makes
    report = tmp_path / "report.xml"
    run(["test", suite(tmp_path, '- {name: "bell \\a", expect: {node: b}}'), "--junit", str(report)])
    (case,) = ET.fromstring(report.read_text()).iter("testcase")  # noqa: S314 - our own file
    assert case.get("name") == "bell \N{REPLACEMENT CHARACTER}"


@pytest.mark.slow
@pytest.mark.parametrize("changed", ["some.stowtest.yaml", "policies/policy.yaml"])
def test_watch_runs_again_when_a_test_or_its_policy_changes(tmp_path, changed):
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "policy.yaml").write_text(POLICY)
    path = suite(tmp_path, "- {name: one, expect: {node: a}}", head="policy: policies/policy.yaml")
    command = [sys.executable, "-c", "from stowplan.cli.main import main; main()", "test", "--watch", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"}) as watching:
        try:
            assert any("1 of 1 tests passed" in line for line in watching.stdout)
            time.sleep(0.5)
            file = tmp_path / changed
            file.write_text(file.read_text().replace('"ssd"', '"hdd"').replace("node: a", "node: b"))
            assert any("0 of 1 tests passed" in line for line in watching.stdout)
        finally:
            watching.kill()


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize(
    ("tests", "head", "message"),
    [
        (["- {name: one, expect: {nod: a}}"], "policy: policy.yaml", 'unknown field "tests[0].expect.nod"'),
        (["- {name: one, expect: {node: a}}"], "policy: missing.yaml", "missing.yaml"),
        ([], "policy: policy.yaml", "no tests"),
        (
            ["- {name: one, expect: {zzz: a}}"],
            "policy: policy.yaml",
            "fields here: feasible, message, node, placements, profile, ranking",
        ),
        (["- {name: one, expect: {feasable: [a]}}"], "policy: policy.yaml", 'did you mean "feasible"?'),
    ],
)
def test_files_that_cannot_be_run(capsys, tmp_path, tests, head, message):
    assert run(["test", suite(tmp_path, *tests, head=head)]) == 3
    assert message in capsys.readouterr().out


@pytest.mark.usefixtures("policy")
def test_a_broken_cluster_fails_the_test(capsys, tmp_path):
    assert run(["test", suite(tmp_path, "- {name: one, cluster: nod x, expect: {node: a}}")]) == 1
    assert "there is no kind nod" in capsys.readouterr().out


def test_args_of_a_test(tmp_path):
    policy = POLICY.replace("rules:\n", "rules:\n  - {name: only, params: {node: a}, filter: node.name == params.node}\n")
    (tmp_path / "policy.yaml").write_text(policy.replace("{name: ssd", "{name: ssd, mode: 'Off'"))
    path = suite(tmp_path, "- {name: one, expect: {node: a}}", "- {name: two, args: {only: {node: b}}, expect: {node: b}}")
    assert run(["test", path]) == 0


def test_rules_see_the_whole_object_of_a_running_pod_that_is_asked_about(capsys, tmp_path):
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "4", "pods": "9"}}}
    spec = {"nodeName": "a", "priority": 0, "serviceAccountName": "robot", "containers": [{"name": "c", "image": "c"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "web"}, "spec": spec}
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, pod]}))
    code, found = evaluated(capsys, "--cluster", str(path), "--pod", "web/p", "pod.spec.serviceAccountName")
    assert (code, found["values"][0]["value"]) == (0, "robot")
    robots = "{name: robots, filter: pod.spec.serviceAccountName == 'robot'}"
    (tmp_path / "policy.yaml").write_text(POLICY.replace("{name: never, filter: 'true'}", robots))
    run(["explain", "--policy", str(tmp_path / "policy.yaml"), "--cluster", str(path), "-o", "json", "web/p"])
    (explained,) = json.loads(capsys.readouterr().out)["pods"]
    assert explained["filters"]["robots"] == {}
    assert "a" in explained["filters"]["ssd"]


@pytest.mark.usefixtures("policy")
def test_record_writes_down_what_is_not_expected_yet(tmp_path, capsys):
    path = suite(
        tmp_path,
        "- name: one   # a comment that stays",
        "- {name: two, args: {never: {}}}",
        "- name: three",
        "  cluster: |",
        "    pod q cpu=4",
        "",
        "- {name: four, expect: {node: a}}",
    )
    assert run(["test", path, "--record"]) == 0
    out = capsys.readouterr().out
    assert "wrote down what comes out of 3 tests" in out
    text = (tmp_path / "some.stowtest.yaml").read_text()
    recorded = 'expect: {"node": "a", "feasible": ["a"], "rejected": {"b": ["not an SSD"]}}'
    assert f"- name: one   # a comment that stays\n  {recorded}\n" in text
    assert f"- {{name: two, args: {{never: {{}}}}, {recorded}}}\n" in text
    assert '    pod q cpu=4\n  expect: {"placements": {"default/p": "a", "default/q": ""}}\n\n- {name: four' in text
