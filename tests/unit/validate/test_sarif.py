"""SARIF output against the schema of the standard (OASIS SARIF 2.1.0, whose text is kept here as published)."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

from stowplan.cli.validate_forms import Subject, show
from stowplan.policy.check import Options, check
from stowplan.text import Code, Diagnostic, Severity, Source

SCHEMA = jsonschema.Draft4Validator(json.loads((Path(__file__).parent / "sarif-schema-2.1.0.json").read_text()))
PAGES = sorted((Path(__file__).parents[2] / "validate").glob("*.md"))


def log(subjects, capsys):
    show(subjects, "sarif")
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_findings_of_every_page(page, capsys):
    texts = re.findall(r"^```yaml[^\n]*\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    subjects = [
        Subject(f"a folder/{i}.yaml", check(Source(f"a folder/{i}.yaml", text), Options(hints=True)).diagnostics)
        for i, text in enumerate(texts)
    ]
    found = log(subjects, capsys)
    assert list(SCHEMA.iter_errors(found)) == []
    assert len(found["runs"][0]["results"]) == sum(len(subject.diagnostics) for subject in subjects) > 0


def test_nothing_found_and_nothing_read(capsys):
    assert list(SCHEMA.iter_errors(log([Subject("a.yaml", ())], capsys))) == []
    unreadable = Diagnostic(Code.UNREADABLE, Severity.ERROR, "a.yaml: no such file or directory")
    assert list(SCHEMA.iter_errors(log([Subject("", (unreadable,), unreadable=True)], capsys))) == []


def test_the_schema_notices(capsys):
    found = log([Subject("a.yaml", ())], capsys)
    assert list(SCHEMA.iter_errors(found | {"version": "2.0.0"}))
