"""Findings as text for people, and in the formats that other programs read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click

from stowplan import __version__
from stowplan.policy.compile import Examined
from stowplan.text import Diagnostic, render, to_json

SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_GITHUB = {"error": "error", "warning": "warning", "info": "notice"}


@dataclass(frozen=True, slots=True)
class Subject:
    """A file with its findings; the name is empty for what could not be read, whose message names it."""

    name: str
    diagnostics: tuple[Diagnostic, ...]
    examined: tuple[Examined, ...] = ()
    unreadable: bool = False


def show(subjects: Sequence[Subject], form: str, *, effective: bool = False) -> None:
    """Print the findings on standard output; with `effective`, JSON has the merged plugins too."""
    if form == "json":
        import json

        text = json.dumps(_json(subjects, effective=effective), indent=2, ensure_ascii=False)
    else:
        text = _FORMS[form](subjects)
    if text:
        click.echo(text)


def summary(subjects: Sequence[Subject]) -> str:
    """`2 files: 1 error, 3 warnings`."""
    counts = Counter(d.severity.value for subject in subjects for d in subject.diagnostics)
    names = {"error": "error", "warning": "warning", "info": "remark"}
    parts = [f"{counts[key]} {name}{'s' if counts[key] > 1 else ''}" for key, name in names.items() if counts[key]]
    files = f"{len(subjects)} file{'s' if len(subjects) > 1 else ''}"
    return f"{files}: {', '.join(parts) or 'nothing to complain about'}"


def _full(subjects: Sequence[Subject]) -> str:
    found = [render(finding) for subject in subjects for finding in subject.diagnostics]
    return "\n\n".join([*found, summary(subjects)])


def _concise(subjects: Sequence[Subject]) -> str:
    lines = [render(finding).partition("\n")[0] for subject in subjects for finding in subject.diagnostics]
    return "\n".join(_with_remedies(lines, subjects))


def _with_remedies(lines: list[str], subjects: Sequence[Subject]) -> Iterator[str]:
    """Each line with the first note, which is the remedy where there is one."""
    findings = [finding for subject in subjects for finding in subject.diagnostics]
    for line, finding in zip(lines, findings, strict=True):
        yield f"{line} ({finding.notes[0]})" if finding.notes else line


def _json(subjects: Sequence[Subject], *, effective: bool) -> dict[str, Any]:
    findings = [to_json(finding) for subject in subjects for finding in subject.diagnostics]
    counts = Counter(finding["severity"] for finding in findings)
    document: dict[str, Any] = {
        "apiVersion": "stowplan.io/v1alpha1",
        "kind": "ValidationReport",
        "files": [subject.name for subject in subjects if subject.name],
        "summary": {key: counts[key] for key in ("error", "warning", "info")},
        "findings": findings,
    }
    if effective:
        from stowplan.cli.validate_effective import as_json, profiles_of

        document["effective"] = {subject.name: as_json(profiles_of(subject)) for subject in subjects if subject.examined}
    return document


def _sarif(subjects: Sequence[Subject]) -> str:
    """SARIF 2.1.0 with one run."""
    import json

    from stowplan.cli.rule_texts import TEXTS

    findings = [finding for subject in subjects for finding in subject.diagnostics]
    codes = sorted({finding.code for finding in findings})
    rules = [
        {
            "id": code.value,
            "name": code.name.title().replace("_", ""),
            "shortDescription": {"text": TEXTS[code].title},
            "fullDescription": {"text": TEXTS[code].why},
            "help": {"text": f"stowplan rule {code.value}"},
        }
        for code in codes
    ]
    driver = {"name": "stowplan", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, codes.index(finding.code)) for finding in findings],
    }
    return json.dumps({"$schema": SARIF, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)


def _result(finding: Diagnostic, rule: int) -> dict[str, Any]:
    text = ". ".join([_sentence(finding), *finding.notes])
    result: dict[str, Any] = {
        "ruleId": finding.code.value,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity.value],
        "message": {"text": text},
    }
    if finding.span is not None:
        from urllib.parse import quote

        start, end = finding.span.source.locate(finding.span.start), finding.span.source.locate(finding.span.end)
        region = {"startLine": start[0], "startColumn": start[1], "endLine": end[0], "endColumn": end[1]}
        place = {"artifactLocation": {"uri": quote(finding.span.source.name)}, "region": region}
        result["locations"] = [{"physicalLocation": place}]
    return result


def _junit(subjects: Sequence[Subject]) -> str:
    """One test suite a file; errors are failures, other findings are its output."""
    from xml.etree.ElementTree import Element, SubElement, indent, tostring

    root = Element("testsuites", name="stowplan validate")
    for subject in subjects:
        errors = [d for d in subject.diagnostics if d.is_error]
        attributes = {"name": subject.name or "input", "tests": str(max(1, len(errors))), "failures": str(len(errors))}
        suite = SubElement(root, "testsuite", attributes)
        for error in errors:
            place = f"{error.span.line}:{error.span.column}" if error.span else ""
            case = SubElement(suite, "testcase", classname=subject.name or "input", name=f"{error.code.value} {place}".strip())
            failure = SubElement(case, "failure", type=error.code.value, message=_clean(_sentence(error)))
            failure.text = _clean(render(error))
        if not errors:
            SubElement(suite, "testcase", classname=subject.name or "input", name="valid")
        others = [_clean(render(d)) for d in subject.diagnostics if not d.is_error]
        if others:
            SubElement(suite, "system-out").text = "\n".join(others)
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode")


def _clean(text: str) -> str:
    """The text without characters that XML cannot hold."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _github(subjects: Sequence[Subject]) -> str:
    """Workflow commands, which GitHub shows at the lines of a pull request."""
    lines = []
    for subject in subjects:
        for finding in subject.diagnostics:
            properties = {"title": f"stowplan {finding.code.value}"}
            if finding.span is not None:
                span = finding.span
                properties = {"file": span.source.name, "line": str(span.line), "col": str(span.column)} | properties
            text = "\n".join([_sentence(finding), *finding.notes])
            shown = ",".join(f"{key}={_escaped(value, ':,')}" for key, value in properties.items())
            lines.append(f"::{_GITHUB[finding.severity.value]} {shown}::{_escaped(text)}")
    return "\n".join(lines)


def _escaped(text: str, more: str = "") -> str:
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def _sentence(finding: Diagnostic) -> str:
    return f"{finding.path}: {finding.message}" if finding.path else finding.message


_FORMS = {"full": _full, "concise": _concise, "sarif": _sarif, "junit": _junit, "github": _github}
