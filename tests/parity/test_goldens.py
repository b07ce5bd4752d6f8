"""Parity with kube-scheduler 1.37.2 on recorded decisions: one file of cases a theme."""

from pathlib import Path

import pytest

from parity.comparison import Comparison, cases, compare_case

GOLDENS = Path(__file__).parents[1] / "goldens"
THEMES = sorted(path.name.removesuffix(".jsonl.gz") for path in GOLDENS.glob("*.jsonl.gz"))
FIRST = 8


def agrees(theme: str, most: int | None = None) -> None:
    comparison = Comparison()
    for case, golden in cases(GOLDENS / f"{theme}.jsonl.gz", most):
        compare_case(case, golden, comparison)
    assert comparison.facts
    if comparison.differences:
        pytest.fail(str(comparison), pytrace=False)


@pytest.mark.parametrize("theme", THEMES)
def test_first_cases(theme):
    agrees(theme, FIRST)


@pytest.mark.slow
@pytest.mark.parametrize("theme", THEMES)
def test_all_cases(theme):
    agrees(theme)


def test_every_theme_is_there():
    themes = {"affinity", "configs", "dra", "images", "interpod", "mixed", "node-basics"}
    themes |= {"ports", "preemption", "resources", "spread", "taints", "volumes"}
    assert themes <= set(THEMES)
