"""Warnings on standard error: what is strange about the policy and the dump, grouped and short."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

import click

from stowplan.cli.options import COMPLETE
from stowplan.cli.output import columns, wrapped
from stowplan.cli.tables import printable

if TYPE_CHECKING:
    from stowplan.cli.inputs import Inputs
    from stowplan.objects import Pod
    from stowplan.policy.compile import Policy
    from stowplan.policy.incomplete import Lack
    from stowplan.state import Store
    from stowplan.text import Diagnostic

ALIKE = 3
"""Findings of one kind that are shown before the rest is counted."""


def notify(inputs: Inputs, asked: Iterable[Pod] = (), also: Iterable[Policy] = ()) -> None:
    """Tell what was odd about the policy and the dump, for pods that wait or are `asked` about; `also` about more policies.

    Remarks are for those who validate a policy.
    """
    from stowplan.text import Code, Severity

    policies = (inputs.policy, *also)
    warned = [finding for policy in policies for finding in policy.warnings if finding.severity is not Severity.INFO]
    findings = [finding for finding in warned if finding.code is not Code.UNKNOWN_LABEL]  # the labels of the nodes say more
    lacking = list(_lacking(inputs, asked))
    strange = [
        *dict.fromkeys(_findings(findings)),
        *dict.fromkeys(_findings(lint for policy in policies for lint in _rules(policy, inputs.store))),
        *_findings([*_told(lacking), *inputs.report.warnings]),
        *(f"note: {lack} (--complete: the dump is complete)" for lack in lacking if not lack.certain),
    ]
    width = columns() if sys.stderr.isatty() else None
    for text in [*strange, *_skipped(inputs)]:
        click.echo("\n".join(wrapped(printable(text), width)), err=True)


def _lacking(inputs: Inputs, asked: Iterable[Pod]) -> Iterable[Lack]:
    """Kinds that the dump should hold and does not, unless the user says that it holds everything."""
    from stowplan.policy.incomplete import lacks

    context = click.get_current_context(silent=True)
    return () if context is not None and context.meta.get(COMPLETE) else lacks(inputs.store, asked)


def _told(lacking: Iterable[Lack]) -> Iterable[Diagnostic]:
    from stowplan.text import Code, Diagnostic, Severity

    return [Diagnostic(Code.INCOMPLETE, Severity.WARNING, str(lack)) for lack in lacking if lack.certain]


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
        found = [render(one).partition("\n")[0] + _meant(one) for one in group]
        yield from found[:ALIKE]
        if len(found) > ALIKE:
            yield f"  ... and {len(found) - ALIKE} more like it"


def _meant(diagnostic: Diagnostic) -> str:
    """The name that was meant, which is worth a place in the one line of a finding."""
    return next((f": {note}" for note in diagnostic.notes if note.startswith("did you mean")), "")


def _skipped(inputs: Inputs) -> Iterable[str]:
    from stowplan.text import counted

    skipped = inputs.report.skipped
    if skipped:
        kinds = ", ".join(f"{kind} ({count})" for kind, count in sorted(skipped.items()))
        yield f"note: left out {counted(skipped.total(), 'object')} of kinds that scheduling does not read: {kinds}"
