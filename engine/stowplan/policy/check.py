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
from stowplan.policy.lint import lint
from stowplan.policy.releases import plugins_of
from stowplan.policy.served import not_served
from stowplan.profile import Table
from stowplan.profile.unwrap import Found, unwrap
from stowplan.profile.versions import NEWEST, is_served
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
        examined = [examine(source, plugins_of(options.minor), compat=True, minor=options.minor)]
        findings = list(examined[0].diagnostics)
        configuration = examined[0].configuration
        if configuration is not None and configuration.origin and isinstance(configuration.origin.tree, Table):
            findings += not_served(configuration.origin.tree, options.minor, compat=True)
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
    result = examine(found.tree, plugins, compat=False, minor=options.minor)
    findings = [*found.diagnostics, *result.diagnostics]
    if result.configuration is not None:
        findings += lint(result.configuration, result.profiles, plugins)
        findings += not_served(found.tree, options.minor)
        if options.hints:
            from stowplan.policy.hints import hints  # noqa: PLC0415 - only on demand: start-up counts

            findings += hints(result.configuration, result.profiles)
    return dataclasses.replace(result, diagnostics=tuple(findings))


def _no_mapping(found: Found) -> Examined:
    message = "expected a configuration, which is a mapping"
    tree = found.tree
    finding = Diagnostic(Code.NOT_A_MAPPING, Severity.ERROR, message, tree.span if tree else None)
    return Examined(None, (), (*found.diagnostics, finding))


def _final(findings: Iterable[Diagnostic], options: Options) -> tuple[Diagnostic, ...]:
    """In the order of the text, each once, as severe as the release makes it, without what the file silences."""
    final: dict[Diagnostic, None] = {}
    silenced = _Silenced()
    ordered = sorted(findings, key=lambda d: d.span.start if d.span else -1)
    wrong = {finding.span for finding in ordered if finding.is_error}
    for finding in ordered:
        # what is wrong itself need not be called unknown too
        if not silenced.has(finding) and not (finding.code is Code.UNUSED_ARGS and finding.span in wrong):
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
    served = is_served(finding.span.text.strip("\"'"), options.minor)
    return dataclasses.replace(finding, severity=Severity.WARNING if served else Severity.ERROR)


class _Silenced:
    """The comments that silence findings of their line, or of the next if they stand alone; read once a text."""

    def __init__(self) -> None:
        self._codes: dict[int, dict[int, str]] = {}
        self._sources: list[Source] = []
        """kept, so that no other takes the identity of one"""

    def has(self, finding: Diagnostic) -> bool:
        """Whether a finding is silenced."""
        return finding.span is not None and finding.code.value in self._of(finding.span.source).get(finding.span.line, "")

    def _of(self, source: Source) -> dict[int, str]:
        """Codes by line."""
        if id(source) not in self._codes:
            self._sources.append(source)
            codes: dict[int, str] = {}
            for match in _IGNORE.finditer(source.text):
                number, column = source.locate(match.start())
                alone = not source.text[match.start() - column + 1 : match.start()].strip()
                for line in (number, number + 1) if alone else (number,):
                    codes[line] = codes.get(line, "") + match[1]
            self._codes[id(source)] = codes
        return self._codes[id(source)]
