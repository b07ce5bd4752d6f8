"""What a rollback has done: the version that is back, what it was warned of, and what that changes in the text."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from stowplan.cli.output import Page
from stowplan.cli.server import ServerError, epoch, now, span

if TYPE_CHECKING:
    from stowplan.edge.policies.configmap import Reference
    from stowplan.edge.policies.history import Version
    from stowplan.edge.policies.remote import Restored

MOST = 40
"""Lines of the difference that are shown."""


def show(page: Page, reference: Reference, restored: Restored) -> None:
    """Add all of that to a page."""
    version = restored.version
    page.line(f"{reference}: {_described(version)} is back", bold=True, fg="green")
    for warning in version.entry.warnings:
        page.line(f"it was in force with this: {warning}", fg="yellow")
    for each in restored.choice.passed:
        page.line(f"passed over: {_described(each)}, {each.entry.barren}", fg="yellow")
    before = restored.before
    old = "what the ConfigMap held" if before is None else f"version {before.entry.version}"
    lines = list(difference(restored.text, version.text, old, f"version {version.entry.version}"))
    for line in lines[:MOST]:
        page.line(line)
    if len(lines) > MOST:
        page.line(f"... and {len(lines) - MOST} more lines")


def difference(before: str, after: str, old: str, new: str) -> list[str]:
    """A unified diff of two texts."""
    return list(difflib.unified_diff(before.splitlines(), after.splitlines(), old, new, lineterm="", n=2))


def _described(version: Version) -> str:
    entry = version.entry
    try:
        age = f", {span(now() - epoch(entry.time))} ago"
    except (ValueError, ServerError):  # it is done, however little is known of it
        age = ""
    since = f", in force since {entry.time}{age}" if entry.time else ""
    return f"version {entry.version} (hash {entry.hash}{since})"
