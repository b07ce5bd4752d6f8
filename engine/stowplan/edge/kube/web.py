"""How extenders are reached: HTTP, with the certificates that the configuration gives for each of them."""

from __future__ import annotations

import contextlib
import ssl
import tempfile
from typing import TYPE_CHECKING, Self

from stowplan.edge.kube.aio import HEADERS, translated
from stowplan.edge.kube.transport import JSON, Answer
from stowplan.profile import Extender
from stowplan.profile.model import ExtenderTLS

if TYPE_CHECKING:
    import aiohttp


class AioWeb:
    """See `Web`. An async context manager, which closes its connections in the end."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[ExtenderTLS | None, ssl.SSLContext] = {}

    async def __aenter__(self) -> Self:
        import aiohttp

        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), trust_env=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def post(self, extender: Extender, url: str, body: bytes) -> Answer:
        """One call, within the extender's time. Raises TransportError."""
        import aiohttp

        assert self._session is not None
        seconds = extender.http_timeout.total_seconds()
        timeout = aiohttp.ClientTimeout(total=seconds)
        headers = {**HEADERS, "Content-Type": JSON}
        secure = self._context(extender) if url.startswith("https:") else True
        name = extender.tls_config.server_name if extender.tls_config is not None else ""
        with translated(seconds):
            async with self._session.post(
                url, data=body, headers=headers, timeout=timeout, ssl=secure, server_hostname=name or None
            ) as response:
                return Answer(response.status, await response.read())

    def _context(self, extender: Extender) -> ssl.SSLContext:
        """Whom to trust and who we are (upstream: `makeTransport`, which trusts anybody if no authority is given for HTTPS)."""
        tls = extender.tls_config
        found = self._contexts.get(tls)
        if found is None:
            found = self._contexts[tls] = _context(tls, extender.enable_https)
        return found


def _context(tls: ExtenderTLS | None, https: bool) -> ssl.SSLContext:
    given = tls or ExtenderTLS()
    authority = given.ca_data.decode() if given.ca_data else None
    context = ssl.create_default_context(cafile=None if authority else given.ca_file or None, cadata=authority)
    if given.insecure or (https and not given.ca_data and not given.ca_file):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    with contextlib.ExitStack() as stack:
        certificate, key = (
            _file(stack, data) if data else name
            for data, name in ((given.cert_data, given.cert_file), (given.key_data, given.key_file))
        )
        if certificate:
            context.load_cert_chain(certificate, key or None)
    return context


def _file(stack: contextlib.ExitStack, data: bytes) -> str:
    """A file with the data, for as long as it takes: the library reads certificates from files only."""
    file = stack.enter_context(tempfile.NamedTemporaryFile())  # noqa: SIM115 - the stack closes it
    file.write(data)
    file.flush()
    return file.name
