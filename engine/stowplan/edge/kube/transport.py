"""What the edge needs of HTTP: one request, or one stream of lines. Everything above is the same over a real connection and
over a model of an API server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

JSON = "application/json"
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class Request:
    """One call. `seconds`: how long to wait for the whole answer."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = JSON
    seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the server, whatever its status. `retry_after`: seconds, where the server says so."""

    status: int
    body: bytes = b""
    retry_after: float | None = None

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


class TransportError(Exception):
    """No answer."""


class UnsentError(TransportError):
    """The request did not reach the server (no connection): it took no effect."""


class UnansweredError(TransportError):
    """The connection broke or time ran out after the request was sent: it may have taken effect."""


class Transport(Protocol):
    """A connection to one API server, authentication included. Times are in seconds."""

    async def request(self, request: Request) -> Answer:
        """One call. Raises TransportError."""
        ...

    def stream(
        self, path: str, query: Mapping[str, str], *, silence: float
    ) -> AbstractAsyncContextManager[tuple[Answer, AsyncIterator[bytes]]]:
        """A watch: the answer's head (its body, if the status is an error) and the lines that follow, without line ends.

        The iterator ends where the server closes the stream, and raises UnansweredError where the connection breaks or no byte
        came for `silence` seconds. Entering raises TransportError.
        """
        ...
