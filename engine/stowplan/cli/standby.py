"""What a replica that does not lead has to say before anything else: who does, and how to ask there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stowplan.cli.output import Page


def show(page: Page, told: Mapping[str, Any]) -> None:
    """Add that to a page, where what the scheduler has told is told by a replica that waits for its lease."""
    if told.get("leads", True) or told.get("shadow"):
        return
    page.line("this replica does not lead: it follows the cluster and schedules nothing", bold=True, fg="yellow")
    leader = told.get("leader", "")
    if not leader:
        page.line("it does not know who leads", fg="yellow")
        return
    page.line(f"{pod_of(leader)} leads (lease holder {leader}); ask there:", fg="yellow")
    page.line(f"  kubectl -n stowplan-system port-forward pod/{pod_of(leader)} 10259", fg="yellow")


def pod_of(identity: str) -> str:
    """The pod of a lease holder, HOSTNAME_UUID."""
    return identity.rpartition("_")[0] or identity
