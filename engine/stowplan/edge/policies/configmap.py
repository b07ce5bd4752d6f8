"""A policy in a ConfigMap, followed by a watch on that object; what servers and networks do wrong is the reflector's business."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from stowplan.edge.clock import Clock
from stowplan.edge.kube.kinds import Resource
from stowplan.edge.kube.reflector import Reflector
from stowplan.edge.kube.transport import Transport
from stowplan.edge.observer import Observer
from stowplan.edge.policies.examine import Offer
from stowplan.edge.policies.keeper import Keeper
from stowplan.loop.events import Event
from stowplan.text import Code, Diagnostic, Severity, Source, some

DEFAULT_KEY = "policy.yaml"
"""The key of a ConfigMap with several."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A ConfigMap, and which of its keys; "": the only one, or `policy.yaml`."""

    namespace: str
    name: str
    key: str = ""

    @classmethod
    def parse(cls, text: str) -> Reference | None:
        """`NAMESPACE/NAME` or `NAMESPACE/NAME/KEY`; None if it is neither."""
        parts = text.split("/")
        return cls(*parts) if len(parts) in (2, 3) and all(parts) else None

    def __str__(self) -> str:
        return f"configmap {self.namespace}/{self.name}"

    @property
    def folder(self) -> str:
        """Path of the ConfigMaps of the namespace."""
        return f"/api/v1/namespaces/{self.namespace}/configmaps"


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class ConfigMap(msgspec.Struct, rename="camel"):
    """What is read of one."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    data: dict[str, str] | None = None

    def about(self) -> dict[str, str]:
        """As an Event refers to it."""
        it = self.metadata
        named = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": it.namespace, "name": it.name}
        return named | {"uid": it.uid, "resourceVersion": it.resource_version}


decode = msgspec.json.Decoder(ConfigMap).decode


def key_of(reference: Reference, found: ConfigMap) -> str | Diagnostic:
    """The key with the policy, or why that is none."""
    data = found.data or {}
    wanted = reference.key or (next(iter(data)) if len(data) == 1 else DEFAULT_KEY)
    if wanted in data:
        return wanted
    if not data:
        return _unreadable(f"{reference} holds nothing under data")
    hint = "" if reference.key else ": name the one that counts, NAMESPACE/NAME/KEY"
    return _unreadable(f'{reference} has no key "{wanted}", but {some(sorted(data), 5)}{hint}')


def offer_of(reference: Reference, found: ConfigMap) -> Offer:
    """The text in a ConfigMap; places in it are lines and columns of the key's value."""
    key, about = key_of(reference, found), found.about()
    if isinstance(key, Diagnostic):
        return Offer(Source(str(reference), ""), key, about)
    name, text = f"{reference}[{key}]", (found.data or {})[key]
    wrong = None if text.strip() else _unreadable(f"{name}: the value is empty")
    return Offer(Source(name, text), wrong, about)


def _unreadable(text: str) -> Diagnostic:
    return Diagnostic(Code.UNREADABLE, Severity.ERROR, text)


@dataclass(frozen=True, slots=True)
class _One(Resource):
    """The one ConfigMap. What is delivered is the object, or None when it is deleted."""

    def gone(self, key: str, uid: str) -> Event:  # noqa: ARG002 - as any resource
        return cast("Event", None)


class _Reader(Reflector):
    """A reflector whose events are the objects themselves."""

    def _read(self, item: bytes) -> Event | None:
        return cast("Event", decode(item))


class _Watching(Observer):
    """Tells another observer, and the keeper, of what keeps the ConfigMap from being read."""

    def __init__(self, reference: Reference, keeper: Keeper, observer: Observer) -> None:
        self._reference, self._keeper, self._observer = reference, keeper, observer
        self._trouble = ""

    def watched(self, kind: str, what: str) -> None:
        if what == "started" and self._keeper.trouble == self._trouble:
            self._keeper.trouble = ""  # it can be read again, and need not have changed
        self._observer.watched(kind, what)

    def failed(self, where: str, message: str) -> None:
        if self._keeper.in_force is None:
            self._keeper.trouble = self._trouble = f"{self._reference} cannot be read: {message}"
        self._observer.failed(where, message)


class PolicyConfigMap:
    """Offers a ConfigMap's text to a keeper whenever it changes. To be made within a running asyncio loop."""

    def __init__(self, reference: Reference, keeper: Keeper, transport: Transport, clock: Clock, observer: Observer) -> None:
        self._reference, self._keeper = reference, keeper
        selection = {"fieldSelector": f"metadata.name={reference.name}"}
        resource = _One("ConfigMap", ConfigMap, (reference.folder,), selection=selection)
        self._reflector = _Reader(resource, transport, self._saw, clock, _Watching(reference, keeper, observer))
        self._latest: ConfigMap | None = None
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._reflector.run())
            await self._reflector.synced.wait()
            while True:
                self._news.clear()
                if self._latest is None:
                    self._keeper.lost(f"{self._reference} is not there")
                else:
                    await self._keeper.offer(offer_of(self._reference, self._latest), self._news.wait)
                await self._news.wait()

    def _saw(self, events: Sequence[Any]) -> None:
        """The last thing that is told counts: of edits that come faster than they can be tried, only the newest is tried."""
        self._latest = events[-1]
        self._news.set()
