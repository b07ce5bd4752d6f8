"""Generated expressions mean what they mean to cel-expr-python and cel-python: 500 for each, 20,000 with STOWPLAN_NIGHTLY=1.

What cel-python does otherwise stands in `others.FAULTS`.

What the generator leaves out because cel-cpp is known to do it otherwise: `substring` up to the end of the text, texts of
durations with fractions, splitting an empty text, order between int and double that the checker sees, literal texts that
are no moment (refused here before evaluation, as Kubernetes does), and one name bound in two branches.
"""

import os
import pathlib
import re
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


@pytest.fixture(scope="module")
def cel_python():
    pytest.importorskip("celpy", reason="the extra cel-python is not installed")
    return others.CelPython()


def differences(other, seed, fits=lambda _: True):
    """The cases in which another implementation has another value, and how many have one at all."""
    different, values = [], 0
    for text, given in generated.cases(seed, COUNT, fits):
        ours = others.ours(text, given)
        values += ours not in (others.ERROR, None)
        if ours is not None and ours != (theirs := other(text, given)):
            different.append((text, {name: value for name, value in given.items() if name in text}, ours, theirs))
    return different, values


@pytest.mark.parametrize("seed", SEEDS)
def test_cel_expr_python_agrees(seed, cel_cpp):
    different, values = differences(cel_cpp, seed)
    assert not different, different[:5]
    assert values > COUNT // 2  # most expressions have a value


@pytest.mark.parametrize("seed", SEEDS)
def test_cel_python_agrees(seed, cel_python):
    different, values = differences(cel_python, seed, others.CelPython.fits)
    assert not different, different[:5]
    assert values > COUNT // 2


FAULTY = {
    "string(b)": "string(§bool§)",
    "bool(t)": "bool(§string§)",
    "dyn(i) == s": "(dyn(§string§) == §int§)",
    "int(timestamp('1969-12-31T23:59:58.5Z'))": "int(§timestamp§)",
    "timestamp(0) == at": "timestamp(0)",
    "(span - span).getMinutes()": "(§duration§ - §duration§)",
    "(s + t).contains(t)": "§string§.contains(§string§)",
    "ints[-1]": "§list(int)§[§int§]",
    "1.0 / d": "(§double§ / §double§)",
    "{'a': i / 0}": "{'a': §int§, 'b': §int§}",
    "s.trim()": "§string§.trim()",
    "int(-9223372036854775808.0)": "int(§double§)",
    "false && ints.exists_one(v, v / 0 == 1)": "§list(int)§.exists_one(v, v == §int§)",
}


@pytest.mark.parametrize("text", FAULTY)
def test_what_is_left_out_for_cel_python_is_a_fault_of_it(text, cel_python, cel_cpp):
    given = next(generated.cases(1, 1))[1]
    given |= {"t": "42", "d": -0.0, "i": 3, "s": "web", "ints": [7], "b": True, "at": 0, "span": 90 * 10**9}
    assert cel_cpp(text, given) == others.ours(text, given) != cel_python(text, given)
    assert not others.CelPython.fits(FAULTY[text])
    assert sum(re.search(fault, FAULTY[text]) is not None for fault in others.FAULTS) == 1


def test_every_fault_of_cel_python_is_shown():
    assert {fault for form in FAULTY.values() for fault in others.FAULTS if re.search(fault, form)} == set(others.FAULTS)


def test_a_difference_would_be_seen(cel_cpp):
    given = next(generated.cases(1, 1))[1] | {"i": 7}
    assert cel_cpp("i + 1", given) == others.ours("i + 1", given) == ("int", 8)
    assert cel_cpp("i / 2", given) != others.ours("i / 2 + 1", given)
    assert cel_cpp("i / 0", given) == others.ours("i / 0", given) == others.ERROR
