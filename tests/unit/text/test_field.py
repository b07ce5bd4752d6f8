import pytest

from stowplan.text import Kind, Problem, parse_path, show_path

PATHS = [
    ((), ""),
    (("profiles",), "profiles"),
    (("profiles", 0, "plugins", "score"), "profiles[0].plugins.score"),
    (("a", 1, 2, "b"), "a[1][2].b"),
]


@pytest.mark.parametrize(("path", "text"), PATHS)
def test_paths_are_written_as_kubernetes_writes_them(path, text):
    assert show_path(path) == text
    assert parse_path(text) == path


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem(("a", 0), Kind.INVALID, "must be greater than 0", 0), "a[0]: Invalid value: 0: must be greater than 0"),
        (Problem(("a",), Kind.INVALID, "no", "x"), 'a: Invalid value: "x": no'),
        (Problem(("a",), Kind.INVALID, "no", ["x"]), 'a: Invalid value: ["x"]: no'),
        (Problem(("a",), Kind.REQUIRED), "a: Required value"),
        (Problem(("a",), Kind.FORBIDDEN, "not here", 1), "a: Forbidden: not here"),
        (Problem(("a",), Kind.DUPLICATE, value="x"), 'a: Duplicate value: "x"'),
    ],
)
def test_problems_read_like_field_errors(problem, text):
    assert str(problem) == text


def test_a_problem_moves_under_its_parent():
    assert str(Problem(("weight",), Kind.REQUIRED).under("resources", 2)) == "resources[2].weight: Required value"
