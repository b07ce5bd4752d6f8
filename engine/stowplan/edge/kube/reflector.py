"""One resource of the API, listed and then watched for ever, as events for the loop.

A list is compared with what was known, and the difference, deletions included, is delivered at once: nobody sees half a
list. A watch goes on from the version that was seen last; where the server has forgotten it (410 in any form), or again and
again has nothing to say about it, the resource is listed anew. An object that cannot be read is reported and its last
readable version kept, since a pod that is not understood any more still occupies its node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from stowplan.edge.clock import Backoff, Clock, monotonic
from stowplan.edge.kube.kinds import Resource, changed
from stowplan.edge.kube.transport import Answer, Request, Transport, TransportError, UnsentError
from stowplan.edge.observer import Observer
from stowplan.loop.events import Event
from stowplan.objects import ObjectError, identify, read_as

PAGE = 500
SILENCE = 80.0
"""Seconds without a byte after which a watch is dead: bookmarks come every minute."""
LIST_SECONDS = 60.0
WATCH_SECONDS = 300
"""The least that the server is asked to keep a watch open; up to twice that, so that not all end at once."""
RETRY_UNSERVED = 600.0
GIVE_UP = 3
"""Watches in a row that bring nothing before the resource is listed anew."""
GONE = 410
AWAY = (0.4, 2.0)
"""Pauses while nobody can be reached: asking costs no server anything, and when it is back nothing is known until it is asked."""


Deliver = Callable[[Sequence[Event]], None]


class _List(msgspec.Struct, rename="camel"):
    class Metadata(msgspec.Struct, rename="camel"):
        resource_version: str = ""
        continue_: str = msgspec.field(default="", name="continue")

    metadata: Metadata
    items: list[msgspec.Raw] | None = None


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Status(msgspec.Struct):
    code: int = 0
    message: str = ""


_decode_list = msgspec.json.Decoder(_List).decode
_decode_line = msgspec.json.Decoder(_Line).decode
_decode_status = msgspec.json.Decoder(_Status).decode


class ExpiredError(Exception):
    """The server has forgotten the version that was asked about."""


class FailedError(Exception):
    """The server would not, or could not, answer."""


class UnservedError(Exception):
    """The server does not have the resource."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A version of an object."""

    uid: str
    version: str


Found = dict[str, tuple[_Known, Event | None]]
"""What a list has, by key, with the event that tells of it where it is not known as it is."""


class Reflector:
    """Follows one resource. `synced` once it has been listed; `heard`: when the server last said something about it.

    `served` is false while the server does not have it.
    """

    def __init__(self, resource: Resource, transport: Transport, deliver: Deliver, clock: Clock, observer: Observer) -> None:
        """`deliver` is given events that belong together, in order."""
        self.resource = resource
        self.synced = asyncio.Event()
        self.heard = monotonic()
        self.served = True
        self._transport, self._deliver, self._clock, self._observer = transport, deliver, clock, observer
        self._known: dict[str, _Known] = {}
        self._version = ""
        self._path = resource.paths[0]
        self._unpaged = False
        self._idle = 0

    def staleness(self) -> float:
        """Seconds since the server last said anything about the resource."""
        return monotonic() - self.heard

    async def run(self) -> None:
        """List and watch until cancelled. What a server or a network can do wrong is dealt with; anything else raises."""
        backoff, away = Backoff(self._clock, 0.8, 30.0), Backoff(self._clock, *AWAY)
        while True:
            try:
                if not self._version:
                    await self._list()
                if await self._watch():
                    backoff.reset()
                    away.reset()
                    self._watched("ended")
                    continue
                self._idle += 1
                self._watched("ended")
            except ExpiredError:
                self._version = ""
                self._watched("expired")
            except UnservedError:
                await self._unserved()
                continue
            except UnsentError as error:
                self._failed(str(error))
                self._watched("broken")
                backoff.reset()  # who answers next has just started
                await away.pause()
                continue
            except (TransportError, FailedError, msgspec.MsgspecError) as error:
                self._failed(str(error) or type(error).__name__)
                self._watched("broken")
                self._idle += 1
            if self._idle >= GIVE_UP:
                self._version, self._idle = "", 0
            away.reset()
            await backoff.pause()

    async def _unserved(self) -> None:
        """A server without the resource is a cluster without such objects. It may come to have it."""
        if not self.synced.is_set():
            self._failed("is not served, so there are none")
        self._watched("unserved")
        self._replace({})
        self.served = False
        self.synced.set()
        await asyncio.sleep(self._clock.jittered(RETRY_UNSERVED, 0.1))

    # Listing

    async def _list(self) -> None:
        """The whole resource, consistent as of one version; told as what has changed since it was known."""
        found: Found = {}
        query = dict(self.resource.selection)
        if not self._unpaged:
            query["limit"] = str(PAGE)
        while True:
            answer = await self._get(query)
            if answer.status == GONE:  # the token for the next page has expired: with one large page there is none
                self._unpaged = "continue" in query
                raise ExpiredError
            page = _decode_list(self._checked(answer).body)
            for item in page.items or ():
                self._find(bytes(item), found)
            if not page.metadata.continue_:
                break
            query["continue"] = page.metadata.continue_
        self._unpaged, self.served = False, True
        self._replace(found)
        self._version, self._idle = page.metadata.resource_version, 0
        self.synced.set()
        self._watched("listed")

    async def _get(self, query: dict[str, str]) -> Answer:
        """A page, from the path that the server knows."""
        answer = await self._transport.request(Request("GET", self._path, dict(query), seconds=LIST_SECONDS))
        self.heard = monotonic()
        if answer.status != 404 or not self.resource.optional:
            return answer
        for path in self.resource.paths:
            answer = await self._transport.request(Request("GET", path, dict(query), seconds=LIST_SECONDS))
            if answer.status != 404:
                self._path = path
                return answer
        raise UnservedError

    def _find(self, item: bytes, found: Found) -> None:
        """Note an item of a list, with the event that tells of it unless it is known as it is."""
        name = identify(item)
        key = self.resource.key(name.namespace or "", name.name or "")
        now = _Known(name.uid or "", name.resource_version or "")
        known = self._known.get(key)
        if known == now:
            found[key] = (now, None)
            return
        event = self._read(item)
        if event is not None:
            found[key] = (now, event)
        elif known is not None and known.uid == now.uid:
            found[key] = (known, None)

    def _replace(self, found: Found) -> None:
        """Let what was found be what is known, and tell the difference: first what is gone."""
        gone: list[Event] = []
        for key, known in self._known.items():
            if key not in found or found[key][0].uid != known.uid:
                gone.append(self.resource.gone(key, known.uid))
        events = gone + [event for _, event in found.values() if event is not None]
        self._known = {key: now for key, (now, _) in found.items()}
        if events:
            self._deliver(events)

    # Watching

    async def _watch(self) -> bool:
        """Follow the resource until the server ends the watch. Did it bring anything?"""
        seconds = int(self._clock.jittered(WATCH_SECONDS, 1.0))
        query = {
            **self.resource.selection,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(seconds),
        }
        begun, told = monotonic(), False
        async with self._transport.stream(self._path, query, silence=SILENCE) as (answer, lines):
            self.heard = monotonic()
            if answer.status == GONE:
                raise ExpiredError
            if answer.status == 404 and self.resource.optional:
                raise UnservedError
            self._checked(answer)
            self._watched("started")
            async for line in lines:
                if line.strip():
                    self.heard = monotonic()
                    self._tell(line)
                    told, self._idle = True, 0
        return told or monotonic() - begun >= WATCH_SECONDS / 2

    def _tell(self, line: bytes) -> None:
        """What one line of a watch says."""
        try:
            event = _decode_line(line)
        except msgspec.MsgspecError as error:
            self._version = ""  # nobody knows what was missed
            raise FailedError(f"a watch sent what is no event: {error}") from None
        item = bytes(event.object)
        if event.type == "ERROR":
            status = _decode_status(item)
            if status.code == GONE:
                raise ExpiredError
            raise FailedError(f"the watch ended with {status.code}: {status.message}")
        name = identify(item)
        key = self.resource.key(name.namespace or "", name.name or "")
        if event.type == "BOOKMARK":
            self._watched("bookmark")
        elif event.type == "DELETED":
            self._deleted(key)
        else:
            self._changed(key, _Known(name.uid or "", name.resource_version or ""), item)
        self._version = name.resource_version or self._version

    def _deleted(self, key: str) -> None:
        known = self._known.pop(key, None)
        if known is not None:
            self._deliver((self.resource.gone(key, known.uid),))

    def _changed(self, key: str, now: _Known, item: bytes) -> None:
        known = self._known.get(key)
        if known == now:
            return
        events = [] if known is None or known.uid == now.uid else [self.resource.gone(key, known.uid)]
        event = self._read(item)
        if event is not None:
            events.append(event)
            self._known[key] = now
        elif events:
            del self._known[key]
        if events:
            self._deliver(events)

    # Both

    def _read(self, item: bytes) -> Event | None:
        """What there is to tell of an object; None if it cannot be read."""
        try:
            return changed(read_as(self.resource.kind, item).fact)
        except ObjectError as error:
            self._observer.failed(self.resource.kind, f"{error}; left as it was")
            return None

    def _checked(self, answer: Answer) -> Answer:
        if not answer.ok:
            raise FailedError(f"{answer.status}: {message_of(answer)}")
        return answer

    def _watched(self, what: str) -> None:
        self._observer.watched(self.resource.kind, what)

    def _failed(self, message: str) -> None:
        self._observer.failed(self.resource.kind, message)


def message_of(answer: Answer) -> str:
    """What the Status object of an answer says, or the beginning of what it says instead."""
    try:
        return _decode_status(answer.body).message or answer.body[:200].decode(errors="replace")
    except msgspec.MsgspecError:
        return answer.body[:200].decode(errors="replace")
