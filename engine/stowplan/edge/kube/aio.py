"""A connection to an API server: where it is and who we are as the official client finds out (kubeconfig, service account,
plugins that are run for credentials), bytes over its HTTP session. Importing that client takes a second, so it is imported late.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

from stowplan import __version__
from stowplan.edge.clock import monotonic
from stowplan.edge.kube.lines import lines
from stowplan.edge.kube.transport import JSON, Answer, Request, UnansweredError, UnsentError

if TYPE_CHECKING:
    import aiohttp

CONNECT_SECONDS = 10.0
RELOAD_SECONDS = 5.0
"""The least time between two attempts at new credentials."""
LARGEST_REFUSAL = 65536
UNAUTHORIZED = 401
HEADERS = {"Accept": JSON, "Accept-Encoding": "identity", "User-Agent": f"stowplan/{__version__} kubernetes-scheduler"}
"""Lists are not compressed: that would cost more time than it saves within a cluster."""


class WhereaboutsError(Exception):
    """No API server is known, or no credentials for it; the text says why."""


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where the API server is. Without a kubeconfig: in the cluster this process runs in, else the user's default one.

    `master` takes the place of the kubeconfig's server.
    """

    kubeconfig: str = ""
    context: str | None = None
    master: str = ""


@contextlib.asynccontextmanager
async def connected(whereabouts: Whereabouts) -> AsyncIterator[AioTransport]:
    """A transport, closed in the end. WhereaboutsError if nobody knows where to; nothing is sent yet."""
    transport = AioTransport(whereabouts)
    await transport.load()
    try:
        yield transport
    finally:
        await transport.close()


async def _configuration(whereabouts: Whereabouts) -> Any:
    """What the official client makes of the whereabouts."""
    from kubernetes.aio import client
    from kubernetes.aio import config as untyped

    config: Any = untyped
    found = client.Configuration()
    found.connection_pool_maxsize = 0  # the number of requests at a time is bounded by those who make them
    found.retries = None
    try:
        if not whereabouts.kubeconfig and os.environ.get("KUBERNETES_SERVICE_HOST"):
            config.load_incluster_config(client_configuration=found)
        else:
            file = whereabouts.kubeconfig or None
            await config.load_kube_config(
                config_file=file, context=whereabouts.context, client_configuration=found, persist_config=False
            )
    except (config.ConfigException, OSError, ValueError, KeyError) as error:
        raise WhereaboutsError(f"no connection to an API server: {error}") from None
    if whereabouts.master:
        found.host = whereabouts.master
    found.host = found.host.rstrip("/")
    # else the environment is searched for a proxy, and files for a password, at every single request
    found.client_session_kwargs = {"trust_env": False}
    found.proxy = found.proxy or _proxy(found.host)
    return found


def _proxy(host: str) -> str | None:
    """The proxy that the environment names for a URL."""
    parts = urlsplit(host)
    bypassed = not parts.hostname or proxy_bypass(parts.netloc)
    return None if bypassed else getproxies().get(parts.scheme)


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

        configuration = await _configuration(self._whereabouts)
        if self._rest is not None:
            self._retired.append(self._rest)  # requests may still be under way in it
        self._configuration, self._rest = configuration, RESTClientObject(configuration)
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
