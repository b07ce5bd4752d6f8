"""A connection to the API server whose calls are counted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from stowplan.edge.clock import monotonic
from stowplan.edge.kube.transport import Answer, Request, Transport
from stowplan.edge.metrics import Metrics


class Counted:
    """A `Transport` that does what another one does, and tells the metrics."""

    def __init__(self, transport: Transport, metrics: Metrics) -> None:
        self._transport, self._metrics = transport, metrics

    async def request(self, request: Request) -> Answer:
        """One call. Raises TransportError."""
        begun, status = monotonic(), 0
        try:
            answer = await self._transport.request(request)
            status = answer.status
        finally:
            self._metrics.requested(request.method, status, monotonic() - begun)
        return answer

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], *, silence: float
    ) -> AsyncIterator[tuple[Answer, AsyncIterator[bytes]]]:
        """A watch; what counts as its duration is the time to the answer's head."""
        begun, status = monotonic(), 0
        try:
            async with self._transport.stream(path, query, silence=silence) as (answer, lines):
                status = answer.status
                self._metrics.requested("GET", status, monotonic() - begun)
                yield answer, lines
        finally:
            if not status:
                self._metrics.requested("GET", status, monotonic() - begun)
