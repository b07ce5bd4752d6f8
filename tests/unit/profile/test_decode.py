from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from stowplan.profile import Origin, Tree, decode, parse, plain
from stowplan.profile.decode import parse_duration
from stowplan.text import ZERO_MEANS_DEFAULT, Code, Int32, Source, within, written_as


@dataclass(frozen=True)
class Inner:
    name: str = ""
    weight: Int32 = 0


@dataclass(frozen=True)
class Outer:
    flag: bool = False
    number: int = 1
    small: Int32 = 2
    ratio: float = 0.5
    text: str = "t"
    data: bytes = b""
    wait: timedelta = timedelta(seconds=1)
    maybe: str | None = None
    inner_part: Inner = Inner()
    many_parts: tuple[Inner, ...] = ()
    words: tuple[str, ...] = ()
    labels: Mapping[str, str] | None = None
    raw: Tree | None = None
    zero: int = field(default=7, metadata=ZERO_MEANS_DEFAULT)
    pause: timedelta = field(default=timedelta(seconds=3), metadata=ZERO_MEANS_DEFAULT)
    points: tuple[int, ...] | None = field(default=None, metadata=within("shape"))
    odd: bool = field(default=False, metadata=written_as("oddONE"))
    origin: Origin | None = field(default=None, compare=False)


def read(text):
    tree, diagnostics = parse(Source("f.yaml", text))
    assert diagnostics == []
    return decode(Outer, Origin(tree), tree)


GOOD = [
    ("{}", Outer()),
    ("flag: yes\nnumber: -9223372036854775808\nsmall: 2147483647\n", Outer(flag=True, number=-(2**63), small=2**31 - 1)),
    ("ratio: 3\ntext: ''\nmaybe: x\n", Outer(ratio=3.0, text="", maybe="x")),
    ("data: aGk=\nwait: 1m30s\n", Outer(data=b"hi", wait=timedelta(seconds=90))),
    ("innerPart: {name: x, weight: 3}\n", Outer(inner_part=Inner("x", 3))),
    ("manyParts: [{name: a}, {}, ~]\nwords: [a, ~]\n", Outer(many_parts=(Inner("a"), Inner(), Inner()), words=("a", ""))),
    ("labels: {a: b}\n", Outer(labels={"a": "b"})),
    ("number: ~\ntext: ~\nmanyParts: ~\ninnerPart: ~\nwait: ~\n", Outer()),
    ("zero: 0\npause: 0s\n", Outer()),
    ("zero: 5\npause: 2s\n", Outer(zero=5, pause=timedelta(seconds=2))),
    ("points: {shape: [1, 2]}\n", Outer(points=(1, 2))),
    ("points: {}\n", Outer(points=())),
    ("points: ~\n", Outer()),
    ("oddONE: true\n", Outer(odd=True)),
]


@pytest.mark.parametrize(("text", "value"), GOOD)
def test_values_come_from_annotations_and_defaults(text, value):
    found, diagnostics = read(text)
    assert diagnostics == []
    assert found == value


BAD = [
    ("flag: 1\n", "flag: expected true or false, got the number 1", (1, 7)),
    ("number: '1'\n", 'number: expected an integer, got the string "1"', (1, 9)),
    ("number: true\n", "number: expected an integer, got true", (1, 9)),
    ("number: 1.5\n", "number: expected an integer, got the number 1.5", (1, 9)),
    ("number: 9223372036854775808\n", "number: expected an integer of 64 bits, got the number 9223372036854775808", (1, 9)),
    ("small: 2147483648\n", "small: expected an integer of 32 bits, got the number 2147483648", (1, 8)),
    ("ratio: .inf\n", "ratio: expected a number, got the number inf", (1, 8)),
    ("text: 5\n", "text: expected a string, got the number 5", (1, 7)),
    ("text: [a]\n", "text: expected a string, got a list", (1, 1)),
    ("data: '*'\n", 'data: expected base64 text, got the string "*"', (1, 7)),
    ("wait: 5\n", 'wait: expected a duration such as "1m30s", got the number 5', (1, 7)),
    ("pause: ~\n", 'pause: expected a duration such as "1m30s", got null', (1, 1)),
    ("innerPart: []\n", "innerPart: expected a mapping, got a list", (1, 1)),
    ("manyParts: {}\n", "manyParts: expected a list, got a mapping", (1, 1)),
    ("manyParts:\n- x\n", 'manyParts[0]: expected a mapping, got the string "x"', (2, 3)),
    ("manyParts:\n- {weight: x}\n", 'manyParts[0].weight: expected an integer, got the string "x"', (2, 12)),
    ("labels: {a: 1}\n", "labels.a: expected a string, got the number 1", (1, 13)),
    ("points: [1]\n", "points: expected a mapping, got a list", (1, 1)),
]


@pytest.mark.parametrize(("text", "message", "where"), BAD)
def test_wrong_types_are_named_with_their_place(text, message, where):
    value, diagnostics = read(text)
    assert [(d.code, f"{d.path}: {d.message}", (d.span.line, d.span.column)) for d in diagnostics] == [
        (Code.WRONG_TYPE, message, where)
    ]
    assert isinstance(value, Outer)


UNKNOWN = [
    ("Number: 1\n", 'unknown field "Number"', ('did you mean "number"?',)),
    ("inerPart: {}\n", 'unknown field "inerPart"', ('did you mean "innerPart"?',)),
    ("manyParts: [{nam: x}]\n", 'unknown field "manyParts[0].nam"', ('did you mean "name"?',)),
    ("weight: 1\n", 'unknown field "weight"', ("it belongs under innerPart: indent it",)),
    ("points: {shap: []}\n", 'unknown field "points.shap"', ('did you mean "shape"?',)),
    ("xyz: 1\n", 'unknown field "xyz"', ()),
    ("origin: 1\n", 'unknown field "origin"', ()),
    ("odd: 1\n", 'unknown field "odd"', ()),
]


@pytest.mark.parametrize(("text", "message", "notes"), UNKNOWN)
def test_unknown_fields_come_with_a_suggestion(text, message, notes):
    _, diagnostics = read(text)
    assert [(d.code, d.message, d.notes) for d in diagnostics] == [(Code.UNKNOWN_FIELD, message, notes)]


def test_everything_wrong_is_reported_and_the_rest_is_read():
    value, diagnostics = read("flag: 1\nnumber: x\nnope: 1\ntext: kept\nmanyParts: [{name: a, weight: x}, 5, {name: b}]\n")
    assert [d.span.line for d in diagnostics] == [1, 2, 3, 5, 5]
    assert value == Outer(text="kept", many_parts=(Inner("a"), Inner(), Inner("b")))


def test_trees_are_kept_and_origins_filled_in():
    value, _ = read("raw: {a: [1]}\n")
    assert plain(value.raw) == {"a": [1]}
    assert value.origin.under("raw", "a").span.text == "a"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("15s", 15), ("1h2m3s", 3723), ("1.5m", 90), (".5s", 0.5), ("-1s", -1), ("+2ms", 0.002), ("300us", 0.0003)],
)
def test_durations_are_gos(text, seconds):
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "5", "s", "-", "1 s", "1d", "1s x", ".s", "99999999h"])
def test_what_go_refuses_is_no_duration(text):
    assert parse_duration(text) is None
