"""One connection to an HTTP/1.1 server, plain or TLS, on which one request is answered at a time.

TLS is spoken here, over buffers in memory: asyncio's own layer costs a third of a short request's processor time.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from typing import cast

from stowplan.edge.clock import monotonic
from stowplan.edge.kube.answers import Head, MalformedError, Reading
from stowplan.edge.kube.transport import Answer, UnansweredError

BACKLOG = 2**21
"""Bytes of a stream that may wait for whoever reads it before the server has to wait."""
RECORD = 65_536
_BROKE = "the connection broke"


class StaleError(UnansweredError):
    """The connection ended before the first byte of an answer, as those do that a server has kept long enough."""


class Connection(asyncio.Protocol):
    """`ready` once requests can be sent; `free`: since when it waits for the next one, in the loop's time, None if it does not."""

    def __init__(self, context: ssl.SSLContext | None, server_name: str) -> None:
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = loop.create_future()
        self.free: float | None = None
        self.open = False
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._reading: Reading | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._live = self._paused = False
        self._seconds, self._deadline = 0.0, float("inf")
        self._timer: asyncio.TimerHandle | None = None
        self._error: UnansweredError | None = None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name) if context else None

    # What its users ask

    @property
    def usable(self) -> bool:
        """May another request be sent?"""
        return self.open and self._transport is not None and not self._transport.is_closing()

    async def exchange(self, message: bytes, deadline: float, seconds: float) -> Answer:
        """Send a request, and wait for the whole answer until the deadline, in the loop's time: `seconds` after the beginning."""
        self._begin(message, deadline, seconds)
        reading = self._reading
        assert reading is not None
        try:
            await self._progress()
        except asyncio.CancelledError:
            self.abort()
            raise
        head = reading.head
        assert head is not None
        self._over(head)
        return Answer(head.status, reading.take(), head.retry_after)

    async def follow(self, message: bytes, silence: float) -> Head:
        """Send a request whose answer is read piece by piece; its head. At most `silence` seconds without a byte."""
        self._live = True
        self._begin(message, monotonic() + silence, silence)
        reading = self._reading
        assert reading is not None
        while reading.head is None:
            await self._progress()
        return reading.head

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body of the answer that is followed, as it comes."""
        reading = self._reading
        assert reading is not None
        while True:
            if reading.size:
                data = reading.take()
                if self._paused and self._transport is not None:
                    self._paused = False
                    self._transport.resume_reading()
                yield data
            elif reading.done:
                return
            else:
                await self._progress()

    def abort(self) -> None:
        """End it at once, whatever is under way."""
        self.open = False
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort()

    # One request

    def _begin(self, message: bytes, deadline: float, seconds: float) -> None:
        assert self._transport is not None
        self.free, self._reading, self._seconds, self._deadline = None, Reading(), seconds, deadline
        if self._timer is None or self._timer.when() > deadline:
            self._arm(deadline)
        try:
            if self._tls is not None:
                self._tls.write(message)
                message = self._outgoing.read()
            self._transport.write(message)
        except OSError as error:
            self._fail(UnansweredError(f"{_BROKE}: {error}"))

    def _over(self, head: Head) -> None:
        """The answer is complete."""
        self._reading, self._deadline = None, float("inf")
        if head.last:
            self.abort()
        else:
            self.free = self._loop.time()

    async def _progress(self) -> None:
        """Returns when there is more of the answer, or all of it where it is not followed."""
        if self._error is not None:
            raise self._error
        waiter = self._waiter = self._loop.create_future()
        await waiter

    def _arm(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._late)

    def _late(self) -> None:
        """The timer stays while requests come and go: whether it was theirs is found out when it is over."""
        self._timer = None
        if self._deadline == float("inf"):
            return
        if self._loop.time() < self._deadline:
            self._arm(self._deadline)
        else:
            self._fail(UnansweredError(f"no answer within {self._seconds:g} seconds"))

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _fail(self, error: UnansweredError) -> None:
        """Nothing more comes."""
        self._error = self._error or error
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(self._error)
        if not self.ready.done():
            self.ready.set_exception(OSError(str(error)))
        self.abort()

    # Bytes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # of a loop that need not be asyncio's
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._shake()

    def _shake(self) -> None:
        assert self._transport is not None
        try:
            if self._tls is not None:
                self._tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            if not self.ready.done():
                self.ready.set_exception(error)
        else:
            self.open = True
            if not self.ready.done():
                self.ready.set_result(None)
        if self._outgoing.pending:
            self._transport.write(self._outgoing.read())

    def data_received(self, data: bytes) -> None:
        try:
            if self._tls is None:
                self._read(data)
                return
            self._incoming.write(data)
            if not self.open:
                self._shake()
            if self.open:
                self._decrypt(self._tls)
        except (MalformedError, OSError) as error:
            self._fail(UnansweredError(f"{_BROKE}: {error}"))

    def _decrypt(self, tls: ssl.SSLObject) -> None:
        try:
            while self._incoming.pending or tls.pending():
                data = tls.read(RECORD)
                if not data:
                    self.eof_received()
                    return
                self._read(data)
        except ssl.SSLWantReadError:
            pass
        if self._outgoing.pending and self._transport is not None:  # new keys, for example
            self._transport.write(self._outgoing.read())

    def _read(self, data: bytes) -> None:
        reading = self._reading
        if reading is None:
            self._fail(UnansweredError(f"{_BROKE}: an answer to nothing"))
            return
        reading.feed(data)
        if self._live:
            self._deadline = self._loop.time() + self._seconds
            if reading.size > BACKLOG and not self._paused and self._transport is not None:
                self._paused = True
                self._transport.pause_reading()
        if reading.done or self._live:
            self._wake()

    def eof_received(self) -> None:
        """The server is done; what it has begun may be complete with that."""
        reading = self._reading
        if reading is not None and reading.end():
            self._wake()
            self.open = False
        else:
            self._fail(self._broken("the server closed it"))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._reading is None or not self._reading.done:
            self._fail(self._broken(str(exc or "the server closed it")))
        self.abort()

    def _broken(self, why: str) -> UnansweredError:
        silent = self._reading is not None and self._reading.silent
        return (StaleError if silent else UnansweredError)(f"{_BROKE}: {why}")
