"""A policy test with members of the wrong shape is told so at its place, and never runs."""

import json

import pytest

from rules.scenes import document
from stowplan.edge.stowtest import run_file

HEAD = "tests:\n- name: t\n  cluster: |\n    node a cpu=4 mem=8Gi\n    pod p cpu=1\n  "


@pytest.mark.parametrize(
    ("member", "path"),
    [
        ("args: 5", "args"),
        ("args: {tenant-pool: 5}", "args.tenant-pool"),
        ("objects: 5", "objects"),
        ("expect: {rejected: 5}", "expect.rejected"),
        ("expect: {score: 3}", "expect.score"),
        ("expect: {score: {NodeResourcesFit: 5}}", "expect.score.NodeResourcesFit"),
        ("expect: {score: {NodeResourcesFit: {a: high}}}", "expect.score.NodeResourcesFit.a"),
    ],
)
def test_wrong_shapes(tmp_path, member, path):
    file = tmp_path / "x.stowtest.yaml"
    file.write_text(HEAD + member + "\n")
    report = run_file(file)
    assert [found.path for found in report.broken] == [f"tests[0].{path}"]
    assert report.broken[0].span.line == 6
    assert not report.results


RULE = {"name": "ssd", "params": {"disk": "ssd"}, "filter": 'node.labels[?"disk"].orValue("") == params.disk'}


def suite(tmp_path, test):
    body = {"profile": document(RULE), "cluster": "node a cpu=4 label.disk=ssd\nnode b cpu=4\npod p cpu=1", "tests": [test]}
    file = tmp_path / "x.stowtest.yaml"
    file.write_text(json.dumps(body))
    return run_file(file)


@pytest.mark.parametrize(
    ("test", "path", "message"),
    [
        ({}, "tests[0]", "Required value: the test expects nothing"),
        ({"expect": {}}, "tests[0].expect", "Required value: the test expects nothing"),
        ({"expect": {"rejected": {}, "score": {}}}, "tests[0].expect", "Required value: the test expects nothing"),
        ({"args": {"sdd": {}}, "expect": {"node": "a"}}, "tests[0].args.sdd", 'there is no plugin or rule "sdd" in the policy'),
        (
            {"expect": {"unschedulable": False}, "args": {"ssd": {"disk": "x"}}},
            "tests[0].expect.unschedulable",
            "expected some node",
        ),
    ],
)
def test_a_test_that_could_not_fail_fails(tmp_path, test, path, message):
    report = suite(tmp_path, test)
    ((found,),) = [result.failures for result in report.results]
    assert found.path == path
    assert found.message.startswith(message)


@pytest.mark.parametrize(
    "test",
    [
        {"expect": {"feasible": ["a"]}},
        {"expect": {"unschedulable": False}},
        {"args": {"ssd": {"disk": "x"}}, "expect": {"unschedulable": True}},
        {"args": {"NodeResourcesFit": {}}, "expect": {"node": "a"}},
    ],
)
def test_a_test_that_expects_something_runs(tmp_path, test):
    report = suite(tmp_path, test)
    assert [result.failures for result in report.results] == [[]]


def test_rules_count_as_tried_where_only_placements_are_expected(tmp_path):
    assert suite(tmp_path, {"cluster": "pod q cpu=1", "expect": {"placements": {"p": "a", "q": "a"}}}).unfired == []
