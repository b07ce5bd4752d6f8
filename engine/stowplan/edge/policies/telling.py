"""What becomes of policies, told in the log and as metrics."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from stowplan.edge.logs import DECISIONS, ROOT, level, say
from stowplan.edge.policies.keeper import ACCEPTED, REJECTED, UNCHANGED, Accepted, Keeper, Refusal, headline
from stowplan.loop.ledger import Ledger
from stowplan.loop.shadow import Disagreement
from stowplan.text import Diagnostic

MOST = 5
"""Findings about one policy that are logged."""
_log = logging.getLogger(f"{ROOT}.policy")
_compared = logging.getLogger(f"{ROOT}.shadow")


class PolicyLog:
    """A `Listener` of the keeper."""

    def accepted(self, now: Accepted) -> None:
        warnings = len(now.warnings) or None
        say(_log, level(0), "policy accepted", generation=now.generation, hash=now.digest, source=now.source, warnings=warnings)
        for finding in now.warnings[-MOST:] if now.generation else ():
            say(_log, logging.WARNING, headline(finding), generation=now.generation)
        if now.generation:
            _more(len(now.warnings) - MOST, "warnings")

    def tried(self, now: Accepted, found: tuple[Diagnostic, ...]) -> None:
        for finding in found[:MOST]:
            say(_log, logging.WARNING, headline(finding), generation=now.generation)

    def rejected(self, refusal: Refusal, now: Accepted | None) -> None:
        for finding in refusal.errors[:MOST]:
            say(
                _log, logging.WARNING, "policy rejected", reason=headline(finding), in_force=None if now is None else now.generation
            )
        _more(len(refusal.errors) - MOST, "errors")

    def lost(self, why: str) -> None:
        say(_log, logging.WARNING, "there is no text where the policy should be", reason=why)


def _more(count: int, what: str) -> None:
    """Tell how many were left out, if any."""
    if count > 0:
        say(_log, logging.WARNING, f"and {count} more {what}; `stowplan validate` shows them")


def disagreed(found: Disagreement) -> None:
    """Log that another scheduler has put a pod elsewhere."""
    say(
        _compared,
        level(DECISIONS),
        "disagreement",
        pod=found.pod,
        kind=found.kind,
        theirs=found.theirs,
        ours=found.ours or None,
        explanation=found.explanation,
    )


class PolicyGauges(Collector):
    """Policies that were offered, by what became of them; whether one is refused at the moment."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    def describe(self) -> Iterator[Metric]:
        """Nothing beforehand: registering is no reason to look."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """All families."""
        keeper = self._keeper
        reloads = CounterMetricFamily(
            "stowplan_policy_reloads_total", "Texts offered as policy, by what became of them", labels=("result",)
        )
        for result in (ACCEPTED, REJECTED, UNCHANGED):
            reloads.add_metric((result,), keeper.results[result])
        yield reloads
        yield GaugeMetricFamily(
            "stowplan_policy_rejected",
            "1 while the newest text is not in force because it is wrong",
            int(keeper.refused is not None),
        )
        yield GaugeMetricFamily(
            "stowplan_policy_missing", "1 while there is no text to read where the policy should be", int(bool(keeper.trouble))
        )
        unserved = GaugeMetricFamily(
            "stowplan_policy_unserved_pods",
            "Pods that wait for a schedulerName that an earlier policy of this process has served, and the one in force does not",
            labels=("scheduler_name",),
        )
        for name, count in keeper.unserved().items():
            unserved.add_metric((name,), count)
        yield unserved


class ComparisonGauges(Collector):
    """Objections of rules in audit, and, in the shadow of another scheduler, how its placements compare."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def describe(self) -> Iterator[Metric]:
        """Nothing beforehand: registering is no reason to look."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """All families."""
        objections = CounterMetricFamily(
            "stowplan_audit_objections_total", "Decisions that a rule in audit would have forbidden", labels=("rule",)
        )
        for rule, count in sorted(self._ledger.objections.items()):
            objections.add_metric((rule,), count)
        yield objections
        shadow = self._ledger.shadow
        if shadow is None:
            return
        decisions = CounterMetricFamily(
            "stowplan_shadow_decisions_total", "Placements by the other scheduler, compared with ours", labels=("outcome",)
        )
        for outcome in ("same", "tied", "lower", "rejected", "skipped"):
            decisions.add_metric((outcome,), shadow.outcomes[outcome])
        yield decisions
