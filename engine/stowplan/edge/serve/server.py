"""The HTTP server: one port, plain HTTP, GET only, one request a connection.

Health and metrics name neither pods nor nodes and are shown to whoever reaches the port; private pages are shown to this host
alone. That takes no certificates, and no permission to ask the API server who is asking: `kubectl port-forward`, for which the
API server checks rights, is the door to the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import socket
import traceback
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from stowplan.edge.logs import ROOT, Seldom
from stowplan.edge.serve.door import Door, Limits
from stowplan.edge.serve.health import Health
from stowplan.edge.serve.pages import Asked, Page, Reply, quoted, refused

if TYPE_CHECKING:
    from aiohttp import web

ANY = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - probes and scrapers come from other hosts
_SAFE = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache, private"}
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})
_ELSEWHERE = "this page is shown to this host alone; ask through `kubectl port-forward`\n"
_NO_CHECK = "no such check\n"
_FAILED = "this page failed; the log says why\n"
_LONGEST_LINE, _LONGEST_FIELD, _MOST_FIELDS = 8190, 4096, 64
"""Bytes of the first line of a request and of a header, and headers; requests beyond that are answered with 400."""
_log = logging.getLogger(f"{ROOT}.serve")
_failures = Seldom(_log)


class _Quiet(logging.LoggerAdapter[logging.Logger]):
    """What aiohttp logs: nothing about requests that are none, which anybody may send; the rest once in a while."""

    def exception(self, msg: object, *args: object, exc_info: Any = True, **_: Any) -> None:
        """Tell of an error."""
        from aiohttp.http_exceptions import HttpProcessingError

        if not isinstance(exc_info, HttpProcessingError):
            _failures.say(logging.ERROR, "a request failed", message=str(msg) % args, trace=_trace(exc_info))


def _trace(error: Any) -> str:
    return "".join(traceback.format_exception(error)) if isinstance(error, BaseException) else traceback.format_exc()


Handler = Callable[["web.Request"], Awaitable["web.StreamResponse"]]


class Server:
    """Serves health checks and pages until it is closed; an async context."""

    def __init__(self, healths: Iterable[Health], pages: Iterable[Page], limits: Limits | None = None) -> None:
        self.port = 0
        """where it listens, once it does"""
        self._healths, self._pages, self._limits = tuple(healths), tuple(pages), limits or Limits()
        self._runner: web.AppRunner | None = None
        self._door: Door | None = None
        self._open: asyncio.Task[None] | None = None

    async def start(self, address: str, port: int) -> None:
        """Listen; port 0 takes any free one. Raises OSError where that cannot be had."""
        listener = _listen(address, port)
        listener.setblocking(False)
        self.port = listener.getsockname()[1]
        self._runner = self._serving()
        await self._runner.setup()
        assert self._runner.server is not None
        self._door = Door(listener, self._runner.server, self._limits)
        self._open = asyncio.create_task(self._door.run())

    def _serving(self) -> web.AppRunner:
        """All paths as aiohttp wants them."""
        from aiohttp import web

        application = web.Application(middlewares=[self._once()])
        for health in self._healths:
            application.router.add_get(health.path, _answering(_health(health)))
            application.router.add_get(health.path + "/{check}", _answering(_check(health)))
        for page in self._pages:
            application.router.add_get(page.path, _answering(_guarded(page)))
        return web.AppRunner(
            application,
            access_log=None,
            logger=_Quiet(_log, {}),
            handle_signals=False,
            shutdown_timeout=1.0,
            keepalive_timeout=0,
            lingering_time=0,
            max_line_size=_LONGEST_LINE,
            max_field_size=_LONGEST_FIELD,
            max_headers=_MOST_FIELDS,
        )

    def _once(self) -> Any:
        """A connection ends with its answer, whatever that is: what is idle need not be watched over."""
        from aiohttp import web

        @web.middleware
        async def once(request: web.Request, handler: Handler) -> web.StreamResponse:
            if self._door is not None:
                self._door.asked(request.transport)
            try:
                response = await handler(request)
            except web.HTTPException as error:
                error.force_close()
                raise
            response.force_close()
            return response

        return once

    async def close(self) -> None:
        """Let nobody in, and answer what has been asked."""
        if self._open is not None:
            self._open.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._open
            self._open = None
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        if self._door is not None:
            self._door.close()
            self._door = None


def _listen(address: str, port: int) -> socket.socket:
    """A socket for all addresses of both families, or for the one that is named."""
    if address in ANY and socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
        except OSError as error:
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):  # IPv6 is compiled in and switched off
                raise
            address = ""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family)


def _answering(answer: Callable[[Asked], Reply]) -> Handler:
    """A page as aiohttp wants it."""
    from aiohttp import web

    async def handle(request: web.Request) -> web.StreamResponse:
        query = {name: tuple(request.query.getall(name)) for name in request.query}
        try:
            reply = answer(Asked(request.match_info, query, request.headers.get("Accept", ""), _is_local(request)))
        except Exception as error:  # noqa: BLE001 - a page that fails is the business of those who read the log
            _failures.say(logging.ERROR, "a page failed", path=request.path, trace=_trace(error))
            reply = Reply(_FAILED.encode(), status=500)
        headers = _SAFE | {"Content-Type": reply.content_type}
        return web.Response(status=reply.status, body=reply.body, headers=headers)

    return handle


def _is_local(request: web.Request) -> bool:
    """Asked from this host, by a name of this host: a web page that has its own name point here does not get in."""
    host = request.headers.get("Host", "").lower()
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    try:
        peer = ipaddress.ip_address(request.remote or "")
    except ValueError:
        return False
    mapped = getattr(peer, "ipv4_mapped", None)
    return (mapped or peer).is_loopback and name in _LOCAL_NAMES


def _health(health: Health) -> Callable[[Asked], Reply]:
    def answer(asked: Asked) -> Reply:
        excluded = [name for name in asked.query.get("exclude", ()) if name]
        status, text = health.all(excluded, verbose="verbose" in asked.query, frank=asked.local)
        return Reply(text.encode(), status=status)

    return answer


def _check(health: Health) -> Callable[[Asked], Reply]:
    def answer(asked: Asked) -> Reply:
        found = health.one(asked.parts["check"], frank=asked.local)
        return Reply(_NO_CHECK.encode(), status=404) if found is None else Reply(found[1].encode(), status=found[0])

    return answer


def _guarded(page: Page) -> Callable[[Asked], Reply]:
    def answer(asked: Asked) -> Reply:
        if page.private and not asked.local:
            return Reply(_ELSEWHERE.encode(), status=403)
        takes = asked.query if page.takes is None else page.takes
        unknown = next((name for name in asked.query if name not in takes), None)
        if unknown is None:
            return page.answer(asked)
        known = f"parameters: {', '.join(takes)}" if takes else "it has none"
        return refused(f"{page.path} has no parameter {quoted(unknown)}; {known}")

    return answer
