from stowplan.text import Code, Diagnostic, Severity, Source, Span, render, render_all, to_json


def at(text, what, **more):
    start = text.index(what)
    span = Span(Source("profile.yaml", text), start, start + len(what))
    return Diagnostic(Code.UNKNOWN_FIELD, Severity.ERROR, "unknown field", span, **more)


def test_line_caret_and_notes():
    assert render(at("a: 1\nbcd: 2\n", "bcd", notes=('did you mean "b"?',))) == (
        'profile.yaml:2:1: error[STW101]: unknown field\n  2 | bcd: 2\n    | ^^^\n  note: did you mean "b"?'
    )


def test_wide_characters_move_the_caret():
    assert render(at("名: x", "x")).splitlines()[1:] == ["  1 | 名: x", "    |     ^"]


def test_a_span_over_several_lines_is_marked_on_its_first():
    assert render(at("a:\n- b\n- c\n", "- b\n- c")).splitlines()[-1] == "    | ^^^"


def test_a_long_line_is_cut_around_the_place():
    lines = render(at("x" * 5000 + "here" + "y" * 5000, "here")).splitlines()
    assert max(map(len, lines[1:])) < 200
    marked = lines[2].index("^")
    assert lines[1][marked : marked + 4] == "here"


def test_control_characters_do_not_reach_the_terminal():
    assert "\x1b" not in render(Diagnostic(Code.INVALID, Severity.ERROR, "\x1b[2J", at("a\x1bb", "b").span))


def test_without_a_place_the_path_tells():
    diagnostic = Diagnostic(Code.REQUIRED, Severity.WARNING, "Required value", None, "profiles[0].schedulerName")
    assert render(diagnostic) == "warning[STW202]: profiles[0].schedulerName: Required value"


def test_several_come_one_after_the_other():
    diagnostic = at("a", "a")
    assert render_all([diagnostic, diagnostic]) == f"{render(diagnostic)}\n{render(diagnostic)}"


def test_a_note_may_have_several_lines():
    shown = render(at("a", "a", notes=("write instead:\n- name: b",)))
    assert shown.splitlines()[-2:] == ["  note: write instead:", "    - name: b"]


def test_json_has_the_same_facts():
    assert to_json(at("a: 1\nb: 2\n", "b", path="b")) == {
        "code": "STW101",
        "severity": "error",
        "message": "unknown field",
        "path": "b",
        "file": "profile.yaml",
        "line": 2,
        "column": 1,
        "notes": [],
    }
    assert to_json(Diagnostic(Code.REQUIRED, Severity.ERROR, "x"))["line"] is None
