"""Warnings on standard error: what is strange about the policy and the dump, grouped and short."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

import click

from stowplan.cli.tables import printable

if TYPE_CHECKING:
    from stowplan.cli.inputs import Inputs
    from stowplan.text import Diagnostic

ALIKE = 3
"""Findings of one kind that are shown before the rest is counted."""


def notify(inputs: Inputs) -> None:
    """Tell what was odd about the policy and the dump."""
    for text in [*_findings(inputs.policy.warnings), *_findings(inputs.report.warnings), *_skipped(inputs)]:
        click.echo(printable(text), err=True)


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
    skipped = inputs.report.skipped
    if skipped:
        kinds = ", ".join(f"{kind} ({count})" for kind, count in sorted(skipped.items()))
        yield f"note: left out {skipped.total()} objects of kinds that scheduling does not read: {kinds}"
