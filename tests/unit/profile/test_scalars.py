import math

import pytest

from stowplan.profile.scalars import key_text, resolve

PLAIN = {
    "": None, "~": None, "null": None, "Null": None, "nULL": "nULL",
    "yes": True, "On": True, "y": True, "TRUE": True, "no": False, "OFF": False, "n": False, "tRue": "tRue",
    "0": 0, "12": 12, "-5": -5, "+7": 7, "0x1F": 31, "010": 8, "0o17": 15, "0b101": 5, "-0b11": -3, "1_000": 1000,
    "09": 9, "1.5": 1.5, ".5": 0.5, "1e3": 1000, "16.0": 16, "1.": 1, "-.5e1": -5,
    "18446744073709551615": 2**64 - 1, "-9223372036854775808": -(2**63), "18446744073709551616": 2**64,
    "2020-01-01": "2020-01-01", "1:30": "1:30", "5s": "5s", "v1": "v1", "-": "-", "+": "+", "0x": "0x", "1__": 1, ".": ".",
}  # fmt: skip


@pytest.mark.parametrize(("text", "value"), PLAIN.items())
def test_plain_scalars_follow_go_yaml_v2(text, value):
    found = resolve(text, None, plain=True)
    assert found == value
    assert type(found) is type(value)


def test_infinities_and_nan():
    assert resolve("-.inf", None, plain=True) == -math.inf
    assert math.isnan(resolve(".NaN", None, plain=True))


@pytest.mark.parametrize("text", ["5", "yes", "", "~"])
def test_quoted_scalars_are_text(text):
    assert resolve(text, None, plain=False) == text
    assert resolve(text, "!", plain=True) == text


def test_tags_decide():
    tag = "tag:yaml.org,2002:"
    assert resolve("5", f"{tag}str", plain=True) == "5"
    assert resolve("5", f"{tag}int", plain=False) == 5
    assert resolve("5", f"{tag}float", plain=True) == 5
    assert resolve("5", "!mine", plain=True) == "5"
    with pytest.raises(ValueError, match="cannot read 'x' as !!int"):
        resolve("x", f"{tag}int", plain=True)


@pytest.mark.parametrize(("value", "name"), [(True, "true"), (False, "false"), (8, "8"), (None, "null"), ("a", "a")])
def test_keys_become_json_names(value, name):
    assert key_text(value) == name
