"""A policy test with members of the wrong shape is told so at its place, and never runs."""

import pytest

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
