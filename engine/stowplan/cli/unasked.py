"""Extenders that nobody asked: a line for each that could change a verdict."""

from __future__ import annotations

from collections.abc import Sequence

from stowplan.cli.output import Page
from stowplan.objects import Pod
from stowplan.policy.compile import Policy
from stowplan.policy.extenders import left_out

CHANGES = {"filter": "which nodes it rejects", "prioritize": "how it scores them", "preempt": "which victims it spares"}


def unasked(page: Page, policy: Policy, pods: Sequence[Pod]) -> None:
    """Say of each extender that is asked about some of these pods what is not known for want of its answer."""
    for left in left_out(policy, pods):
        unknown = ", ".join(CHANGES[verb] for verb in left.verbs)
        whom = "" if len(left.pods) == len(pods) else f" for {len(left.pods)} of {len(pods)} pods"
        managed = f", which request {', '.join(left.resources)}" if whom and left.resources else ""
        page.line(f"without extender {left.extender.url_prefix} ({left.place}){whom}{managed}: {unknown}", fg="yellow")
