"""Extenders in an attempt: the nodes that passed are put to them, and the attempt is concluded by what they say.

Upstream asks them within the cycle; here other pods are tried meanwhile, and the pod is judged anew when the answer is there.
"""

from __future__ import annotations

import numpy as np

from stowplan.loop.attempts import conclude
from stowplan.loop.effects import Consult, Effect
from stowplan.loop.events import Advice
from stowplan.loop.failures import Verdict, failed
from stowplan.loop.ledger import Ledger, Outcome
from stowplan.loop.waiting import Waiting
from stowplan.plugins.plugin import Code
from stowplan.policy.attempt import attempt, post_filtered, score
from stowplan.policy.decision import Status, fit_error
from stowplan.policy.extenders import concerns
from stowplan.policy.nominated import Attempt
from stowplan.profile import Extender

EXTENDER = "Extender"
"""The plugin name under which extenders reject nodes."""


def consult(ledger: Ledger, entry: Waiting) -> list[Effect]:
    """Ask the extenders that the pod concerns; nothing where there are none, or no node passes without them."""
    asked = _asked(ledger, entry)
    if not asked:
        return []
    found = attempt(ledger.policy, ledger.store, entry.pod)
    if found.skipped is not None or not len(found.feasible):
        return []
    ledger.consulted[entry.pod.uid] = entry
    ledger.outcome = Outcome(entry.pod, "consulting", entry.attempts, ledger.generation, feasible=len(found.feasible))
    nodes = tuple(ledger.store.nodes[row].name for row in found.feasible.tolist())
    return [Consult(entry.pod, asked, nodes, prioritize=any(each.prioritize_verb for each in asked))]


def _asked(ledger: Ledger, entry: Waiting) -> tuple[Extender, ...]:
    extenders = ledger.policy.configuration.extenders
    return tuple(each for each in extenders if (each.filter_verb or each.prioritize_verb) and concerns(each, entry.pod))


def advised(ledger: Ledger, advice: Advice, now: float) -> list[Effect]:
    """Conclude the attempt with what the extenders say, as the cluster stands now."""
    entry = ledger.consulted.pop(advice.uid, None)
    if entry is None:
        return []
    if advice.error:
        return failed(ledger, entry, Verdict(advice.error), now)
    found = attempt(ledger.policy, ledger.store, entry.pod)
    if found.skipped is None and len(found.feasible):
        _take(ledger, found, advice)
    return conclude(ledger, entry, ledger.chooser.concluded(found), now)


def _take(ledger: Ledger, found: Attempt, advice: Advice) -> None:
    """Leave out the nodes that extenders refuse, and add their scores to the totals of the rest."""
    store = ledger.store
    profile = ledger.policy.profiles[found.profile]
    if advice.nodes is not None:
        final, refused = dict(advice.final), dict(advice.refused)
        keep = np.array([store.nodes[row].name in advice.nodes for row in found.feasible.tolist()], dtype=np.bool_)
        for row in found.feasible[~keep].tolist():
            name = store.nodes[row].name
            code = Code.UNRESOLVABLE if name in final else Code.UNSCHEDULABLE
            reasons = tuple(filter(None, (final.get(name) or refused.get(name, ""),)))
            found.infeasible.put(row, Status(code, reasons, EXTENDER))
        found.feasible = found.feasible[keep]
        if not len(found.feasible):
            found.message, found.best = fit_error(len(store.nodes), found.infeasible.reasons()), found.feasible
            post_filtered(ledger.policy, store, found)
            return
        score(profile, store, found)
    scoring = found.scoring
    if scoring is not None and advice.scores and len(found.feasible) > 1:
        extra = dict(advice.scores)
        added = np.array([extra.get(store.nodes[row].name, 0) for row in found.feasible.tolist()], dtype=np.int64)
        scoring.totals = scoring.totals + added * scoring.scale
        found.best = found.feasible[scoring.totals == scoring.totals.max()]
