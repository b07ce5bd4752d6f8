"""A connection to an API server: bytes, with the credentials and the certificates that the official client has found.

Requests go over connections of our own, which cost a quarter of the processor time of aiohttp's; those that need more than HTTP
(a proxy, a redirection) go over the session of the official client.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from stowplan import __version__
from stowplan.edge.kube.answers import pause_of
from stowplan.edge.kube.credentials import Identity
from stowplan.edge.kube.lines import lines
from stowplan.edge.kube.pool import CONNECT_SECONDS, Pool, pool_for
from stowplan.edge.kube.transport import JSON, Answer, Request, UnansweredError, UnsentError
from stowplan.edge.kube.whereabouts import Whereabouts

if TYPE_CHECKING:
    import aiohttp

LARGEST_REFUSAL = 65536
UNAUTHORIZED = 401
REDIRECTIONS = (301, 302, 303, 307, 308)
SAME_METHOD = (307, 308)
"""What else than a GET is only sent elsewhere with these: the others would make a GET of it, whose answer says nothing."""
HEADERS = {"Accept": JSON, "Accept-Encoding": "identity", "User-Agent": f"stowplan/{__version__} kubernetes-scheduler"}
"""Lists are not compressed: that would cost more time than it saves within a cluster."""


@contextlib.asynccontextmanager
async def connected(whereabouts: Whereabouts) -> AsyncIterator[AioTransport]:
    """A transport, closed in the end. WhereaboutsError if nobody knows where to; nothing is sent yet."""
    transport = AioTransport(whereabouts)
    try:
        await transport.start()
        yield transport
    finally:
        await transport.close()


class AioTransport:
    """See `Transport`. Credentials that the server takes no longer are looked for anew."""

    def __init__(self, whereabouts: Whereabouts) -> None:
        self._identity = Identity(whereabouts, self._use)
        self._configuration: Any = None
        self._rest: Any = None
        self._pool: Pool | None = None
        self._retired: list[Any] = []

    async def start(self) -> None:
        """Find out where the server is and who we are. WhereaboutsError."""
        await self._identity.start()

    def _use(self, configuration: Any) -> None:
        """Make new connections from now on."""
        from kubernetes.aio.client.rest import RESTClientObject

        rest = RESTClientObject(configuration)
        rest.pool_manager = rest._create_pool_manager()  # noqa: SLF001 - its own lazy creation belongs to its own requests
        if self._rest is not None:
            self._retired.append(self._rest)  # requests may still be under way in it
        if self._pool is not None:
            self._pool.retire()
        self._configuration, self._rest = configuration, rest
        name = configuration.tls_server_name or ""
        self._pool = None if configuration.proxy else pool_for(self.host, rest.ssl_context, name)

    async def close(self) -> None:
        await self._identity.close()
        if self._pool is not None:
            self._pool.close()
        for rest in (*self._retired, self._rest):
            if rest is not None:
                await rest.close()

    @property
    def host(self) -> str:
        """The server's URL."""
        return str(self._configuration.host)

    async def request(self, request: Request) -> Answer:
        """One call; once more with new credentials where the old ones are refused, which means that nothing was done."""
        answer = await self._request(request)
        if answer.status == UNAUTHORIZED and await self._identity.renewed(request.seconds):
            answer = await self._request(request)
        return answer

    async def _request(self, request: Request) -> Answer:
        if self._pool is not None:
            answer = await self._pool.request(request, self._headers(_content_type(request)))
        else:
            answer = await self._elaborate(request, follow=False)
        elsewhere = answer.status in (REDIRECTIONS if request.method == "GET" else SAME_METHOD)
        return await self._elaborate(request, follow=True) if elsewhere else answer

    async def _elaborate(self, request: Request, *, follow: bool) -> Answer:
        """One call over the official client's session; `follow` redirections, which keep what is said of the method."""
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=request.seconds, sock_connect=min(CONNECT_SECONDS, request.seconds))
        headers = self._headers(_content_type(request))
        with translated(request.seconds):
            async with self._session.request(
                request.method,
                self._url(request.path, request.query),
                data=request.body,
                headers=headers,
                timeout=timeout,
                allow_redirects=follow,
                **self._options(),
            ) as response:
                return Answer(response.status, await response.read(), _pause(response))

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], *, silence: float
    ) -> AsyncIterator[tuple[Answer, AsyncIterator[bytes]]]:
        """A watch."""
        async with contextlib.AsyncExitStack() as stack:
            if self._pool is not None:
                following = self._pool.stream(path, query, self._headers(None), silence)
            else:
                following = self._elaborate_stream(path, query, silence)
            head, chunks = await stack.enter_async_context(following)
            if self._pool is not None and head.status in REDIRECTIONS:
                head, chunks = await stack.enter_async_context(self._elaborate_stream(path, query, silence))
            if head.status == UNAUTHORIZED:
                await self._identity.renewed(silence)
            yield head, lines(chunks)

    @contextlib.asynccontextmanager
    async def _elaborate_stream(
        self, path: str, query: Mapping[str, str], silence: float
    ) -> AsyncIterator[tuple[Answer, AsyncIterator[bytes]]]:
        """A watch over the official client's session, in pieces as they come."""
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=silence)
        async with contextlib.AsyncExitStack() as stack:
            with translated(silence):
                response = await stack.enter_async_context(
                    self._session.get(self._url(path, query), headers=self._headers(None), timeout=timeout, **self._options())
                )
                refused = response.status != 200
                body = await response.content.read(LARGEST_REFUSAL) if refused else b""
            yield Answer(response.status, body, _pause(response)), _following(response, silence)

    def _headers(self, content_type: str | None) -> dict[str, str]:
        headers = dict(HEADERS)
        if content_type is not None:
            headers["Content-Type"] = content_type
        authorization = self._identity.authorization()
        if authorization:
            headers["Authorization"] = authorization
        return headers

    @property
    def _session(self) -> aiohttp.ClientSession:
        session: aiohttp.ClientSession = self._rest.pool_manager
        return session

    def _url(self, path: str, query: Mapping[str, str]) -> Any:
        from yarl import URL

        url = URL(f"{self.host}{path}?{urlencode(query)}" if query else f"{self.host}{path}", encoded=True)
        # a password in the URL is for those who have nothing else (upstream: Go's `http.Client`)
        return url.with_user(None) if self._identity.authorization() else url

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
    with translated(silence):
        async for chunk in response.content.iter_any():
            yield chunk


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
    except ValueError as error:  # of an address, or of what it says beside a token: nothing is sent then
        raise UnsentError(f"cannot connect: {error}") from error
    except (aiohttp.ClientError, OSError) as error:
        raise UnansweredError(f"the connection broke: {str(error) or type(error).__name__}") from error


def _pause(response: aiohttp.ClientResponse) -> float | None:
    return pause_of(response.headers.get("Retry-After", "").encode(errors="replace"))


def _content_type(request: Request) -> str | None:
    return None if request.body is None else request.content_type
