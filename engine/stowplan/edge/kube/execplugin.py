"""Credential plugins: programs that a kubeconfig names, which say who we are (upstream: client-go's `exec` authenticator)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from subprocess import DEVNULL, PIPE
from typing import Any

from stowplan.edge.clock import real
from stowplan.edge.kube.whereabouts import Part, WhereaboutsError
from stowplan.edge.logs import ROOT, say
from stowplan.text.moments import epoch_of

PATIENCE = 60.0
"""Seconds that a plugin may take which nobody can talk to."""
SILENCE = 5.0
"""Seconds after which it is said who is waited for."""
MOST = 2**20
"""Bytes of its answer; what it says on standard error is cut at the last 1,000."""
COMPLAINT = 1000
_log = logging.getLogger(f"{ROOT}.credentials")


@dataclass(frozen=True, slots=True)
class Credential:
    """Who we are, for so many seconds: a token, a certificate and its key in PEM, or both."""

    token: str = ""
    certificate: str = ""
    key: str = ""
    seconds: float = math.inf


async def run(user: Part, cluster: Part) -> Credential:
    """Have the plugin of a user say who we are there. Raises WhereaboutsError; it ends with whoever waits for it."""
    given = user.values["exec"]
    plugin = f'{user.where}: the credential plugin "{given["command"]}"'
    interactive = _interactive(plugin, given)
    said = asyncio.get_running_loop().call_later(SILENCE, say, _log, logging.WARNING, f"waiting for {plugin}")
    complaint = bytearray()
    try:
        async with asyncio.timeout(None if interactive else PATIENCE), _started(plugin, user, cluster, interactive) as process:
            answer, _ = await asyncio.gather(_all(plugin, process.stdout), _listen(process.stderr, complaint, aloud=interactive))
            code = await process.wait()
    except TimeoutError:
        raise WhereaboutsError(f"{plugin} does not come to an end within {PATIENCE:g} s{_words(complaint)}") from None
    finally:
        said.cancel()
    if code:
        how = f"fails with {code}" if code > 0 else f"was ended by signal {-code}"
        raise WhereaboutsError(f"{plugin} {how}{_words(complaint) or ' and says nothing'}")
    return _read(plugin, given["apiVersion"], answer)


def _interactive(plugin: str, given: Mapping[str, Any]) -> bool:
    """May it ask a person? Raises WhereaboutsError where it must and cannot."""
    mode = given.get("interactiveMode") or "IfAvailable"
    terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
    if mode == "Always" and not terminal:
        raise WhereaboutsError(f"{plugin} has to ask somebody (interactiveMode: Always), and standard input is no terminal")
    return mode != "Never" and terminal


@contextlib.asynccontextmanager
async def _started(plugin: str, user: Part, cluster: Part, interactive: bool) -> AsyncIterator[asyncio.subprocess.Process]:
    """The plugin as a process, which is gone in the end, with those that it has started."""
    given = user.values["exec"]
    command = given["command"]
    if os.sep in command:
        command = user.resolved(command)
    environment = os.environ | {each["name"]: each.get("value") or "" for each in given.get("env") or ()}
    environment["KUBERNETES_EXEC_INFO"] = json.dumps(_info(given, cluster, interactive))
    try:
        process = await asyncio.create_subprocess_exec(
            command,
            *(given.get("args") or ()),
            env=environment,
            stdin=None if interactive else DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=not interactive,  # a group to end; who asks a person needs the terminal, and ours has that
        )
    except (OSError, ValueError) as error:
        hint = given.get("installHint")
        why = f"{getattr(error, 'strerror', None) or error}" + (f"; {hint.strip()}" if hint else "")
        raise WhereaboutsError(f"{plugin} cannot be run: {why}") from None
    try:
        yield process
    except BaseException:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if not interactive:
                os.killpg(process.pid, signal.SIGKILL)  # even if it has ended itself: something holds its output
            elif process.returncode is None:
                process.kill()
        # the pipes first: who has left the group may hold them, and one that nobody reads keeps the process from being waited for
        process._transport.close()  # type: ignore[attr-defined] # noqa: SLF001
        await process.wait()
        await asyncio.sleep(0)
        raise


def _info(given: Mapping[str, Any], cluster: Part, interactive: bool) -> dict[str, Any]:
    """What a plugin is told (upstream: `ExecCredential`, its `spec`)."""
    spec: dict[str, Any] = {"interactive": interactive}
    if given.get("provideClusterInfo"):
        names = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
        spec["cluster"] = {name: cluster.values[name] for name in names if name in cluster.values}
    return {"apiVersion": given["apiVersion"], "kind": "ExecCredential", "spec": spec}


async def _all(plugin: str, stream: asyncio.StreamReader | None) -> bytes:
    """All that comes. WhereaboutsError if that is too much."""
    found = bytearray()
    while stream is not None and (piece := await stream.read(65536)):
        found += piece
        if len(found) > MOST:
            raise WhereaboutsError(f"{plugin} answers with more than {MOST} bytes")
    return bytes(found)


async def _listen(stream: asyncio.StreamReader | None, complaint: bytearray, *, aloud: bool) -> None:
    """Keep the last of what a plugin says to people; `aloud`: they hear it at once."""
    while stream is not None and (piece := await stream.read(65536)):
        if aloud:
            sys.stderr.write(piece.decode(errors="replace"))
            sys.stderr.flush()
        complaint += piece
        del complaint[:-COMPLAINT]


def _words(complaint: bytearray) -> str:
    """That in one line, to be added to a sentence."""
    lines = (line.strip() for line in complaint.decode(errors="replace").splitlines())
    told = "; ".join(line for line in lines if line)
    return f": {told}" if told else ""


def _read(plugin: str, version: str, answer: bytes) -> Credential:
    """The credential in an answer, which is shown in no message. WhereaboutsError."""
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError):
        raise WhereaboutsError(f"{plugin} answers no JSON") from None
    if not isinstance(found, dict) or found.get("kind") != "ExecCredential":
        raise WhereaboutsError(f"{plugin} answers no ExecCredential")
    if found.get("apiVersion") != version:
        raise WhereaboutsError(
            f"{plugin} answers in apiVersion {found.get('apiVersion')!r}, not in {version} as the kubeconfig says"
        )
    status = found.get("status")
    names = ("token", "clientCertificateData", "clientKeyData", "expirationTimestamp")
    values = [status.get(name) or "" if isinstance(status, dict) else "" for name in names]
    if not all(isinstance(value, str) for value in values):
        raise WhereaboutsError(f"{plugin} answers with a {' or '.join(names)} that is no text")
    token, certificate, key, until = values
    if not token and not certificate:
        raise WhereaboutsError(f"{plugin} answers with neither a token nor a client certificate")
    if bool(certificate) != bool(key):
        raise WhereaboutsError(f"{plugin} answers with one of clientCertificateData and clientKeyData, without the other")
    try:
        seconds = epoch_of(until) - real().wall() if until else math.inf
    except (ValueError, OverflowError, OSError):
        raise WhereaboutsError(f"{plugin} answers with an expirationTimestamp that is no time") from None
    return Credential(token, certificate, key, seconds)
