"""Warnings on standard error: what is strange about the input and what is left out of the answer, grouped and short."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

import click

from stowplan.cli.tables import printable

if TYPE_CHECKING:
    from stowplan.cli.inputs import Inputs
    from stowplan.objects import Pod
    from stowplan.text import Diagnostic

ALIKE = 3
"""Findings of one kind that are shown before the rest is counted."""


def notify(inputs: Inputs, pods: Iterable[Pod]) -> None:
    """Tell what the answer for these pods leaves out, and what was odd about the policy and the dump."""
    for text in [
        *_findings(inputs.policy.warnings),
        *_findings(inputs.report.warnings),
        *_skipped(inputs),
        *_unbuilt(inputs, pods),
    ]:
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


def _unbuilt(inputs: Inputs, pods: Iterable[Pod]) -> Iterable[str]:
    """Plugins that would have a say about these pods and are not built yet."""
    from stowplan.plugins.unbuilt import NEEDS

    affected: dict[tuple[str, str], list[str]] = {}
    for pod in pods:
        profile = inputs.policy.profiles.get(pod.spec.scheduler_name)
        for name, needs in NEEDS.items():
            if profile is not None and name in profile.plugins and (field := needs(pod)) is not None:
                affected.setdefault((name, field), []).append(pod.key)
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (name, field), keys in affected.items():
        alike.setdefault((field, tuple(keys)), []).append(name)
    for (field, pods_alike), names in alike.items():
        who = pods_alike[0] if len(pods_alike) == 1 else f"{len(pods_alike)} pods ({pods_alike[0]} is one)"
        yield f"warning: {field} of {who} is not considered: not built yet: {', '.join(names)}"
