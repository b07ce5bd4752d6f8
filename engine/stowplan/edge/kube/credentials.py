"""Who we are at an API server: found out at the start, and again in time or when the server does not take it any more.

The official client makes its configuration of what a kubeconfig says, and asks identity providers; credential plugins are run
here, within bounds. Importing that client takes a second, so it is imported late.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import math
import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stowplan.edge.aside import apart
from stowplan.edge.clock import monotonic
from stowplan.edge.kube import execplugin
from stowplan.edge.kube.kubeconfig import check_proxy, check_url, place
from stowplan.edge.kube.proxies import proxy_of
from stowplan.edge.kube.whereabouts import Part, Place, Whereabouts, WhereaboutsError
from stowplan.edge.logs import ROOT, Seldom

RELOAD_SECONDS = 5.0
"""The least time between two attempts at new credentials."""
TOKEN_FILE_SECONDS = 60.0
"""How long a token that was read from a file is good: kubelets put another one there (upstream: `NewCachedFileTokenSource`)."""
SHARE = 0.8
"""Of their life after which credentials are renewed."""
PATIENCE = 60.0
"""Seconds for files, which may be far away, and for identity providers."""
_log = logging.getLogger(f"{ROOT}.credentials")


@dataclass(frozen=True, slots=True)
class Credentials:
    """`configuration`: the official client's. `authorization`: a header's value, "" for none. `seconds`: how long they are good.

    `trusts`: what connections depend on, with the content of certificates: others are needed when it changes.
    """

    configuration: Any
    authorization: str
    seconds: float
    trusts: tuple[object, ...]
    context: str | None = None


class Identity:
    """Whose requests these are, as time goes by.

    use   called with the configuration at first, and when one is found that needs other connections
    """

    def __init__(self, whereabouts: Whereabouts, use: Callable[[Any], None]) -> None:
        self._whereabouts, self._use = whereabouts, use
        self._now: Credentials | None = None
        self._due = math.inf
        self._tried = -math.inf
        self._good = False
        self._renewing: asyncio.Task[None] | None = None
        self._trouble = Seldom(_log)

    async def start(self) -> None:
        """Find out where the server is and who we are. Raises WhereaboutsError."""
        found = await obtain(self._whereabouts)
        # somebody who switches to another context does not mean this process
        self._whereabouts = replace(self._whereabouts, context=found.context)
        self._take(found)

    def authorization(self) -> str:
        """The value of that header, "" for none; begins to look for others in good time."""
        if monotonic() >= self._due:
            self._begin()
        return "" if self._now is None else self._now.authorization

    async def renewed(self, seconds: float) -> bool:
        """Are there other credentials than those that were refused, or may there be? Waits no longer than so many seconds."""
        if self._renewing is None and monotonic() - self._tried <= RELOAD_SECONDS:
            return self._good
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.shield(self._begin())
                return self._good
        return False

    async def close(self) -> None:
        """Stop looking for credentials."""
        self._due = math.inf
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)

    def _begin(self) -> asyncio.Task[None]:
        """Look for new ones, for all who want them."""
        if self._renewing is None:
            self._due = math.inf
            self._renewing = asyncio.ensure_future(self._renew())
        return self._renewing

    async def _renew(self) -> None:
        try:
            self._take(await obtain(self._whereabouts))
        except (WhereaboutsError, OSError, ValueError) as error:  # the latter where certificates change at this very moment
            self._good, self._tried = False, monotonic()
            self._due = monotonic() + RELOAD_SECONDS if self._expiring else math.inf
            self._trouble.say(logging.ERROR, "the old credentials are kept", message=str(error))
        finally:
            self._renewing = None

    @property
    def _expiring(self) -> bool:
        return self._now is not None and self._now.seconds < math.inf

    def _take(self, found: Credentials) -> None:
        if self._now is None or self._now.trusts != found.trusts:
            self._use(found.configuration)
        self._now, self._good, self._tried = found, True, monotonic()
        self._due = monotonic() + max(SHARE * found.seconds, RELOAD_SECONDS)


async def obtain(whereabouts: Whereabouts) -> Credentials:
    """Where the API server is and who we are. Raises WhereaboutsError, whatever is wrong."""
    try:
        async with asyncio.timeout(PATIENCE):
            found = await apart(place, whereabouts)
    except TimeoutError:
        raise WhereaboutsError(f"{', '.join(whereabouts.files)} cannot be read within {PATIENCE:g} s") from None
    user, seconds = found.user, math.inf
    if "exec" in user.values:
        said = await execplugin.run(user, found.cluster)
        user, seconds = replace(user, values=_with(user, said)), said.seconds
    elif "tokenFile" in user.values and "token" not in user.values:
        seconds = TOKEN_FILE_SECONDS / SHARE
    configuration = await _configuration(replace(found, user=user), whereabouts.master)
    authorization = configuration.api_key.get("BearerToken", "").strip()
    if not (authorization.isascii() and authorization.isprintable()):
        raise WhereaboutsError(f"{user.where}: the token is none: it holds what no header can")
    trusts = await apart(_trusts, configuration, found.cluster, user)
    return Credentials(configuration, authorization, seconds, trusts, found.context)


def _with(user: Part, said: execplugin.Credential) -> dict[str, Any]:
    """The user's fields with what the plugin has said."""
    values = {name: value for name, value in user.values.items() if name not in ("exec", "token", "tokenFile")}
    if said.token:
        values["token"] = said.token
    if said.certificate:
        for name, pem in (("client-certificate-data", said.certificate), ("client-key-data", said.key)):
            values[name] = base64.b64encode(pem.encode()).decode()
    return values


async def _configuration(found: Place, master: str) -> Any:
    """What the official client makes of it."""
    from kubernetes.aio import client
    from kubernetes.aio import config as untyped

    config: Any = untyped
    made = client.Configuration()
    made.connection_pool_maxsize = 0  # the number of requests at a time is bounded by those who make them
    made.retries = None
    cluster, user = ({**part.values, **_paths(part)} for part in (found.cluster, found.user))
    server = master or cluster["server"]
    check_url("--master" if master else found.cluster.where, server)
    document = {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": {**cluster, "server": server}}],
        "users": [{"name": "it", "user": user}],
    }
    try:
        async with asyncio.timeout(PATIENCE):
            await config.load_kube_config_from_dict(document, client_configuration=made)
    except TimeoutError:
        raise WhereaboutsError(f"{found.user.where}: nobody says within {PATIENCE:g} s who we are") from None
    except Exception as error:  # noqa: BLE001 - whatever it is that identity providers answer, or files that have just changed
        raise WhereaboutsError(f"{found.user.where}: {str(error) or type(error).__name__}") from None
    # else the environment is searched for a proxy, and files for a password, at every single request
    made.client_session_kwargs = {"trust_env": False}
    if not made.proxy:
        made.proxy = proxy_of(made.host, os.environ)
        check_proxy("the environment's proxy", made.proxy or "")
    return made


def _paths(part: Part) -> dict[str, str]:
    names = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
    return {name: part.path(name) for name in names if name in part.values}


def _trusts(configuration: Any, cluster: Part, user: Part) -> tuple[object, ...]:
    """What a connection depends on. Raises WhereaboutsError for certificates that are none."""
    files = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    try:
        content = tuple(Path(file).read_bytes() if file else b"" for file in files)
    except OSError as error:
        raise WhereaboutsError(f"{error.filename} cannot be read: {error.strerror or error}") from None
    try:
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    except (OSError, ValueError) as error:
        raise WhereaboutsError(f"{cluster.where}: certificate-authority is no certificate in PEM: {_ssl(error)}") from None
    if configuration.cert_file:
        try:
            context.load_cert_chain(configuration.cert_file, configuration.key_file, password=lambda: "")
        except (OSError, ValueError) as error:
            raise WhereaboutsError(
                f"{user.where}: client-certificate and client-key are no certificate and its key, in PEM and without a password: "
                f"{_ssl(error)}"
            ) from None
    return (configuration.host, configuration.verify_ssl, configuration.tls_server_name, configuration.proxy, *content)


def _ssl(error: Exception) -> str:
    return str(getattr(error, "reason", None) or getattr(error, "strerror", None) or error)
