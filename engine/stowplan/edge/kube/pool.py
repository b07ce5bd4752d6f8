"""Kept connections to one HTTP/1.1 server. A request takes the one that was free last, or makes another one."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import deque
from collections.abc import AsyncIterator, Mapping
from urllib.parse import SplitResult, urlencode, urlsplit

from stowplan.edge.clock import monotonic
from stowplan.edge.kube.connection import Connection, StaleError
from stowplan.edge.kube.transport import Answer, Request, UnsentError

CONNECT_SECONDS = 10.0
KEEP_SECONDS = 30.0
"""How long a connection may be idle before it is used; servers and what is between end them after a minute or more."""
PORTS = {"http": 80, "https": 443}
OK = 200
KINDS = 16
"""Of headers that are kept, at most: credentials change."""


def pool_for(url: str, context: ssl.SSLContext, server_name: str = "") -> Pool | None:
    """Connections to the server of a URL, None where it takes more than HTTP: other schemes, a password in the URL.

    `server_name`: whom its certificate is to be about; "": the host.
    """
    parts = urlsplit(url)
    if parts.scheme not in PORTS or not parts.hostname or "@" in parts.netloc:
        return None
    return Pool(parts, context if parts.scheme == "https" else None, server_name)


class Pool:
    """Connections to the server of a URL, whose path goes before that of each request; `context`: None for plain connections."""

    def __init__(self, url: SplitResult, context: ssl.SSLContext | None, server_name: str = "") -> None:
        self._address = (url.hostname or "", url.port or PORTS[url.scheme])
        self._connect_with = (context, server_name or self._address[0].rstrip("."))
        self._messages = Messages(url.netloc, url.path)
        self._idle: deque[Connection] = deque()
        self._busy: set[Connection] = set()
        self._closed = False

    async def request(self, request: Request, headers: Mapping[str, str]) -> Answer:
        """The whole answer. TransportError.

        What only reads is sent again where a kept connection turned out to have ended.
        """
        message = self._messages.of(request, headers)
        seconds, deadline = request.seconds, monotonic() + request.seconds
        connection = self._kept()
        if connection is not None:
            try:
                return await self._exchange(connection, message, deadline, seconds)
            except StaleError:
                if request.method != "GET":
                    raise
        connection = await self._connect(seconds)
        return await self._exchange(connection, message, deadline, seconds)

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], headers: Mapping[str, str], silence: float
    ) -> AsyncIterator[tuple[Answer, AsyncIterator[bytes]]]:
        """The answer's head, with its body if the status is no 200, and else its body in pieces as they come. TransportError.

        It has a connection of its own.
        """
        connection = await self._connect(CONNECT_SECONDS)
        self._busy.add(connection)
        try:
            head = await connection.follow(self._messages.of(Request("GET", path, query), headers), silence)
            body = b"".join([piece async for piece in connection.pieces()]) if head.status != OK else b""
            yield Answer(head.status, body, head.retry_after), connection.pieces()
        finally:
            self._busy.discard(connection)
            connection.abort()

    def retire(self) -> None:
        """Keep no connection any more; what is under way goes on."""
        self._closed = True
        while self._idle:
            self._idle.pop().abort()

    def close(self) -> None:
        """End all connections."""
        self.retire()
        for connection in tuple(self._busy):
            connection.abort()

    async def _exchange(self, connection: Connection, message: bytes, deadline: float, seconds: float) -> Answer:
        self._busy.add(connection)
        try:
            return await connection.exchange(message, deadline, seconds)
        finally:
            self._busy.discard(connection)
            if connection.free is not None:
                self._keep(connection)

    def _keep(self, connection: Connection) -> None:
        if self._closed:
            connection.abort()
            return
        self._idle.append(connection)
        self._sweep()

    def _kept(self) -> Connection | None:
        """The connection that was used last; what is older may have ended."""
        self._sweep()
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
        return None

    def _sweep(self) -> None:
        """Let go of those that were not needed for long."""
        oldest = monotonic() - KEEP_SECONDS
        while self._idle and (self._idle[0].free or 0.0) < oldest:
            self._idle.popleft().abort()

    async def _connect(self, seconds: float) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            connection = Connection(*self._connect_with)
        except ValueError as error:  # of a name that no certificate can have
            raise UnsentError(f"cannot connect: {error}") from error
        try:
            async with asyncio.timeout(min(CONNECT_SECONDS, seconds)):
                await loop.create_connection(lambda: connection, *self._address)
                await connection.ready
        except TimeoutError:
            raise UnsentError("cannot connect: it takes too long") from None
        except (OSError, UnicodeError) as error:  # the latter: of a name that no host can have
            raise UnsentError(f"cannot connect: {error}") from error
        finally:
            if not connection.ready.done() or connection.ready.cancelled() or connection.ready.exception() is not None:
                connection.abort()
        return connection


class Messages:
    """Requests as bytes, with headers that are put together once."""

    def __init__(self, host: str, prefix: str) -> None:
        self._host, self._prefix = host, prefix
        self._prepared: dict[tuple[str, ...], str] = {}

    def of(self, request: Request, headers: Mapping[str, str]) -> bytes:
        """A request with these headers; the host's name and the body's length are added."""
        key = tuple(headers.values())
        prepared = self._prepared.get(key)
        if prepared is None:
            if len(self._prepared) >= KINDS:
                self._prepared.clear()
            prepared = self._prepared[key] = self._head(headers)
        path, query, body = request.path, request.query, request.body
        target = f"{self._prefix}{path}?{urlencode(query)}" if query else self._prefix + path
        if not _is_line(target) or " " in target:
            raise UnsentError(f"no path of a request: {target!r}")
        if body is None:
            return f"{request.method} {target} {prepared}\r\n".encode("ascii")
        return f"{request.method} {target} {prepared}Content-Length: {len(body)}\r\n\r\n".encode("ascii") + body

    def _head(self, headers: Mapping[str, str]) -> str:
        lines = ["HTTP/1.1", f"Host: {self._host}", *(f"{name}: {value.strip()}" for name, value in headers.items())]
        if not all(_is_line(line) for line in lines):
            raise UnsentError("the credentials are nothing that a request can hold")
        return "".join(f"{line}\r\n" for line in lines)


def _is_line(text: str) -> bool:
    return text.isascii() and text.isprintable()
