"""The health checks of a scheduler, under kube-scheduler's names where it has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from stowplan.edge.serve.health import PING, Check, Health
from stowplan.text import some

GRACE = 20.0
"""Seconds beyond the lease's duration after which a leader that has not renewed is ill (`LeaderElectionTimeout`)."""


class Condition(Protocol):
    """What the checks look at."""

    @property
    def synced(self) -> bool: ...

    @property
    def leading(self) -> bool: ...

    @property
    def stopping(self) -> bool: ...

    def staleness(self) -> Mapping[str, float]:
        """Seconds since the API server last said anything, by kind."""
        ...

    def unrenewed(self) -> float:
        """Seconds since the lease was last renewed."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """When a scheduler is ill. `stale_after`: seconds that a cache may be old; `lease`: name and duration, None without a lease."""

    stale_after: float
    lease: tuple[str, float] | None


def healths(condition: Condition, limits: Limits, more: tuple[Check, ...] = ()) -> tuple[Health, ...]:
    """/livez tells whether the process answers, /readyz whether it can schedule, /healthz what an operator should look at.

    A stale cache is none of /livez's business: another process would have no better connection to the API server.
    """
    elected = () if limits.lease is None else (Check("leaderElection", _renewed(condition, *limits.lease)),)
    caches = Check("caches", _fresh(condition, limits.stale_after))
    synced = Check("sched-handler-sync", lambda: "" if condition.synced else "handlers are not fully synchronized")
    shutdown = Check("shutdown", lambda: "process is shutting down" if condition.stopping else "")
    return (
        Health("/livez", (PING,)),
        Health("/readyz", (*elected, shutdown, synced, caches, *more)),
        Health("/healthz", (*(elected or (PING,)), caches)),
    )


def _renewed(condition: Condition, name: str, duration: float) -> Callable[[], str]:
    def probe() -> str:
        overdue = condition.leading and condition.unrenewed() > duration + GRACE
        return f"failed election to renew leadership on lease {name}" if overdue else ""

    return probe


def _fresh(condition: Condition, stale_after: float) -> Callable[[], str]:
    def probe() -> str:
        stale = sorted(kind for kind, age in condition.staleness().items() if age > stale_after)
        return f"nothing heard for {stale_after:g} s about {some(stale, 3)}" if stale else ""

    return probe
