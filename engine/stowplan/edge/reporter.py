"""The observer of a running scheduler: what happens at the edge becomes metrics, log lines, spans, and answers to health checks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from stowplan.edge.journal import Journal
from stowplan.edge.logs import ROOT, Allowance, level, say
from stowplan.edge.metrics import Metrics
from stowplan.edge.observer import Observer
from stowplan.loop.effects import Effect
from stowplan.loop.events import Event, Synced

_log = logging.getLogger(f"{ROOT}.edge")
_CALLS = 5
SAME_SECONDS = 10.0
"""For so long a message is not repeated: what ails one watch ails all of them."""
_REMEMBERED = 100


class Reporter(Observer):
    """Tells the journal and the metrics, and logs what went wrong at the edge.

    `on_synced` is called once the first lists are complete. `renewed_at`: when the lease was renewed last, in epoch seconds.
    """

    def __init__(self, metrics: Metrics, journal: Journal, wall: Callable[[], float], on_synced: Callable[[], None]) -> None:
        self.leads = False
        self.renewed_at = 0.0
        self._waits = False
        self._metrics, self._journal, self._wall, self._on_synced = metrics, journal, wall, on_synced
        self._allowance, self._left_out = Allowance(10, 50), 0
        self._told: dict[str, float] = {}

    def handled(self, event: Event, effects: Sequence[Effect], now: float, seconds: float) -> None:
        """The loop was given the event, and came back with the effects."""
        self._metrics.handled(event, seconds)
        self._journal.handled(event, effects, now, seconds)
        if isinstance(event, Synced):
            self._on_synced()

    def answered(self, effect: Effect, event: Event | None, seconds: float) -> None:
        """An effect has been carried out, or given up."""
        self._metrics.answered(effect, event, seconds)

    def watched(self, kind: str, what: str) -> None:
        """About the watch of one kind."""
        self._metrics.watched(kind, what)
        if what != "bookmark":
            say(_log, level(_CALLS), "watch", kind=kind, what=what)

    def noted(self, outcome: str) -> None:
        """About an Event for users."""
        self._metrics.noted(outcome)

    def lease(self, leads: bool) -> None:
        """The lease is held, or this process may no longer act."""
        if leads:
            self.renewed_at = self._wall()
        self.leads, self._waits = leads, False
        self._metrics.leading(leads)
        say(_log, level(0), "leading" if leads else "not leading")

    def renewed(self, ok: bool, seconds: float) -> None:
        """An attempt at the lease, and what it took."""
        if ok:
            self.renewed_at = self._wall()
        elif not self.leads and not self._waits:
            self._waits = True
            say(_log, level(0), "waiting for the lease")
        self._metrics.renewed(ok)
        say(_log, level(_CALLS), "lease", renewed=ok, seconds=round(seconds, 6))

    def failed(self, where: str, message: str) -> None:
        """Something went wrong that the edge deals with itself."""
        self._metrics.failed(where.partition(" ")[0])  # what follows may be a name
        now = self._wall()
        if now < self._told.get(message, 0.0) + SAME_SECONDS or not self._allowance.take():
            self._left_out += 1
            return
        if len(self._told) >= _REMEMBERED:
            self._told.clear()
        self._told[message] = now
        say(_log, logging.WARNING, "trouble", where=where, message=message, left_out=self._left_out or None)
        self._left_out = 0
