"""Whether kube-scheduler starts with a configuration, and what it runs then: 500 mutated ones, asked and compared.

Environment as for `test_oracle`; STOWPLAN_CONFIGS=500 is how many.
"""

import gzip
import json
import os
import subprocess

import pytest

from differential.mutations import mutated
from differential.test_oracle import ROOT, SEED, oracle
from stowplan.policy.compile import examine
from stowplan.policy.releases import plugins_of

__all__ = ["oracle"]  # the fixture

CONFIGS = int(os.environ.get("STOWPLAN_CONFIGS", "500"))
RUNNER_FAILS = ("objects", "panic")

pytestmark = pytest.mark.slow


def seeds():
    with gzip.open(ROOT / "tests" / "goldens" / "configs.jsonl.gz", "rt") as lines:
        return [row["case"].get("config") for row in map(json.loads, lines) if "error" not in row["golden"]]


def effective(profile, points):
    return {**{point: list(profile.points[point]) for point in points if point != "weights"}, "weights": dict(profile.weights)}


def difference(config, golden):
    """How the verdicts differ; None if they do not."""
    examined = examine(config, plugins_of(37), compat=True)
    errors = [f"{finding.path}: {finding.message}" for finding in examined.diagnostics if finding.is_error]
    if "error" in golden:
        return None if errors else f"kube-scheduler refuses: {golden['error']}"
    if errors:
        return f"kube-scheduler accepts: {errors}"
    mine = {p.scheduler_name: effective(p, golden["profiles"].get(p.scheduler_name, ())) for p in examined.profiles}
    return None if mine == golden["profiles"] else f"runs otherwise: {golden['profiles']} and not {mine}"


def test_mutated_configurations(oracle, tmp_path):
    known = seeds()
    configs = {f"{index:05}": mutated(f"{SEED}{index}", known[index % len(known)]) for index in range(CONFIGS)}
    for name, config in configs.items():
        case = {"name": name, "mode": "verdicts", "config": config, "objects": []}
        (tmp_path / f"{name}.case.json").write_text(json.dumps(case))
    subprocess.run([oracle, "-dir", tmp_path], check=True, capture_output=True)
    found, verdicts = [], {"accepted": 0, "refused": 0}
    for name, config in configs.items():
        golden = json.loads((tmp_path / f"{name}.golden.json").read_bytes())
        verdicts["refused" if "error" in golden else "accepted"] += 1
        wrong = difference(config, golden)
        if wrong:
            found.append(f"{json.dumps(config)}\n  {wrong}")
    assert min(verdicts.values()) > CONFIGS // 10, verdicts
    if found:
        pytest.fail(f"STOWPLAN_SEED={SEED}: {len(found)} of {CONFIGS} differ\n" + "\n".join(found[:20]), pytrace=False)
