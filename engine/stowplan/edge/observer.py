"""Who watches the live edge: metrics, logs and traces are written by observers, the edge does not know them."""

from __future__ import annotations

from collections.abc import Sequence

from stowplan.loop.effects import Effect
from stowplan.loop.events import Event


class Observer:
    """Told of what happens, at once: its methods must be quick and never raise. This one does nothing with it."""

    def handled(self, event: Event, effects: Sequence[Effect], now: float, seconds: float) -> None:
        """The loop was given the event at `now`, in epoch seconds, and came back with the effects after so many seconds."""

    def answered(self, effect: Effect, event: Event | None, seconds: float) -> None:
        """An effect has been carried out, or given up; `event` is the answer to it, None where there is none."""

    def watched(self, kind: str, what: str) -> None:
        """About the watch of one kind: started, bookmark, ended, expired, listed, broken or unserved."""

    def noted(self, outcome: str) -> None:
        """About an Event for users: sent, aggregated, dropped or failed."""

    def lease(self, leads: bool) -> None:
        """The lease is held by this process, or no longer."""

    def renewed(self, ok: bool, seconds: float) -> None:
        """An attempt at the lease, and what it took."""

    def failed(self, where: str, message: str) -> None:
        """Something went wrong that the edge deals with itself."""
