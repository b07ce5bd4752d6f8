"""`clientConnection.qps` and `burst` as a token bucket (upstream: flowcontrol's `NewTokenBucketRateLimiter`)."""

from __future__ import annotations

import asyncio

from stowplan.edge.clock import monotonic
from stowplan.profile import Configuration
from stowplan.profile.yaml_tree import at


class Bucket:
    """Lets `burst` requests through at once and `rate` a second in the long run; first come, first served."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, max(burst, 1)
        self._tokens = float(self._burst)
        self._last = float("-inf")

    async def pass_(self) -> None:
        """Returns when the next request may go."""
        now = monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._last) * self._rate) - 1
        self._last = now
        if self._tokens < 0:
            await asyncio.sleep(-self._tokens / self._rate)


def limit_of(configuration: Configuration) -> Bucket | None:
    """The limit that a configuration asks for; None where it says nothing, or a negative rate.

    kube-scheduler's 50 requests a second would make every burst of pods wait, so that default is not taken over: the API
    server's own priority and fairness protects it.
    """
    connection, origin = configuration.client_connection, configuration.origin
    written = origin is not None and at(origin.tree, (*origin.path, "clientConnection", "qps")) is not None
    return Bucket(connection.qps, connection.burst) if written and connection.qps > 0 else None
