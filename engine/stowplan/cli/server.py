"""What a running scheduler says about itself, over HTTP, and how its moments are shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

SERVER = "http://localhost:10259"
SECONDS = 30.0
"""For the whole answer."""
FINE, NOT_FOUND, WAITING = 200, 404, 503
LARGEST = 2**28
"""Bytes of an answer."""


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


def fetch(server: str, path: str, shape: type[Any], query: dict[str, Any] | None = None) -> Any:
    """A page of JSON that has this shape; None where the scheduler has none (404). Raises ServerError."""
    import urllib.parse

    from stowplan.cli.shapes import WrongShapeError, checked, parsed, words

    address = server.rstrip("/") + urllib.parse.quote(path)
    if query:
        address += "?" + urllib.parse.urlencode(query, doseq=True)
    if not address.startswith(("http://", "https://")):
        raise click.UsageError(f"{server} is no URL such as {SERVER}")
    status, body = _answer(server, address)
    if status not in (FINE, NOT_FOUND):
        said = words(body[: 2**12].decode(errors="replace"))
        raise ServerError(f"the scheduler at {server} {said}" if status == WAITING else f"{server} answers {status}: {said}")
    if len(body) > LARGEST:
        raise ServerError(f"{server} answers with more than {LARGEST} bytes")
    try:
        return checked(parsed(body), shape)
    except WrongShapeError as error:
        if status == NOT_FOUND:
            return None
        raise ServerError(f"{server} is no scheduler, or one of another version: {path} has {error}") from None


def _answer(server: str, address: str) -> tuple[int, bytes]:
    """Status and body, within SECONDS however slowly they come. Raises ServerError."""
    import threading

    found: list[tuple[int, bytes] | Exception] = []

    def ask() -> None:
        try:
            found.append(_asked(address))
        except Exception as error:  # noqa: BLE001 - raised by whoever waits
            found.append(error)

    asking = threading.Thread(target=ask, daemon=True)  # one that hangs does not keep the process
    asking.start()
    asking.join(SECONDS)
    if not found:
        raise ServerError(f"{server} does not answer within {SECONDS:g} s")
    if isinstance(found[0], Exception):
        raise _unanswered(server, found[0]) from None
    return found[0]


def _asked(address: str) -> tuple[int, bytes]:
    import urllib.error
    import urllib.request

    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # it is on this host
    try:
        with direct.open(address, timeout=SECONDS) as answer:
            return FINE, answer.read(LARGEST + 1)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(LARGEST + 1)


def _unanswered(server: str, error: Exception) -> Exception:
    """What to tell of a call that failed; a bug stays one."""
    from http.client import HTTPException

    from stowplan.cli.shapes import words

    if isinstance(error, HTTPException):
        return ServerError(f"{server} does not speak HTTP, or not to its end: {type(error).__name__} {words(str(error))}".rstrip())
    if not isinstance(error, (OSError, ValueError, OverflowError)):
        return error
    reason = words(str(getattr(error, "reason", error)))
    return ServerError(f"no scheduler answers at {server}: {reason}; is `kubectl port-forward` running, or is it another --server?")


def epoch(moment: str | float) -> float:
    """Epoch seconds of a moment in a page, which files of earlier releases have as a number. Raises ServerError."""
    from stowplan.cli.shapes import words
    from stowplan.text.moments import epoch_of, rfc3339

    try:
        found = epoch_of(moment)
        rfc3339(found)
    except (ValueError, OverflowError, OSError):
        raise ServerError(f"{words(str(moment))} is no time: this is no scheduler, or one of another version") from None
    return found


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
