"""What YAML can say and JSON cannot is one error, at the place where it is said."""

import pytest

from stowplan import ClusterError
from stowplan.edge.load import read_cluster


def only(path, text):
    path.write_text(text)
    with pytest.raises(ClusterError) as caught:
        read_cluster([path])
    (diagnostic,) = [diagnostic for diagnostic in caught.value.diagnostics if diagnostic.is_error]
    return diagnostic


def position(text, needle):
    """Line and column of the first `needle`."""
    offset = text.index(needle)
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def where(diagnostic):
    return diagnostic.span.line, diagnostic.span.column


BOMBS = {
    "lists": ["l0: &l0 [x, x]", *(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 40))],
    "merges": ["l0: &l0 {k: v}", *(f"l{n}: &l{n}\n  <<: [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 40))],
    "texts": [f"l0: &l0 {'x' * 100_000}", f"l1: [{', '.join(['*l0'] * 1000)}]"],
}


@pytest.mark.parametrize("kind", ["Node", "Bomb"])
@pytest.mark.parametrize("bomb", BOMBS)
def test_aliases_that_stand_for_too_much(tmp_path, bomb, kind):
    text = f"kind: {kind}\nmetadata: {{name: b}}\n" + "\n".join(BOMBS[bomb]) + "\n"
    found = only(tmp_path / "bomb.yaml", text)
    assert "with its aliases written out this has more than" in found.message
    assert found.span.line > 3


@pytest.mark.parametrize("knot", ["&a {name: x, labels: *a}", "&a {name: x, <<: *a}", "{name: x, finalizers: &a [[*a]]}"])
def test_an_alias_inside_what_it_stands_for(tmp_path, knot):
    text = f"kind: Node\nmetadata: {knot}\n"
    found = only(tmp_path / "knot.yaml", text)
    assert "holds itself" in found.message
    assert where(found) == position(text, "&a")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("!!timestamp x", "no values with the tag !!timestamp"),
        ("!!timestamp 2020-01-01", "no values with the tag !!timestamp"),
        ("!mine x", "no values with the tag !mine"),
        ('!!int ""', '"" cannot be read as !!int'),
        ("!!int x", '"x" cannot be read as !!int'),
        ('!!float ""', '"" cannot be read as !!float'),
        ("!!bool x", '"x" cannot be read as !!bool'),
        ("!!binary ä", "cannot be read as !!binary"),
        ("!!map [a]", "a list cannot have the tag !!map"),
        ("!!seq {a: b}", "a mapping cannot have the tag !!seq"),
        ("!!str {a: b}", "a mapping cannot have the tag !!str"),
        ("!!set {a}", "a mapping cannot have the tag !!set"),
        ("!!omap [a: b]", "a list cannot have the tag !!omap"),
        ("9" * 5000, "cannot be read as !!int"),
        (".nan", ".nan is not a number that JSON has"),
        ("-.inf", "-.inf is not a number that JSON has"),
        ("1.0e+999", "1.0e+999 is not a number that JSON has"),
    ],
)
@pytest.mark.parametrize("before", ["", "items:\n- kind: Node\n  metadata: {name: b}\nkind: List\n---\n"])
def test_values_that_kubernetes_does_not_know(tmp_path, value, message, before):
    text = f"{before}kind: Node\nmetadata: {{name: a}}\nspec:\n  x: {value}\n"
    found = only(tmp_path / "dump.yaml", text)
    assert message in found.message
    assert where(found) == position(text, value)


@pytest.mark.parametrize(
    ("line", "needle"), [("[a]: b", "[a]"), ("<<: 5", "5"), ("<<: [5]", "[5]"), ("x: {? {a: b} : c}", "{a: b}")]
)
def test_keys_that_are_none(tmp_path, line, needle):
    text = f"kind: Node\nmetadata: {{name: a}}\nspec:\n  {line}\n"
    assert where(only(tmp_path / "dump.yaml", text)) == position(text, needle)
