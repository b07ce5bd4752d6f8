"""A connection that only reads: what stands between a shadow and the cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager

from stowplan.edge.kube.transport import Answer, Request, Transport, UnsentError


class ReadOnly:
    """A `Transport` that does what another one does, but sends no request other than GET."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def request(self, request: Request) -> Answer:
        """One call. Raises TransportError, for every write."""
        if request.method != "GET":
            raise UnsentError("a shadow writes nothing")
        return await self._transport.request(request)

    def stream(
        self, path: str, query: Mapping[str, str], *, silence: float
    ) -> AbstractAsyncContextManager[tuple[Answer, AsyncIterator[bytes]]]:
        """A watch."""
        return self._transport.stream(path, query, silence=silence)
