"""Warnings on standard error: what is strange about the policy and the dump, grouped and short."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

import click

from stowplan.cli.output import columns, wrapped
from stowplan.cli.tables import printable

if TYPE_CHECKING:
    from stowplan.cli.inputs import Inputs
    from stowplan.objects import Pod
    from stowplan.policy.compile import Policy
    from stowplan.state import Store
    from stowplan.text import Diagnostic

ALIKE = 3
"""Findings of one kind that are shown before the rest is counted."""


def notify(inputs: Inputs, asked: Iterable[Pod] = (), also: Iterable[Policy] = ()) -> None:
    """Tell what was odd about the policy and the dump, for pods that wait or are `asked` about; `also` about more policies.

    Remarks are for those who validate a policy.
    """
    from stowplan.text import Severity

    policies = (inputs.policy, *also)
    findings = [*(finding for policy in policies for finding in policy.warnings if finding.severity is not Severity.INFO)]
    strange = [
        *dict.fromkeys(_findings(findings)),
        *dict.fromkeys(_findings(lint for policy in policies for lint in _rules(policy, inputs.store))),
        *_findings([*_lacking(inputs, asked), *inputs.report.warnings]),
    ]
    width = columns() if sys.stderr.isatty() else None
    for text in [*strange, *_skipped(inputs)]:
        click.echo("\n".join(wrapped(printable(text), width)), err=True)


def _lacking(inputs: Inputs, asked: Iterable[Pod]) -> Iterable[Diagnostic]:
    """Kinds that the dump should hold and does not."""
    from stowplan.policy.incomplete import lacks
    from stowplan.text import Code, Diagnostic, Severity

    return [Diagnostic(Code.INCOMPLETE, Severity.WARNING, str(lack)) for lack in lacks(inputs.store, asked)]


def _rules(policy: Policy, store: Store) -> Iterable[Diagnostic]:
    """What is strange about rules on this cluster."""
    from stowplan.profile import RULES

    profiles = policy.configuration.versions
    if not any(profile.rules or any(entry.name == RULES for entry in profile.plugin_config) for profile in profiles):
        return ()
    from stowplan.policy.rule_lints import lints_on

    return lints_on(policy, store, verdicts=False)


def _findings(diagnostics: Iterable[Diagnostic]) -> Iterable[str]:
    """First lines of findings, those of one kind together."""
    from stowplan.text import render

    def kind(diagnostic: Diagnostic) -> str:
        return diagnostic.code.value

    for _, group in groupby(sorted(diagnostics, key=kind), key=kind):
        found = [render(diagnostic).partition("\n")[0] for diagnostic in group]
        yield from found[:ALIKE]
        if len(found) > ALIKE:
            yield f"  ... and {len(found) - ALIKE} more like it"


def _skipped(inputs: Inputs) -> Iterable[str]:
    from stowplan.text import counted

    skipped = inputs.report.skipped
    if skipped:
        kinds = ", ".join(f"{kind} ({count})" for kind, count in sorted(skipped.items()))
        yield f"note: left out {counted(skipped.total(), 'object')} of kinds that scheduling does not read: {kinds}"
