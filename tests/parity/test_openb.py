"""A real trace, placed pod by pod as kube-scheduler places it: 1,523 nodes and 8,152 pods of a GPU cluster.

The trace is large and not part of this repository; see `DATA` for where it is looked for.
"""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from stowplan import load_cluster, load_policy, simulate

DATA = Path(__file__).parents[3] / "shared" / "data" / "openb"


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason=f"the openb trace is not at {DATA}")
def test_the_trace_is_placed_as_kube_scheduler_places_it():
    with gzip.open(DATA / "openb.golden.json.gz", "rt", encoding="utf-8") as file:
        expected = json.load(file)["sequence"]
    dump = subprocess.run([sys.executable, DATA / "to_kubernetes.py"], capture_output=True, check=True)
    cluster = load_cluster(json.loads(dump.stdout)["items"])
    got = simulate(load_policy(), cluster).to_json()["sequence"]
    members = ("pod", "node", "score", "feasible", "message")
    wanted = [{key: placed.get(key) for key in members} for placed in expected]
    found = [{key: placed.get(key) for key in members} for placed in got]
    assert len(found) == len(wanted)
    wrong = [f"expected {w}, got {g}" for w, g in zip(wanted, found, strict=True) if w != g]
    assert not wrong, f"{len(wrong)} of {len(wanted)} placements differ, first: {wrong[0]}"
