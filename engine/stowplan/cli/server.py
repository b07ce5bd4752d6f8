"""What a running scheduler says about itself, over HTTP, and how its moments are shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

SERVER = "http://localhost:10259"
SECONDS = 10.0
NOT_FOUND, WAITING = 404, 503
MOST = 500
"""Characters of an answer that are shown."""


class ServerError(click.ClickException):
    """No scheduler answers, or it answers nonsense."""

    exit_code = 3


def server(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--server` to a verb: argument `server`."""
    return click.option(
        "--server",
        metavar="URL",
        default=SERVER,
        show_default=True,
        help="A running scheduler: `kubectl -n stowplan-system port-forward deploy/stowplan 10259` brings it here.",
    )(command)


def fetch(server: str, path: str, query: dict[str, Any] | None = None) -> Any:
    """A page of JSON; None where the scheduler has none (404). Raises ServerError."""
    import json
    import urllib.error
    import urllib.parse
    import urllib.request

    address = server.rstrip("/") + urllib.parse.quote(path)
    if query:
        address += "?" + urllib.parse.urlencode(query, doseq=True)
    if not address.startswith(("http://", "https://")):
        raise click.UsageError(f"{server} is no URL such as {SERVER}")
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # it is on this host
    try:
        with direct.open(address, timeout=SECONDS) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        text = error.read().decode(errors="replace")
        if error.code == NOT_FOUND:
            return _json(text)
        said = text.strip()[:MOST]
        told = f"the scheduler at {server} {said}" if error.code == WAITING else f"{server} answers {error.code}: {said}"
        raise ServerError(told) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise ServerError(
            f"no scheduler answers at {server}: {reason}; is `kubectl port-forward` running, or is it another --server?"
        ) from None


def _json(text: str) -> Any:
    import json

    try:
        return json.loads(text)
    except ValueError:
        return None


def epoch(moment: str | float) -> float:
    """Epoch seconds of a moment in a page, which files of earlier releases have as a number."""
    from stowplan.text.moments import epoch_of

    return epoch_of(moment)


def moment(when: str | float) -> str:
    """A time as Kubernetes writes it, to the second."""
    from stowplan.text.moments import rfc3339

    return rfc3339(epoch(when))


def span(seconds: float) -> str:
    """A stretch of time in its two largest units: `45s`, `3m12s`, `2h5m`, `4d3h`."""
    left = max(int(seconds), 0)
    if left < 60:
        return f"{left}s"
    for size, unit, smaller, name in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if left >= size:
            rest = left % size // smaller
            return f"{left // size}{unit}" + (f"{rest}{name}" if rest else "")
    return f"{left}s"


def now() -> float:
    """Epoch seconds."""
    import time

    return time.time()
