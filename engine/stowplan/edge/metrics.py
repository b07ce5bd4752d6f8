"""Metrics for Prometheus: kube-scheduler's names, labels and buckets where the meaning is the same, `stowplan_` for our own.

Counters and histograms are fed by the journal and the connection; what can be read off the loop is read when somebody asks.
No label holds the name of a pod or a node: their number has no bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder

from stowplan import __version__
from stowplan.edge.gauges import Gauges
from stowplan.edge.journal import Attempt, Inside, Result
from stowplan.edge.serve.pages import Asked, Page, Reply
from stowplan.loop.effects import Effect
from stowplan.loop.events import Event, NotBound
from stowplan.objects import Pod

MOST_ATTEMPTS = 15
"""The label `attempts` counts up to here."""


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Upper bounds of buckets (`prometheus.ExponentialBuckets` of client_golang)."""
    return tuple(start * factor**power for power in range(count))


CYCLE = exponential(0.001, 2, 15)
REQUEST = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 45.0, 60.0)


class Metrics:
    """All of them, in a registry of their own. A `Listener` of the journal."""

    def __init__(self, lease: str = "kube-scheduler") -> None:
        """`lease`: the name of the one that replicas share."""
        disable_created_metrics()  # type: ignore[no-untyped-call] # kube-scheduler has no such series, and they double the counters
        registry = self.registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)
        Info("stowplan_build", "Version of this program", registry=registry).info({"version": __version__})
        self._scheduling(registry)
        self._preemption(registry)
        self._own(registry)
        self._connection(registry, lease)
        self._events: dict[str, Histogram] = {}
        self._results: dict[tuple[Result, str], tuple[Counter, Histogram]] = {}

    def look_into(self, inside: Inside) -> None:
        """Read the sizes of queue and store from this loop from now on."""
        self.registry.register(Gauges(inside))

    def page(self) -> Page:
        """/metrics, in the format that is asked for."""

        def answer(asked: Asked) -> Reply:
            encode, content_type = choose_encoder(asked.accept)
            return Reply(encode(self.registry), content_type)

        return Page("/metrics", answer, private=False)

    # Told by the journal

    def attempted(self, attempt: Attempt) -> None:
        """Count an attempt that has ended."""
        key = (attempt.result, attempt.profile)
        series = self._results.get(key)
        if series is None:
            labels = (attempt.result.value, attempt.profile)
            series = self._results[key] = (self._attempts.labels(*labels), self._durations.labels(*labels))
        series[0].inc()
        series[1].observe(attempt.ended - attempt.started)
        self._algorithm.observe(attempt.thought)
        if attempt.result is Result.SCHEDULED:
            self._pod_attempts.observe(attempt.number)
            if attempt.since is not None:
                number = str(attempt.number) if attempt.number < MOST_ATTEMPTS else f"{MOST_ATTEMPTS}+"
                self._sli.labels(number).observe(attempt.ended - attempt.since)
        if attempt.preempted:
            self._preemptions.inc()
        if attempt.victims:
            self._victims.observe(attempt.victims)

    def preempted(self, preemptor: Pod, node: str, victims: Sequence[Pod]) -> None:
        """Nothing: the attempt says how many victims there are."""

    def policy(self, generation: int, seconds: float, now: float) -> None:
        """Show which policy is in force, and since when."""
        self._generation.set(generation)
        self._reloaded.set(now)
        self._reload.observe(seconds)

    # Told by the connection and by whoever drives the loop

    def handled(self, event: Event, seconds: float) -> None:
        """The loop has handled an event."""
        name = type(event).__name__
        series = self._events.get(name)
        if series is None:
            series = self._events[name] = self._handling.labels(name)
        series.observe(seconds)

    def answered(self, effect: Effect, event: Event | None, seconds: float) -> None:
        """An effect has been carried out, or given up."""
        self._effects.labels(type(effect).__name__).observe(seconds)
        if isinstance(event, NotBound):
            self._failures.labels(event.failure.value).inc()

    def requested(self, method: str, status: int, seconds: float) -> None:
        """A call was answered; status 0 means that it was not."""
        self._requests.labels(str(status) if status else "<error>", method).inc()
        self._latency.labels(method).observe(seconds)

    def watched(self, kind: str, what: str) -> None:
        """Something happened to a watch, told in one word."""
        self._watches.labels(kind, what).inc()

    def noted(self, outcome: str) -> None:
        """What became of an Event for users, in one word."""
        self._notes.labels(outcome).inc()

    def leading(self, leads: bool) -> None:
        """Whether this process may act has changed."""
        self._leads.set(leads)

    def renewed(self, held: bool) -> None:
        """The lease was tried for, and is held or is not."""
        self._renewals.labels("held" if held else "not held").inc()

    def failed(self, where: str) -> None:
        """Something went wrong that is being dealt with; `where` is one of a few words."""
        self._troubles.labels(where).inc()

    # The series

    def _scheduling(self, registry: CollectorRegistry) -> None:
        """As kube-scheduler's, except that one series counts algorithms: it counts attempts that failed as well."""
        by_result = ("result", "profile")
        self._attempts = Counter(
            "scheduler_schedule_attempts_total", "Attempts to schedule pods, by result", by_result, registry=registry
        )
        self._durations = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Deciding and binding together",
            by_result,
            buckets=CYCLE,
            registry=registry,
        )
        self._algorithm = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds", "Deciding alone", buckets=CYCLE, registry=registry
        )
        self._sli = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "From when a pod could first be tried until it was bound",
            ("attempts",),
            buckets=exponential(0.01, 2, 20),
            registry=registry,
        )
        self._pod_attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "Attempts that it took to schedule a pod",
            buckets=exponential(1, 2, 5),
            registry=registry,
        )

    def _preemption(self, registry: CollectorRegistry) -> None:
        self._preemptions = Counter("scheduler_preemption_attempts_total", "Searches for victims", registry=registry)
        self._victims = Histogram(
            "scheduler_preemption_victims", "Victims of one preemption", buckets=exponential(1, 2, 7), registry=registry
        )

    def _own(self, registry: CollectorRegistry) -> None:
        self._generation = Gauge("stowplan_policy_generation", "Policies in force before this one", registry=registry)
        self._reloaded = Gauge(
            "stowplan_policy_last_change_timestamp_seconds", "When the policy in force came into force", registry=registry
        )
        self._reload = Histogram(
            "stowplan_policy_change_duration_seconds", "Putting a policy into force", buckets=CYCLE, registry=registry
        )
        self._handling = Histogram(
            "stowplan_event_handling_duration_seconds",
            "Handling one event, a decision included",
            ("event",),
            buckets=exponential(1e-5, 4, 10),
            registry=registry,
        )
        self._effects = Histogram(
            "stowplan_effect_duration_seconds", "Carrying out one effect", ("effect",), buckets=REQUEST, registry=registry
        )
        self._failures = Counter(
            "stowplan_bind_failures_total", "Bindings not made, by what became of the pod", ("failure",), registry=registry
        )
        self._notes = Counter("stowplan_events_total", "Events for users, by what became of them", ("outcome",), registry=registry)
        self._troubles = Counter("stowplan_failures_total", "What went wrong and was dealt with", ("where",), registry=registry)

    def _connection(self, registry: CollectorRegistry, lease: str) -> None:
        self._requests = Counter(
            "rest_client_requests_total", "Calls of the API server, by status", ("code", "method"), registry=registry
        )
        self._latency = Histogram(
            "rest_client_request_duration_seconds", "Calls of the API server", ("verb",), buckets=REQUEST, registry=registry
        )
        self._watches = Counter("stowplan_watches_total", "What happened to the watches", ("kind", "what"), registry=registry)
        self._renewals = Counter("stowplan_lease_renewals_total", "Attempts at the lease", ("result",), registry=registry)
        leads = Gauge("leader_election_master_status", "1 while this process leads", ("name",), registry=registry)
        self._leads = leads.labels(lease)
