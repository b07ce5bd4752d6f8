"""Generated expressions mean what they mean to cel-expr-python: 500 of them, 20,000 with STOWPLAN_NIGHTLY=1.

What the generator leaves out because cel-cpp is known to do it otherwise: `substring` up to the end of the text, texts of
durations with fractions, splitting an empty text, order between int and double that the checker sees, literal texts that
are no moment (refused here before evaluation, as Kubernetes does), and one name bound in two branches.
"""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import generated
import others

SEEDS, COUNT = (range(100, 140), 500) if os.environ.get("STOWPLAN_NIGHTLY") else ((1,), 500)


@pytest.fixture(scope="module")
def cel_cpp():
    pytest.importorskip("cel_expr_python", reason="there is no wheel of cel-expr-python for this platform")
    return others.CelCpp()


@pytest.mark.parametrize("seed", SEEDS)
def test_cel_expr_python_agrees(seed, cel_cpp):
    different, values = [], 0
    for text, given in generated.cases(seed, COUNT):
        ours = others.ours(text, given)
        values += ours not in (others.ERROR, None)
        if ours is not None and ours != (theirs := cel_cpp(text, given)):
            different.append((text, {name: value for name, value in given.items() if name in text}, ours, theirs))
    assert not different, different[:5]
    assert values > COUNT // 2  # most expressions have a value


def test_a_difference_would_be_seen(cel_cpp):
    given = next(generated.cases(1, 1))[1] | {"i": 7}
    assert cel_cpp("i + 1", given) == others.ours("i + 1", given) == ("int", 8)
    assert cel_cpp("i / 2", given) != others.ours("i / 2 + 1", given)
    assert cel_cpp("i / 0", given) == others.ours("i / 0", given) == others.ERROR
