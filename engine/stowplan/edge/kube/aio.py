"""A connection to an API server: bytes over the HTTP session of the official client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from stowplan import __version__
from stowplan.edge.clock import monotonic
from stowplan.edge.kube.lines import lines
from stowplan.edge.kube.transport import JSON, Answer, Request, UnansweredError, UnsentError
from stowplan.edge.kube.whereabouts import Whereabouts, WhereaboutsError, configuration

if TYPE_CHECKING:
    import aiohttp

CONNECT_SECONDS = 10.0
RELOAD_SECONDS = 5.0
"""The least time between two attempts at new credentials."""
LARGEST_REFUSAL = 65536
UNAUTHORIZED = 401
HEADERS = {"Accept": JSON, "Accept-Encoding": "identity", "User-Agent": f"stowplan/{__version__} kubernetes-scheduler"}
"""Lists are not compressed: that would cost more time than it saves within a cluster."""


@contextlib.asynccontextmanager
async def connected(whereabouts: Whereabouts) -> AsyncIterator[AioTransport]:
    """A transport, closed in the end. WhereaboutsError if nobody knows where to; nothing is sent yet."""
    transport = AioTransport(whereabouts)
    await transport.load()
    try:
        yield transport
    finally:
        await transport.close()


class AioTransport:
    """See `Transport`. Credentials that the server takes no longer are looked for anew."""

    def __init__(self, whereabouts: Whereabouts) -> None:
        self._whereabouts = whereabouts
        self._configuration: Any = None
        self._rest: Any = None
        self._retired: list[Any] = []
        self._loaded = float("-inf")
        self._loading = asyncio.Lock()

    async def load(self) -> None:
        """Find out where the server is and who we are. WhereaboutsError."""
        from kubernetes.aio.client.rest import RESTClientObject

        found = await configuration(self._whereabouts)
        if self._rest is not None:
            self._retired.append(self._rest)  # requests may still be under way in it
        self._configuration, self._rest = found, RESTClientObject(found)
        self._rest.pool_manager = self._rest._create_pool_manager()  # noqa: SLF001 - its own lazy creation belongs to its own requests
        self._loaded = monotonic()

    async def close(self) -> None:
        for rest in (*self._retired, self._rest):
            await rest.close()

    @property
    def host(self) -> str:
        """The server's URL."""
        return str(self._configuration.host)

    async def request(self, request: Request) -> Answer:
        """One call; once more with new credentials where the old ones are refused, which means that nothing was done."""
        answer = await self._request(request)
        if answer.status == UNAUTHORIZED and await self._renewed():
            answer = await self._request(request)
        return answer

    async def _request(self, request: Request) -> Answer:
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=request.seconds, sock_connect=min(CONNECT_SECONDS, request.seconds))
        headers = await self._headers(request.content_type if request.body is not None else None)
        with translated(request.seconds):
            async with self._session.request(
                request.method,
                self._url(request.path, request.query),
                data=request.body,
                headers=headers,
                timeout=timeout,
                **self._options(),
            ) as response:
                return Answer(response.status, await response.read(), _seconds(response.headers.get("Retry-After")))

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], *, silence: float
    ) -> AsyncIterator[tuple[Answer, AsyncIterator[bytes]]]:
        """A watch."""
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=silence)
        async with contextlib.AsyncExitStack() as stack:
            with translated(silence):
                response = await stack.enter_async_context(
                    self._session.get(self._url(path, query), headers=await self._headers(None), timeout=timeout, **self._options())
                )
                refused = response.status != 200
                body = await response.content.read(LARGEST_REFUSAL) if refused else b""
            if response.status == UNAUTHORIZED:
                await self._renewed()
            head = Answer(response.status, body, _seconds(response.headers.get("Retry-After")))
            yield head, _following(response, silence)

    async def _headers(self, content_type: str | None) -> dict[str, str]:
        headers = dict(HEADERS)
        if content_type is not None:
            headers["Content-Type"] = content_type
        token = await self._configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        if token:
            headers["Authorization"] = token
        elif self._configuration.username:
            headers["Authorization"] = self._configuration.get_basic_auth_token()
        return headers

    async def _renewed(self) -> bool:
        """New credentials, if there may be any; all who ask at the same time get the same."""
        async with self._loading:
            if monotonic() - self._loaded > RELOAD_SECONDS:
                try:
                    await self.load()
                except WhereaboutsError:
                    self._loaded = monotonic()
                    return False
            return True

    @property
    def _session(self) -> aiohttp.ClientSession:
        session: aiohttp.ClientSession = self._rest.pool_manager
        return session

    def _url(self, path: str, query: Mapping[str, str]) -> Any:
        from yarl import URL

        return URL(f"{self.host}{path}?{urlencode(query)}" if query else f"{self.host}{path}", encoded=True)

    def _options(self) -> dict[str, Any]:
        """What the official client would add to each request."""
        configuration = self._configuration
        options = {
            "server_hostname": configuration.tls_server_name,
            "proxy": configuration.proxy,
            "proxy_headers": configuration.proxy_headers,
        }
        return {name: value for name, value in options.items() if value}


async def _following(response: aiohttp.ClientResponse, silence: float) -> AsyncIterator[bytes]:
    """The lines of a watch, each as soon as it is there."""
    with translated(silence):
        async for line in lines(response.content.iter_any()):
            yield line


@contextlib.contextmanager
def translated(seconds: float) -> Iterator[None]:
    """Errors of the HTTP client as those of a transport."""
    import aiohttp

    try:
        yield
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise UnsentError(f"cannot connect: {error}") from error
    except TimeoutError as error:
        raise UnansweredError(f"no answer within {seconds:g} seconds") from error
    except (aiohttp.ClientError, OSError) as error:
        raise UnansweredError(f"the connection broke: {str(error) or type(error).__name__}") from error


def _seconds(header: str | None) -> float | None:
    """A Retry-After in seconds; None for a date, which API servers do not send."""
    return float(header) if header is not None and header.isdecimal() else None
