"""The door of the HTTP server: who comes in, how many at a time, and for how long.

A connection carries one request. Whoever does not say in time what is asked for, or does not take the answer in time, is put out.
When it is full inside, the oldest that has not asked yet makes room, so a newcomer that asks at once, as probes do, gets an answer.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from stowplan.edge.logs import ROOT, Seldom

SOON, AGAIN = 0.005, 0.1
"""Seconds after which it is tried again to let somebody in: where somebody else was put out for it, and where nobody could be."""
TICK = 0.5
"""Seconds between two looks at who has stayed too long."""
_SHARE = 4
"""One in so many file descriptors of the process may be a connection: the API server needs the others."""
_log = logging.getLogger(f"{ROOT}.serve")


@dataclass(frozen=True, slots=True)
class Limits:
    """`most` connections; `asking`: seconds in which a request has to be complete; `whole`: seconds until its answer is taken."""

    most: int = 128
    asking: float = 10.0
    whole: float = 30.0


@dataclass(slots=True)
class _Guest:
    """A connection: since when, and whether it has asked."""

    since: float
    asked: bool = False


@dataclass(slots=True)
class Door:
    """Lets connections in, each with a protocol of its own. `listener` must not block."""

    listener: socket.socket
    protocol: Callable[[], asyncio.Protocol]
    limits: Limits = field(default_factory=Limits)
    _guests: dict[asyncio.Transport, _Guest] = field(default_factory=dict)
    """the oldest first"""
    _trouble: Seldom = field(default_factory=lambda: Seldom(_log))
    _crowd: Seldom = field(default_factory=lambda: Seldom(_log))

    def __post_init__(self) -> None:
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if descriptors != resource.RLIM_INFINITY:
            most = max(min(self.limits.most, descriptors // _SHARE), 1)
            self.limits = Limits(most, self.limits.asking, self.limits.whole)

    def asked(self, transport: asyncio.BaseTransport | None) -> None:
        """The request of a connection is complete."""
        guest = self._guests.get(cast("asyncio.Transport", transport))
        if guest is not None:
            guest.asked = True

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch())
            while True:
                await self._let_in()

    def close(self) -> None:
        """Put everybody out, and listen no more."""
        self.listener.close()
        for transport in list(self._guests):
            self._put_out(transport)

    async def _let_in(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            connection, _ = await loop.sock_accept(self.listener)
        except OSError as error:  # there are no file descriptors, or no memory; or it has gone again
            self._trouble.say(logging.WARNING, "a connection cannot be accepted", message=error.strerror or str(error))
            pause = AGAIN
            if self._guests:
                self._put_out(self._least())
                pause = SOON
            await asyncio.sleep(pause)
            return
        self._make_room()
        try:
            transport, _ = await loop.connect_accepted_socket(self.protocol, connection)
        except OSError:  # as good as never come
            connection.close()
            return
        self._guests[transport] = _Guest(loop.time())

    def _make_room(self) -> None:
        if len(self._guests) >= self.limits.most:
            self._forget()
        if len(self._guests) >= self.limits.most:
            self._crowd.say(logging.WARNING, "too many connections: the oldest are closed", most=self.limits.most)
            self._put_out(self._least())

    def _least(self) -> asyncio.Transport:
        """The one that is put out first."""
        return next((each for each, guest in self._guests.items() if not guest.asked), next(iter(self._guests)))

    def _put_out(self, transport: asyncio.Transport) -> None:
        transport.abort()  # closing would wait until what is written has been taken
        del self._guests[transport]

    def _forget(self) -> None:
        """Those that have gone by themselves."""
        for transport in [each for each in self._guests if each.is_closing() and not each.get_write_buffer_size()]:
            del self._guests[transport]

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            self._forget()
            now, limits = asyncio.get_running_loop().time(), self.limits
            for transport, guest in list(self._guests.items()):
                if now - guest.since > (limits.whole if guest.asked else limits.asking):
                    self._put_out(transport)
