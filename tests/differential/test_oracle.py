"""Fresh random cases, answered by kube-scheduler's own code and by stowplan.

The oracle (kube-scheduler 1.37.2 behind a small program) needs Go and its source, which are not part of this repository.
Building it takes minutes, so that happens only on demand; the binary is kept in `build/oracle` for as long as its source is
the same. Environment:

    STOWPLAN_DIFFERENTIAL=1     build the oracle if it is not there
    STOWPLAN_SEED=...           seed of the cases; without it each run has its own, which failures name
    STOWPLAN_CASES=5            cases for each theme
"""

import hashlib
import json
import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from parity.comparison import Comparison, compare_case

ROOT = Path(__file__).parents[2]
SOURCE = ROOT.parent / "shared" / "oracle"
THEMES = (
    "affinity",
    "configs",
    "dra",
    "images",
    "interpod",
    "mixed",
    "node-basics",
    "ports",
    "preemption",
    "resources",
    "spread",
    "taints",
    "volumes",
)
SEED = os.environ.get("STOWPLAN_SEED") or secrets.token_hex(4)
CASES = int(os.environ.get("STOWPLAN_CASES", "5"))

pytestmark = pytest.mark.slow


def fingerprint() -> str:
    digest = hashlib.sha256()
    for path in sorted([*SOURCE.glob("*.go"), SOURCE / "go.mod", SOURCE / "go.sum"]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def build(binary: Path) -> None:
    if os.environ.get("STOWPLAN_DIFFERENTIAL") != "1":
        pytest.skip("the oracle is not built; STOWPLAN_DIFFERENTIAL=1 builds it, which takes minutes")
    version = subprocess.run(["go", "version"], capture_output=True, text=True, check=True).stdout if shutil.which("go") else ""
    if "go1.26" not in version:
        pytest.skip("the oracle needs Go 1.26 to be built")
    binary.parent.mkdir(parents=True, exist_ok=True)
    # another worker may be building as well: whoever is last moves the same file into place
    partial = binary.with_suffix(f".{os.getpid()}")
    flags = ["-ldflags", "-X k8s.io/component-base/version.gitVersion=v1.37.2"]
    subprocess.run(["go", "build", *flags, "-o", partial, "."], cwd=SOURCE, check=True)
    partial.replace(binary)


@pytest.fixture(scope="module")
def oracle():
    if not (SOURCE / "main.go").is_file():
        pytest.skip(f"the oracle's source is not at {SOURCE}")
    binary = ROOT / "build" / "oracle" / fingerprint() / "oracle"
    if not binary.is_file():
        build(binary)
    return binary


ORACLE_RUNS = 3
"""kube-scheduler takes disruption budgets in the order of a Go map, so once in a while it counts other violations than before"""


@pytest.mark.parametrize("theme", THEMES)
def test_fresh_cases(theme, oracle, tmp_path):
    generate = [sys.executable, "-B", SOURCE / "generate.py", "--focus", theme, "--seed", SEED, "--cases", str(CASES)]
    subprocess.run([*generate, "--out", tmp_path], check=True)
    subprocess.run([oracle, "-complete", "-dir", tmp_path], check=True, capture_output=True)
    for _ in range(ORACLE_RUNS):
        comparison = compared(oracle, tmp_path)
        if not comparison.differences:
            return
    pytest.fail(f"STOWPLAN_SEED={SEED}, {theme}: {comparison}", pytrace=False)


def compared(oracle, folder):
    """The cases of a folder, answered by both."""
    subprocess.run([oracle, "-dir", folder], check=True, capture_output=True)
    comparison = Comparison()
    for path in sorted(folder.glob("*.golden.json")):
        case = path.with_name(path.name.replace(".golden.", ".case."))
        compare_case(json.loads(case.read_bytes()), json.loads(path.read_bytes()), comparison)
    assert comparison.facts
    return comparison
