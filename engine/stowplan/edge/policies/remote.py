"""A policy's ConfigMap and its history from outside: looked at, and rolled back, by somebody who may write the ConfigMap."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from stowplan.edge.kube.aio import Whereabouts, WhereaboutsError, connected
from stowplan.edge.kube.reflector import message_of
from stowplan.edge.kube.transport import MERGE, Answer, Request, Transport, TransportError
from stowplan.edge.policies import history
from stowplan.edge.policies.configmap import DEFAULT_KEY, ConfigMap, Reference, decode, key_of
from stowplan.edge.policies.examine import Examiner, Offer
from stowplan.edge.policies.history import Version
from stowplan.policy.compile import PolicyError
from stowplan.text import Diagnostic, Source

NOT_FOUND, CONFLICT = 404, 409
_encode = msgspec.json.Encoder().encode
T = TypeVar("T")


class RollbackError(Exception):
    """There is nothing to go back to, or it cannot be written; the text says why."""


class RemoteError(Exception):
    """The API server cannot be asked, or refuses to answer."""


@dataclass(frozen=True, slots=True)
class Current:
    """What the ConfigMap holds. `digest`: "" where that is no policy."""

    configmap: ConfigMap
    key: str
    digest: str


@dataclass(frozen=True, slots=True)
class History:
    """The ConfigMap of a policy, and the one beside it."""

    reference: Reference
    transport: Transport

    async def versions(self) -> tuple[Version, ...]:
        """The good versions, oldest first. Raises RemoteError."""
        found = await self._get(history.path_of(history.companion(self.reference)))
        return history.versions(None if found is None else history.decode_kept(found))

    async def current(self) -> Current | None:
        """What the ConfigMap holds now; None where there is none. Raises RemoteError."""
        found = await self._get(history.path_of(self.reference))
        if found is None:
            return None
        configmap = decode(found)
        key = key_of(self.reference, configmap)
        if isinstance(key, Diagnostic):
            return Current(configmap, self.reference.key or DEFAULT_KEY, "")
        try:
            checked = Examiner().examine(Offer(Source(str(self.reference), (configmap.data or {})[key])), None)
        except PolicyError:
            return Current(configmap, key, "")
        return Current(configmap, key, checked.digest)

    async def roll_back(self, number: int | None) -> Version:
        """Write a version back; None: the newest that the ConfigMap does not hold. Raises RollbackError and RemoteError."""
        known, now = await self.versions(), await self.current()
        version = self._wanted(known, number, "" if now is None else now.digest)
        if now is None:
            metadata = {"name": self.reference.name, "namespace": self.reference.namespace}
            data = {self.reference.key or DEFAULT_KEY: version.text}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            request = Request("POST", self.reference.folder, body=_encode(body))
        else:
            # the version that was looked at: nobody's edit in between is lost
            metadata = {"resourceVersion": now.configmap.metadata.resource_version}
            body = {"metadata": metadata, "data": {now.key: version.text}}
            request = Request("PATCH", history.path_of(self.reference), body=_encode(body), content_type=MERGE)
        answer = await self._request(request)
        if answer.status == CONFLICT:
            raise RollbackError(f"{self.reference} has just been changed by somebody else: look again")
        if not answer.ok:
            raise RollbackError(f"{self.reference} cannot be written: {message_of(answer)}")
        return version

    def _wanted(self, known: tuple[Version, ...], number: int | None, held: str) -> Version:
        if not known:
            raise RollbackError(f"{self.reference} has no history: {history.companion(self.reference)} holds no version")
        if number is None:
            others = [each for each in known if each.entry.hash != held]
            if not others:
                raise RollbackError(f"{self.reference} has no other version than the one it holds")
            return others[-1]
        for each in known:
            if each.entry.version == number:
                if each.entry.hash == held:
                    raise RollbackError(f"{self.reference} holds version {number} already")
                return each
        numbers = ", ".join(str(each.entry.version) for each in known)
        raise RollbackError(f"{self.reference} has no version {number}: there are {numbers}")

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
