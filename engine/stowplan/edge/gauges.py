"""What is read off the loop when metrics are asked for: sizes of the queue and of the store. Nothing is counted meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from stowplan.edge.journal import Inside
from stowplan.loop.waiting import Place

_GATES = "SchedulingGates"


class Gauges(Collector):
    """Pods by where they wait and by what rejects them; nodes and pods known. Takes about 1 us for a pod that waits."""

    def __init__(self, inside: Inside) -> None:
        self._inside = inside

    def describe(self) -> Iterator[Metric]:
        """Nothing beforehand: registering is no reason to look."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """All families."""
        yield self._pending()
        yield self._rejected()
        yield self._moves()
        yield self._known()
        yield from self._rules()

    def _pending(self) -> Metric:
        family = GaugeMetricFamily("scheduler_pending_pods", "Pods that wait, by queue", labels=("queue",))
        for name, number in self._inside.queue.pending().items():
            family.add_metric((name,), number)
        return family

    def _rejected(self) -> Metric:
        """A pod counts once for each plugin; while it is being tried it counts for none."""
        family = GaugeMetricFamily(
            "scheduler_unschedulable_pods", "Pods that wait because of a plugin", labels=("plugin", "profile")
        )
        tally: Counter[tuple[str, str]] = Counter()
        inside = self._inside
        for entry in inside.queue.pods.values():
            if entry.place is Place.OUT:
                continue
            profile = inside.policy.profile_of(entry.pod, inside.store) or entry.pod.spec.scheduler_name
            for plugin in entry.rejectors or ((_GATES,) if entry.pod.spec.gates else ()):
                tally[plugin, profile] += 1
        for labels, count in sorted(tally.items()):
            family.add_metric(labels, count)
        return family

    def _moves(self) -> Metric:
        family = CounterMetricFamily(
            "scheduler_queue_incoming_pods_total", "Pods that entered a queue, and why", labels=("queue", "event")
        )
        queues = self._inside.queue.pending()
        for (place, why), count in sorted(self._inside.queue.moves.items()):
            if place in queues:
                family.add_metric((str(place), why), count)
        return family

    def _rules(self) -> Iterator[Metric]:
        failed = CounterMetricFamily(
            "stowplan_rule_errors_total", "Decisions in which a rule had no value for some node", labels=("profile", "rule")
        )
        exhausted = CounterMetricFamily(
            "stowplan_rule_budget_exhausted_total",
            "Those of them in which it took too much work, by itself or together with all rules",
            labels=("profile", "rule"),
        )
        counts = self._inside.no_values
        for profile, rule in sorted({key[:2] for key in counts}):
            dear = counts.get((profile, rule, True), 0)
            failed.add_metric((profile, rule), dear + counts.get((profile, rule, False), 0))
            exhausted.add_metric((profile, rule), dear)
        yield failed
        yield exhausted

    def _known(self) -> Metric:
        family = GaugeMetricFamily("scheduler_cache_size", "Nodes and pods known, and pods assumed on a node", labels=("type",))
        store = self._inside.store
        assumed = len(self._inside.flights.by_uid)
        family.add_metric(("nodes",), len(store.nodes))
        family.add_metric(("pods",), sum(map(len, store.seats)))
        family.add_metric(("assumed_pods",), assumed)
        return family
