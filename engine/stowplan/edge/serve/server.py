"""The HTTP server: one port, plain HTTP, GET only.

Health and metrics name neither pods nor nodes and are shown to whoever reaches the port; private pages are shown to this host
alone. That takes no certificates, and no permission to ask the API server who is asking: `kubectl port-forward`, for which the
API server checks rights, is the door to the rest.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from stowplan.edge.serve.health import Health
from stowplan.edge.serve.pages import Asked, Page, Reply

if TYPE_CHECKING:
    from aiohttp import web

ANY = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - probes and scrapers come from other hosts
_SAFE = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache, private"}
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})
_ELSEWHERE = "this page is shown to this host alone; ask through `kubectl port-forward`\n"
_NO_CHECK = "no such check\n"

Handler = Callable[["web.Request"], Awaitable["web.StreamResponse"]]


class Server:
    """Serves health checks and pages until it is closed; an async context."""

    def __init__(self, healths: Iterable[Health], pages: Iterable[Page]) -> None:
        self.port = 0
        """where it listens, once it does"""
        self._healths, self._pages = tuple(healths), tuple(pages)
        self._runner: web.AppRunner | None = None

    async def start(self, address: str, port: int) -> None:
        """Listen; port 0 takes any free one. Raises OSError where that cannot be had."""
        from aiohttp import web

        application = web.Application()
        for health in self._healths:
            application.router.add_get(health.path, _answering(_health(health)))
            application.router.add_get(health.path + "/{check}", _answering(_check(health)))
        for page in self._pages:
            application.router.add_get(page.path, _answering(_guarded(page)))
        listener = _listen(address, port)
        self.port = listener.getsockname()[1]
        self._runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.SockSite(self._runner, listener).start()

    async def close(self) -> None:
        """Answer what is being asked, then listen no more."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None


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
        reply = answer(Asked(request.match_info, query, request.headers.get("Accept", ""), _is_local(request)))
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
        return Reply(_ELSEWHERE.encode(), status=403) if page.private and not asked.local else page.answer(asked)

    return answer
