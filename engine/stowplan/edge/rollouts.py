"""How the two versions of a profile compare, as metrics; read off the loop when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from stowplan.loop.ledger import Ledger
from stowplan.loop.rollout import Figures, pending

_LABELS = ("profile", "version")


class RolloutGauges(Collector):
    """Series with the label `version`, stable or candidate; none while there is no rollout."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def describe(self) -> Iterator[Metric]:
        """Nothing beforehand: registering is no reason to look."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """All families."""
        figures = self._ledger.figures
        if figures is None:
            return
        yield GaugeMetricFamily(
            "stowplan_rollout_percent", "Share of the workloads that the candidate gets", figures.rollout.percent
        )
        yield self._pending(figures)
        yield from _tallies(figures)

    def _pending(self, figures: Figures) -> Metric:
        family = GaugeMetricFamily("stowplan_rollout_pending_pods", "Pods that wait, by version of the profile", labels=_LABELS)
        waiting = pending(self._ledger)
        for version, name in figures.versions:
            family.add_metric((figures.rollout.stable, version), waiting[name].total())
        return family


def _tallies(figures: Figures) -> Iterator[Metric]:
    attempts = CounterMetricFamily(
        "stowplan_rollout_attempts_total", "Attempts to schedule pods, by version and result", labels=(*_LABELS, "result")
    )
    seconds = HistogramMetricFamily(
        "stowplan_rollout_placing_duration_seconds",
        "From when a pod could first be tried until it was bound; the count is that of placed pods",
        labels=_LABELS,
    )
    margin = CounterMetricFamily(
        "stowplan_rollout_margin_points_total", "Sum of the leads of chosen nodes over the runner-up", labels=_LABELS
    )
    decisions = CounterMetricFamily("stowplan_rollout_margin_decisions_total", "Decisions whose lead is known", labels=_LABELS)
    for version, name in figures.versions:
        tally, labels = figures.tallies[name], (figures.rollout.stable, version)
        for result, count in sorted(tally.attempts.items()):
            attempts.add_metric((*labels, result), count)
        seconds.add_metric(labels, tally.cumulative(), tally.seconds)
        margin.add_metric(labels, tally.margin)
        decisions.add_metric(labels, tally.margins)
    yield from (attempts, seconds, margin, decisions)
