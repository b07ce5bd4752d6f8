import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.profile import Origin, Table, from_plain, parse, plain
from stowplan.profile.yaml_tree import at
from stowplan.text import Code, Severity, Source, has_errors


def read(text):
    return parse(Source("f.yaml", text))


def place(diagnostic):
    return diagnostic.span.line, diagnostic.span.column


TREES = [
    ("a: 1\nb: [x, {c: ~}]\n", {"a": 1, "b": ["x", {"c": None}]}),
    ("---\na: 1\n...\n", {"a": 1}),
    ("", None),
    ("# nothing\n", None),
    ('{"a": "\\u00e9",\t"b": [1.5, null]}', {"a": "é", "b": [1.5, None]}),
    ("\ufeffa: 1\r\nb: 2\r\n", {"a": 1, "b": 2}),
    ("a: &x {b: 1}\nc: *x\n", {"a": {"b": 1}, "c": {"b": 1}}),
    ("a: &x 1\nb: &x 2\nc: *x\n", {"a": 1, "b": 2, "c": 2}),
    ("a: &x {b: 1}\nc:\n  <<: *x\n  d: 2\n", {"a": {"b": 1}, "c": {"b": 1, "d": 2}}),
    ("a: &x {b: 1}\nc: {<<: [*x, {e: 3}]}\n", {"a": {"b": 1}, "c": {"b": 1, "e": 3}}),
    ("'<<': 1\n", {"<<": 1}),
    ("a: |\n  x\n  y\nb: >-\n  x\n  y\n", {"a": "x\ny\n", "b": "x y"}),
    ("on: 1\n8: 2\n", {"true": 1, "8": 2}),
]


@pytest.mark.parametrize(("text", "value"), TREES)
def test_yaml_and_json_are_read(text, value):
    tree, diagnostics = read(text)
    assert diagnostics == []
    assert plain(tree) == value


BROKEN = [
    ("a: [1, 2\nb: c\n", Code.SYNTAX, (2, 2)),
    ("a: b: c\n", Code.SYNTAX, (1, 5)),
    ("a: 'x\n", Code.SYNTAX, (1, 6)),
    ("é: 1\nb: \x07\n", Code.SYNTAX, (2, 4)),
    ("a: \ud800\n", Code.SYNTAX, (1, 4)),
    ('{"a": 1,}', Code.SYNTAX, (1, 9)),
    ("{a: 1}", Code.SYNTAX, (1, 2)),
    ("a: !!int x\n", Code.SYNTAX, (1, 4)),
    ("? [a]\n: b\n", Code.SYNTAX, (1, 3)),
    ("<<: 3\n", Code.SYNTAX, (1, 1)),
    ("é: 1\nb: *q\n", Code.BAD_ALIAS, (2, 4)),
    ("a: &x [*x]\n", Code.BAD_ALIAS, (1, 8)),
    ("a: " + "[" * 300 + "]" * 300, Code.SYNTAX, (1, 203)),
]


@pytest.mark.parametrize(("text", "code", "where"), BROKEN)
def test_text_that_cannot_be_read_gives_one_error_at_its_place(text, code, where):
    tree, diagnostics = read(text)
    assert tree is None
    assert [(d.code, d.is_error, place(d)) for d in diagnostics] == [(code, True, where)]


TWICE = [
    ("a: 1\nb: 2\na: 3\n", (3, 1)),
    ("x: {a: 1, a: 1}\n", (1, 11)),
    ('{"a": 1,\n "a": 2}', (2, 2)),
    ("a: &x {b: 1}\nc:\n  <<: *x\n  b: 2\n", (4, 3)),
    ("a: &x {b: 1}\nc:\n  b: 2\n  <<: *x\n", (4, 3)),
]


@pytest.mark.parametrize(("text", "where"), TWICE)
def test_a_key_is_written_once_also_when_it_is_merged(text, where):
    tree, diagnostics = read(text)
    assert tree is not None
    assert [(d.code, place(d)) for d in diagnostics] == [(Code.DUPLICATE_KEY, where)]


@pytest.mark.parametrize("rest", ["b: 1\n", "b: [\n"])
def test_further_documents_are_mentioned_and_not_read(rest):
    tree, diagnostics = read(f"a: 1\n---\n{rest}")
    assert plain(tree) == {"a": 1}
    assert [(d.code, place(d)) for d in diagnostics] == [(Code.MORE_DOCUMENTS, (2, 1))]
    assert not has_errors(diagnostics)


def test_aliases_cannot_multiply_without_end():
    lines = ["a: &a [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]" for a, b in zip("abcdefghi", "bcdefghij", strict=True)]
    start = time.perf_counter()
    tree, diagnostics = read("\n".join(lines))
    assert tree is None
    assert [d.code for d in diagnostics] == [Code.BAD_ALIAS]
    assert time.perf_counter() - start < 1


TEXT = "name: é\nlist:\n- one: 1\n  two:\n    deep: x\n-   three\nempty:\nflow: {a: [b]}\n"


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ((), (1, 1)),
        (("name",), (1, 7)),
        (("list",), (2, 1)),
        (("list", 0), (3, 3)),
        (("list", 0, "one"), (3, 8)),
        (("list", 0, "two"), (4, 3)),
        (("list", 0, "two", "deep"), (5, 11)),
        (("list", 1), (6, 5)),
        (("empty",), (7, 1)),
        (("flow", "a", 0), (8, 12)),
        (("list", 0, "absent", "deeper"), (3, 3)),
        (("list", 9), (2, 1)),
        (("absent",), (1, 1)),
    ],
)
def test_a_path_has_a_place_and_what_is_absent_has_that_of_its_parent(path, where):
    tree, _ = read(TEXT)
    span = Origin(tree, path).span
    assert (span.line, span.column) == where


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(alphabet="ab-:é ", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="abc", min_size=1, max_size=2), inner, max_size=3),
    max_leaves=12,
)


@given(JSON)
def test_plain_values_come_back_as_they_went_in(value):
    assert plain(from_plain(value)) == value


def test_what_json_cannot_hold_is_refused():
    with pytest.raises(TypeError, match="cannot hold a set"):
        from_plain({"a": {1}})


def test_a_table_without_some_fields():
    tree, _ = read("a: 1\nb: 2\n")
    assert isinstance(tree, Table)
    assert plain(tree.without("a")) == {"b": 2}


def test_whole_numbers_of_a_parsed_document_are_integers_as_in_json():
    assert plain(from_plain({"a": 16.0, "b": 0.5, "c": 1e300})) == {"a": 16, "b": 0.5, "c": 1e300}
    assert isinstance(plain(from_plain(16.0)), int)


def test_what_stands_at_a_path():
    tree = from_plain({"a": [{"b": 1}]})
    assert plain(at(tree, ("a", 0, "b"))) == 1
    assert at(tree, ("a", 1)) is None
    assert at(tree, ("a", 0, "b", "c")) is None
    assert at(tree, ()) is tree


def test_what_stands_behind_the_document_is_told():
    _, diagnostics = parse(Source("f.yaml", "  a: 1\nb: 2\n"))
    assert [(d.code, d.severity, d.span.line) for d in diagnostics] == [(Code.MORE_DOCUMENTS, Severity.WARNING, 2)]
