"""A policy's ConfigMap and its history from outside: looked at, and rolled back, by somebody who may write the ConfigMap."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from stowplan.edge.kube.aio import connected
from stowplan.edge.kube.reflector import message_of
from stowplan.edge.kube.transport import MERGE, Answer, Request, Transport, TransportError
from stowplan.edge.kube.whereabouts import Whereabouts, WhereaboutsError
from stowplan.edge.policies import history
from stowplan.edge.policies.configmap import DEFAULT_KEY, ConfigMap, Reference, decode, key_of
from stowplan.edge.policies.examine import digest_of
from stowplan.edge.policies.goingback import MARK, Choice, Mark, RollbackError, chosen, mark_of, marked, named
from stowplan.edge.policies.history import Known, Version
from stowplan.text import Diagnostic

NOT_FOUND, CONFLICT = 404, 409
_encode = msgspec.json.Encoder().encode
T = TypeVar("T")


class RemoteError(Exception):
    """The API server cannot be asked, or refuses to answer."""


@dataclass(frozen=True, slots=True)
class Current:
    """What the ConfigMap holds. `digest`: "" where that is no policy."""

    configmap: ConfigMap
    key: str
    digest: str

    @property
    def text(self) -> str:
        """What is under the key."""
        return (self.configmap.data or {}).get(self.key, "")

    @property
    def mark(self) -> Mark:
        """What was gone back from, as far as that still counts."""
        return mark_of((self.configmap.metadata.annotations or {}).get(MARK, ""), self.digest)


@dataclass(frozen=True, slots=True)
class Restored:
    """The choice that was written, and what the ConfigMap held before: its text, and the version of that if it is known."""

    choice: Choice
    text: str = ""
    before: Version | None = None

    @property
    def version(self) -> Version:
        return self.choice.version


@dataclass(frozen=True, slots=True)
class History:
    """The ConfigMap of a policy, and the one beside it."""

    reference: Reference
    transport: Transport

    async def known(self) -> Known:
        """The good versions, oldest first. Raises RemoteError."""
        found = await self._get(history.path_of(history.companion(self.reference)))
        return history.known(None if found is None else history.decode_kept(found), digest_of)

    async def current(self) -> Current | None:
        """What the ConfigMap holds now; None where there is none. Raises RemoteError."""
        found = await self._get(history.path_of(self.reference))
        if found is None:
            return None
        configmap = decode(found)
        key = key_of(self.reference, configmap)
        if isinstance(key, Diagnostic):
            return Current(configmap, self.reference.key or DEFAULT_KEY, "")
        return Current(configmap, key, digest_of((configmap.data or {})[key]))

    async def roll_back(self, wanted: str = "") -> Restored:
        """Write a version back, by number or beginning of its hash; "": the next one further back (see `goingback`).

        Raises RollbackError and RemoteError.
        """
        known, now = (await self.known()).versions, await self.current()
        held, mark = ("", Mark()) if now is None else (now.digest, now.mark)
        if not known:
            raise RollbackError(f"{self.reference} has no history: {history.companion(self.reference)} holds no version")
        try:
            choice = named(known, wanted, held) if wanted else chosen(known, held, mark.left)
        except RollbackError as error:
            raise RollbackError(f"{self.reference} {error}") from None
        note = {MARK: _encode(marked(mark, known, held, choice.version)).decode()}
        await self._write(now, choice.version.text, note)
        before = next((each for each in known if each.entry.hash == held), None)
        return Restored(choice, "" if now is None else now.text, before)

    async def _write(self, now: Current | None, text: str, annotations: dict[str, str]) -> None:
        """Put a text into the ConfigMap, unless somebody has changed that since."""
        metadata: dict[str, Any] = {"annotations": annotations}
        if now is None:
            metadata |= {"name": self.reference.name, "namespace": self.reference.namespace}
            data = {self.reference.key or DEFAULT_KEY: text}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            request = Request("POST", self.reference.folder, body=_encode(body))
        else:
            # the version that was looked at: nobody's edit in between is lost
            metadata |= {"resourceVersion": now.configmap.metadata.resource_version}
            body = {"metadata": metadata, "data": {now.key: text}}
            request = Request("PATCH", history.path_of(self.reference), body=_encode(body), content_type=MERGE)
        answer = await self._request(request)
        if answer.status == CONFLICT:
            raise RollbackError(f"{self.reference} has just been changed by somebody else: look again")
        if not answer.ok:
            raise RollbackError(f"{self.reference} cannot be written: {message_of(answer)}")

    async def _get(self, path: str) -> bytes | None:
        answer = await self._request(Request("GET", path))
        if answer.status == NOT_FOUND:
            return None
        if not answer.ok:
            raise RemoteError(f"the API server answers {answer.status}: {message_of(answer)}")
        return answer.body

    async def _request(self, request: Request) -> Answer:
        try:
            return await self.transport.request(request)
        except TransportError as error:
            raise RemoteError(f"the API server cannot be asked: {str(error) or 'no answer'}") from None


def at_server(reference: Reference, kubeconfig: str | None, context: str | None, work: Callable[[History], Awaitable[T]]) -> T:
    """Do something with the history of a policy. Raises RemoteError, and what the work raises."""

    async def connecting() -> T:
        async with connected(Whereabouts(kubeconfig or "", context, "")) as transport:
            return await work(History(reference, transport))

    try:
        return asyncio.run(connecting())
    except WhereaboutsError as error:
        raise RemoteError(str(error)) from None
