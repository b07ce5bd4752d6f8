"""Where an API server is and who we are, as the official client finds out: kubeconfig, service account, plugins that are run for
credentials. Importing that client takes a second, so it is imported late.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


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


async def configuration(whereabouts: Whereabouts) -> Any:
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
