"""A failing scenario is made smaller for as long as it still fails: fewer faults, steps, nodes, pods, replicas."""

import time
from dataclasses import replace

from simulation.run import Result, run
from simulation.scenario import Scenario


def shrunk(scenario: Scenario, seconds: float = 60.0, told=lambda _: None) -> Result:
    """The smallest scenario found within that time whose violation is of the same sort, as run."""
    best = run(scenario)
    if not best.violation:
        return best
    sort, end = kind_of(best.violation), time.monotonic() + seconds
    if scenario.replicas > 1:
        best = _better(replace(scenario, replicas=1), best, sort)
    size = (len(best.scenario.steps) + len(best.scenario.faults) + 1) // 2
    while size and time.monotonic() < end:
        best, progress = _without_blocks(best, size, sort, end)
        told(best)
        if not progress:
            size = 0 if size == 1 else (size + 1) // 2
    return best


def kind_of(violation: str) -> str:
    """The words of a violation without the names and numbers in it."""
    return " ".join(word for word in violation.split()[2:] if word.isalpha())[:60]


def _better(scenario: Scenario, best: Result, sort: str) -> Result:
    result = run(scenario)
    return result if result.violation and kind_of(result.violation) == sort else best


def _without_blocks(best: Result, size: int, sort: str, end: float):
    """Try to do without each block of so many parts, the last ones first: those depend on the others."""
    progress = False
    at = len(best.scenario.steps) + len(best.scenario.faults)
    while at > 0 and time.monotonic() < end:
        parts = [number for number in range(len(best.scenario.steps) + len(best.scenario.faults)) if not at - size <= number < at]
        smaller = _better(best.scenario.less(parts), best, sort)
        if smaller is not best:
            best, progress = smaller, True
        at -= size
    return best, progress
