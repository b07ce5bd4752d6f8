"""The sample policies: each compiles without a warning, passes its own tests, and works on the sample cluster."""

from pathlib import Path

import pytest

from stowplan import explain, load_policy, simulate
from stowplan.edge.load import read_cluster
from stowplan.edge.stowtest import run_file

PROFILES = Path(__file__).parents[2] / "profiles"
POLICIES = sorted(path for path in PROFILES.glob("*.yaml") if not path.name.endswith(".stowtest.yaml"))


def test_there_are_samples():
    assert len(POLICIES) == 10


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_a_sample_passes_its_tests(path):
    report = run_file(path.with_suffix(".stowtest.yaml"))
    assert report.broken == []
    assert [(result.name, result.failures) for result in report.results if result.failures] == []
    assert report.results
    assert report.unfired == []
    assert path.read_text().startswith("#")


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_a_sample_works_on_the_sample_cluster(path):
    policy = load_policy(path)
    assert [warning for warning in policy.warnings if warning.severity != "info"] == []
    store = read_cluster([PROFILES / "sample" / "cluster.yaml"])[0]
    found = simulate(policy, store).to_json()["sequence"]
    assert len(found) == len(store.pending)
    for pod in explain(policy, store).to_json()["pods"]:
        reasons = {reason for status in pod.get("infeasible", {}).values() for reason in status["reasons"]}
        assert not any("failed:" in reason for reason in reasons)
