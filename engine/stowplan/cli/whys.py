"""Why a pod fares differently under another policy, in a few words and as the scores of the two nodes."""

from __future__ import annotations

from collections.abc import Sequence

from stowplan.cli.output import Page
from stowplan.cli.tables import Table
from stowplan.loop.fates import Case, Cause, Look
from stowplan.policy.standing import Share, Swing

SWINGS = 2
"""Plugins that are named as the reason."""
BEFORE, NEXT = 0, 1
"""Places of the old and of the new policy's look."""


def why(case: Case, most: int = SWINGS) -> str:
    """What sends the pod elsewhere: a refusal, a plugin's view of the two nodes, earlier pods, or chance."""
    if case.looks is None:
        return ""
    reasons = []
    if case.chance:
        reasons.append("a tie: kube-scheduler takes either")
    if case.cause is Cause.EARLIER_PODS:
        reasons.append("after earlier pods")
    if gone := refused(case, NEXT, case.old.node):
        reasons.append(f"{case.old.node} refused: {gone}")
    if came := refused(case, BEFORE, case.new.node):
        reasons.append(f"{case.new.node} was refused: {came}")
    reasons += [swung(swing) for swing in case.swings[: max(0, most - len(reasons))]]
    return "; ".join(reasons[:most])


def refused(case: Case, side: int, node: str | None) -> str | None:
    """`Plugin: reason`, if one of the policies refuses the node."""
    if case.looks is None or node is None:
        return None
    standing = case.looks[side].standings.get(node)
    if standing is None or standing.refused is None:
        return None
    plugin, reasons = standing.refused.plugin, ", ".join(standing.refused.reasons)
    return f"{plugin}: {reasons}" if plugin else reasons


def swung(swing: Swing) -> str:
    """How a plugin's view changes: its points for the new node over the old one, before and after."""
    text = f"{swing.plugin} {signed(swing.old)} -> {signed(swing.new)}"
    old, new = swing.weights
    if old is not None and new is not None and old != new:
        return f"{text} (weight {old:g} -> {new:g})"
    return text


def signed(points: float | None) -> str:
    """Points with their sign; `none` where a plugin does not score."""
    return "none" if points is None else f"{points:+g}" if points else "0"


def scores_of(page: Page, cases: Sequence[Case]) -> None:
    """All scores of the old and the new node under both policies, for pods that score changes send elsewhere."""
    for case in cases:
        assert case.looks is not None
        page.heading(f"{case.pod.key}: RAW, NORMALISED, WEIGHTED; OLD AND NEW POLICY")
        columns = [(node, look) for node in (case.old.node, case.new.node) if node is not None for look in case.looks]
        names = dict.fromkeys(name for look in case.looks for name in look.weights)
        header = [f"{node} {word}" for (node, _), word in zip(columns, ("old", "new") * 2, strict=True)]
        table = Table(["PLUGIN", "WEIGHT", *header], right=frozenset(range(1, 6)))
        for name in names:
            table.add(name, _weight(case.looks, name), *(_cell(look.standings[node].shares.get(name)) for node, look in columns))
        table.add("TOTAL", "", *(_total(look, node) for node, look in columns))
        page.table(table)


def _weight(looks: Sequence[Look], name: str) -> str:
    shown = [f"{look.weights[name]:g}" if name in look.weights else "-" for look in looks]
    return shown[0] if shown[0] == shown[1] else " -> ".join(shown)


def _cell(share: Share | None) -> str:
    return "-" if share is None else " ".join(f"{number:g}" for number in share)


def _total(look: Look, node: str) -> str:
    total = look.standings[node].total
    return "-" if total is None else f"{total:g}"
