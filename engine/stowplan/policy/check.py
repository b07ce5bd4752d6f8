"""Checks a text: compilation with the result thrown away, and what is strange about what compiles.

The compiler says what kube-scheduler refuses. What else there is to say of a file that a person wrote (names that mean nothing,
weights that do not do what they seem to) is added here, and comments of the file can silence any of it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from dataclasses import dataclass

from stowplan.policy.compile import Examined, examine
from stowplan.policy.hints import hints
from stowplan.policy.lint import lint
from stowplan.policy.releases import plugins_of
from stowplan.policy.served import not_served
from stowplan.profile import Table
from stowplan.profile.unwrap import Found, unwrap
from stowplan.profile.versions import NEWEST, SERVED
from stowplan.text import Code, Diagnostic, Severity, Source

_IGNORE = re.compile(r"#\s*stowplan:\s*ignore\[([A-Z0-9,\s]+)\]")
_MOST = 1000


@dataclass(frozen=True, slots=True)
class Options:
    """How to check: against which minor version of kube-scheduler, exactly as it does (`compat`), with hints or without."""

    minor: int = NEWEST
    compat: bool = False
    hints: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """The findings about a text, and what its configurations compile to."""

    diagnostics: tuple[Diagnostic, ...]
    examined: tuple[Examined, ...]


def check(source: Source, options: Options) -> Checked:
    """Everything there is to say about a text. With `compat` it is taken as it is: its first document, without wrapping."""
    if options.compat:
        examined = [examine(source, plugins_of(options.minor), compat=True)]
        findings = list(examined[0].diagnostics)
    else:
        found, findings = unwrap(source)
        examined = []
        for one in found:
            result = _examine(one, options)
            examined.append(result)
            findings += result.diagnostics
    return Checked(_final(findings, options), tuple(examined))


def _examine(found: Found, options: Options) -> Examined:
    """A configuration compiled for the release that is asked for, with all findings about it."""
    plugins = plugins_of(options.minor)
    if not isinstance(found.tree, Table):
        return Examined(None, (), found.diagnostics) if found.tree is None else _no_mapping(found)
    result = examine(found.tree, plugins, compat=False)
    findings = [*found.diagnostics, *result.diagnostics]
    if result.configuration is not None:
        findings += lint(result.configuration, result.profiles, plugins)
        findings += not_served(found.tree, options.minor)
        findings += hints(result.configuration, result.profiles) if options.hints else []
    return dataclasses.replace(result, diagnostics=tuple(findings))


def _no_mapping(found: Found) -> Examined:
    message = "expected a configuration, which is a mapping"
    tree = found.tree
    finding = Diagnostic(Code.NOT_A_MAPPING, Severity.ERROR, message, tree.span if tree else None)
    return Examined(None, (), (*found.diagnostics, finding))


def _final(findings: Iterable[Diagnostic], options: Options) -> tuple[Diagnostic, ...]:
    """In the order of the text, each once, as severe as the release makes it, without what the file silences."""
    final: dict[Diagnostic, None] = {}
    ordered = sorted(findings, key=lambda d: d.span.start if d.span else -1)
    wrong = {finding.span for finding in ordered if finding.is_error}
    for finding in ordered:
        # what is wrong itself need not be called unknown too
        if not _ignored(finding) and not (finding.code is Code.UNUSED_ARGS and finding.span in wrong):
            final[_for_release(finding, options)] = None
    kept = list(final)
    if len(kept) > _MOST:
        message = f"{len(kept) - _MOST} more findings are left out"
        kept[_MOST:] = [Diagnostic(Code.TOO_MANY, Severity.ERROR, message, kept[_MOST].span)]
    return tuple(kept)


def _for_release(finding: Diagnostic, options: Options) -> Diagnostic:
    """An older version is an error to a release that does not read it."""
    if finding.code is not Code.OLD_VERSION or finding.span is None:
        return finding
    span = SERVED.get(finding.span.text.strip("\"'"), (0, 0))
    served = span[0] <= options.minor <= span[1]
    return dataclasses.replace(finding, severity=Severity.WARNING if served else Severity.ERROR)


def _ignored(finding: Diagnostic) -> bool:
    """Whether a comment on the line, or on a line of its own above it, silences the finding."""
    if finding.span is None:
        return False
    source, number = finding.span.source, finding.span.line
    comments = [source.line(number)]
    if number > 1 and source.line(number - 1).lstrip().startswith("#"):
        comments.append(source.line(number - 1))
    return any(finding.code.value in match[1] for line in comments for match in _IGNORE.finditer(line))
