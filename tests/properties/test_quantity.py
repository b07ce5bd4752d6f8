"""Quantities against exact fractions."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.objects import QuantityError, milli, parse, show, whole

NANO = 10**9
MOST = 2**63 - 1
SUFFIXES = {
    "": Fraction(1),
    **{suffix: Fraction(10) ** power for suffix, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)},
    **{f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", 1)},
}

digits = st.text("0123456789", min_size=1, max_size=14)
exponents = st.integers(-25, 25)


@st.composite
def quantities(draw):
    """A text and the exact number it stands for."""
    sign, units, fraction = draw(st.sampled_from(["", "+", "-"])), draw(digits), draw(st.none() | digits)
    written = units if fraction is None else f"{units}.{fraction}"
    if draw(st.booleans()):
        power = draw(exponents)
        suffix, factor = f"{draw(st.sampled_from('eE'))}{power}", Fraction(10) ** power
    else:
        suffix, factor = draw(st.sampled_from(sorted(SUFFIXES.items())))
    exact = Fraction(written) * factor
    if suffix.endswith("i"):
        exact = min(exact, Fraction(MOST))
    return f"{sign}{written}{suffix}", -exact if sign == "-" else exact


def away_from_zero(value):
    return ceil(value) if value >= 0 else -ceil(-value)


@given(quantities())
def test_parsing_keeps_nine_decimals_and_rounds_away_from_zero(case):
    text, exact = case
    assert parse(text) == away_from_zero(exact * NANO)


@given(quantities())
def test_rounding_to_scheduler_units(case):
    text, exact = case
    nano = Fraction(parse(text), NANO)
    assert whole(parse(text)) == max(min(away_from_zero(nano), MOST), -MOST - 1)
    assert milli(parse(text)) == max(min(away_from_zero(nano * 1000), MOST), -MOST - 1)
    assert (exact == 0) == (whole(parse(text)) == 0)  # nothing but zero rounds to zero


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_mean_themselves(value):
    assert parse(value) == parse(str(value)) == value * NANO


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15))
def test_floats_are_read_as_they_are_written(value):
    assert parse(value) == away_from_zero(Fraction(repr(value)) * NANO)


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("12E", 12 * 10**27),
        ("1E3", 10**12),
        ("1E", 10**27),
        ("1e-3", 10**6),
        ("1.5Gi", 1610612736 * NANO),
        ("100n", 100),
        ("0.1n", 1),
        ("-0.1n", -1),
        ("1.", NANO),
        (".5", NANO // 2),
        ("0.0000000000001Ki", 1),
        ("16Ei", MOST * NANO),
        ("1e-400", 1),
        ("0e400", 0),
    ],
)
def test_known_quantities(text, nano):
    assert parse(text) == nano


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 1",
        "1 ",
        "1 Gi",
        "1gb",
        "1K",
        "1mi",
        "1e",
        "1e1.5",
        "1.2.3",
        "--1",
        "x",
        "m",
        ".",
        "+",
        "1_000",
        "0x10",
        "\u0661",
        "nan",
        "inf",
    ],
)
def test_what_is_no_quantity(text):
    with pytest.raises(QuantityError):
        parse(text)


@given(st.text("0123456789.eEinumkKMGTP+- ", max_size=12))
def test_any_text_is_a_quantity_or_an_error(text):
    try:
        assert isinstance(parse(text), int)
    except QuantityError as error:
        assert error.why  # noqa: PT017


@pytest.mark.parametrize(
    ("name", "amount", "text"),
    [
        ("cpu", 1500, "1.5"),
        ("cpu", 4000, "4"),
        ("cpu", 30, "30m"),
        ("cpu", 250, "0.25"),
        ("cpu", 0, "0"),
        ("memory", 1610612736, "1.5Gi"),
        ("memory", 1000, "1000"),
        ("hugepages-2Mi", 2 * 1024 * 1024, "2Mi"),
        ("nvidia.com/gpu", 3, "3"),
        ("pods", 110, "110"),
    ],
)
def test_amounts_as_people_write_them(name, amount, text):
    assert show(name, amount) == text
