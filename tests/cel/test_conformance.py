"""The test vectors of cel-spec and of Kubernetes' environment, and that the runner notices what fails."""

import importlib.util
import json
import pathlib

import pytest

from stowplan.cel import CelError, Program, Rows

HERE = pathlib.Path(__file__).parent
_SPEC = importlib.util.spec_from_file_location("conformance", HERE / "conformance.py")
conformance = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(conformance)


SHARED = HERE.parents[2] / "shared" / "cel"


def vectors(name):
    """Test vectors of other projects are read where they lie; they are not part of this one."""
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"there is no ../shared/cel/{name} beside the checkout")
    return path


@pytest.mark.parametrize("name", ["conformance.json.gz", "kubernetes.jsonl.gz"])
def test_vectors(name, capsys):
    code = conformance.main([vectors(name)])
    assert code == 0, capsys.readouterr().out


def test_what_random_expressions_brought_to_light(capsys):
    """Expressions on which this and Kubernetes' environment once differed, with the answers of the latter."""
    assert conformance.main([HERE / "found.jsonl"]) == 0, capsys.readouterr().out


def test_a_wrong_value_fails(tmp_path, capsys):
    path = tmp_path / "own.json"
    test = {"id": "own/1", "file": "own", "section": "s", "name": "n", "expr": "1 + 1", "expect": {"value": {"int": "3"}}}
    path.write_text(json.dumps({"tests": [test]}))
    assert conformance.main([path]) == 1
    assert "FAIL own/1" in capsys.readouterr().out


def test_an_unknown_function_is_no_expected_error(tmp_path):
    path = tmp_path / "own.json"
    test = {"id": "own/1", "file": "own", "section": "s", "name": "n", "expr": "nope(1)", "expect": {"error": ["range"]}}
    path.write_text(json.dumps({"tests": [test]}))
    assert conformance.main([path]) == 1


@pytest.mark.parametrize(
    ("expr", "expect"),
    [
        ("1 / 0", {"check_error": "division by zero"}),
        ("1 + 'a'", {"error": "no such overload"}),
        ("'%.1f'.format([1.0])", {"value": {"string": "2.0"}}),
    ],
)
def test_kubernetes_vectors_distinguish_when_an_error_comes(tmp_path, expr, expect):
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps({"id": "x/1", "expr": expr, "bindings": {}, "type_env": [], "expect": expect}) + "\n")
    assert conformance.main([path]) == 1


def test_every_exception_is_still_needed():
    """An exception whose tests all pass has to go."""
    listed = conformance.exceptions()
    failing = set()
    for name in ("conformance.json.gz", "kubernetes.jsonl.gz"):
        dialect, tests = conformance.load(vectors(name))
        for test in tests:
            hit = next((entry for entry in listed if conformance.identity(test).startswith(entry)), None)
            if hit is not None and conformance.fault(test, dialect) is not None:
                failing.add(hit)
    assert failing == set(listed)


@pytest.mark.parametrize("name", ["conformance.json.gz", "kubernetes.jsonl.gz"])
def test_a_single_object_is_a_column_of_length_one(name):
    """Every vector with bindings once more over columns: the same values and the same errors."""
    dialect, tests = conformance.load(vectors(name))
    count = 0
    for test in tests:
        if "proto" in test.get("tags", []) or test.get("check_only") or not test.get("bindings"):
            continue
        make = conformance.compile_unchecked if test.get("disable_check") else conformance.compile_expression
        program = make(test["expr"], conformance.environment(test, dialect))
        if isinstance(program, Program):
            count += 1
            bindings = {key: conformance.decode(value) for key, value in test["bindings"].items()}
            answer = program.evaluate_rows({key: Rows([value]) for key, value in bindings.items()}, 1)
            assert _shown(answer.column.row(0)) == _shown(program.evaluate(bindings)), test["expr"]
    assert count > 20


def _shown(value):
    return value.message if isinstance(value, CelError) else conformance.encode(value)
