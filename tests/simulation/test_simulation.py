"""The scheduler, loop and live edge as they are, in made-up worlds: as many seeds as STOWPLAN_SIMULATION_SEEDS says (200).

A failure prints the seed, the smallest scenario found that still fails, and how to replay it.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulation.generate import generate
from simulation.run import run
from simulation.shrink import shrunk

ROOT = Path(__file__).resolve().parents[2]
SEEDS = int(os.environ.get("STOWPLAN_SIMULATION_SEEDS", "200"))
FIRST = 8
BLOCK = max(10, SEEDS // 200)
TRACE_END = 40


def check(seeds) -> int:
    bindings = 0
    for seed in seeds:
        result = run(generate(seed), keep_trace=False)
        bindings += result.bindings
        if result.violation:
            pytest.fail(told(seed, result.violation), pytrace=False)
    return bindings


def told(seed: int, violation: str) -> str:
    small = shrunk(generate(seed), seconds=30)
    trace = "\n".join(f"{when:9.3f}  {text}" for when, text in small.trace[-TRACE_END:])
    replay = f"python -m tests.simulation --from {seed} --seeds 1 --trace"
    return f"seed {seed}: {violation}\nreplay: {replay}\nshrunk: {small.violation}\n{small.scenario}\n...\n{trace}"


def test_the_first_seeds():
    assert check(range(FIRST)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FIRST, SEEDS, BLOCK))
def test_seeds(first):
    assert check(range(first, min(first + BLOCK, SEEDS))) > 0


def trace_of(seed: int):
    return run(generate(seed)).trace


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_one_seed_has_one_history(seed):
    """Whether the policy is a ConfigMap, mounted or not, or a file."""
    first = trace_of(seed)
    assert len(first) > 100
    assert trace_of(seed) == first


@pytest.mark.slow
def test_the_order_of_sets_does_not_matter():
    code = "import zlib; from simulation.test_simulation import trace_of; print(zlib.crc32(repr(trace_of(5)).encode()))"

    def digest(seed: str) -> str:
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT / "tests")}
        return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout

    assert len({digest(seed) for seed in ("1", "2", "3")}) == 1
