"""What rules in audit would have done, and where rules have no value, for explanations and simulations."""

from __future__ import annotations

from collections import Counter

from stowplan.cli.output import Page
from stowplan.cli.tables import Table
from stowplan.loop.simulate import Simulation
from stowplan.policy.audit import audits, rule_errors
from stowplan.policy.compile import Profile
from stowplan.policy.nominated import Attempt
from stowplan.state import Store
from stowplan.text import counted, some

NAMES = 3
"""Nodes that are named for each reason."""


def audited(page: Page, profile: Profile, found: Attempt, store: Store) -> None:
    """Nodes that each rule in audit would reject for the pod."""
    if not profile.audits:
        return
    page.heading("AUDIT: RULES THAT ONLY WATCH")
    table = Table(["RULE", "WOULD REJECT", "REASON", "NODES"], right=frozenset({1}))
    for audit in audits(profile, store, found.pod, found.feasible):
        if not audit.rejections:
            table.add(audit.rule, 0, "" if audit.applies else "does not apply to this pod", "")
        for reason, mask in audit.rejections.items():
            rows = mask.nonzero()[0].tolist()
            table.add(audit.rule, len(rows), reason.text, some(sorted(store.nodes[row].name for row in rows), NAMES))
    page.table(table)


def failed(page: Page, profile: Profile, found: Attempt, store: Store) -> None:
    """Where rules have no value, and what that leads to."""
    answers = rule_errors(profile, store, found)
    if not answers:
        return
    page.heading("RULES WITHOUT A VALUE")
    table = Table(["RULE", "FAILED ON", "ERROR", "SO IT", "NODES"], right=frozenset({1}))
    for rule, texts in answers.items():
        rejects = found.filtering is not None and rule in found.filtering.rejected and bool(found.filtering.rejected[rule].any())
        effect = "rejects" if rejects else "counts as 0" if profile.plugins[rule].scores else "lets pass"
        everyone = found.feasible if profile.plugins[rule].scores else store.nodes
        for text, rows in texts.items():
            table.add(
                rule,
                f"{len(rows)} of {len(everyone)}",
                text,
                effect,
                some(sorted(store.nodes[row].name for row in rows.tolist()), NAMES),
            )
    page.table(table)


def tally(page: Page, simulation: Simulation) -> None:
    """How many placements each rule in audit would have refused."""
    counts = Counter(rule for placement in simulation.placements for rule in placement.objections)
    watching = sorted({plugin.name for profile in simulation.policy.profiles.values() for plugin in profile.audits})
    placed = sum(placement.node is not None for placement in simulation.placements)
    for rule in watching:
        page.line(f"audit: rule {rule} would have refused {counts[rule]} of {placed} placements")


def broken(page: Page, simulation: Simulation) -> None:
    """Rules that had no value, one line each."""
    many = len(simulation.policy.profiles) > 1
    tried = len(simulation.tried)
    for each in simulation.rule_errors:
        whose = f" of profile {each.profile}" if many else ""
        said = f"for {each.pod.key}: {each.error}" if each.count == 1 else f"first for {each.pod.key}: {each.error}"
        page.line(
            f"rule {each.rule}{whose} had no value on some node for {each.count} of {counted(tried, 'pod')}, {said}", fg="yellow"
        )
