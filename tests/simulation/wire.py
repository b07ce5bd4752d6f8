"""Transport over the model: every request and every line of a watch takes its time, and meets the faults of the scenario.

A request takes effect at one moment, when it arrives at the server, whatever becomes of its sender or of the answer.
"""

import asyncio
from collections import deque
from urllib.parse import urlencode

import msgspec

from simulation.api import Api, Refused, status_object
from simulation.faults import CODES, MEDDLING, Fault, Faults, about
from simulation.selection import Selection
from simulation.storage import Change, CompactedError, encode, whole
from stowplan.edge.kube.transport import Answer, Request, UnansweredError, UnsentError

BOOKMARK_SECONDS = 60.0
LATENCY = (0.001, 0.02)


class Server:
    """The API server as a process: it may be down, and it knows the open watches."""

    def __init__(self, api: Api, clock, faults: Faults, randomness):
        self.api, self.clock, self.faults, self.random = api, clock, faults, randomness
        self.down = False
        self.meddle = None
        self.feeds: list[Feed] = []
        api.storage.watchers.append(self.changed)

    def changed(self, change: Change) -> None:
        for feed in list(self.feeds):
            if feed.kind is change.kind:
                feed.tell(change)

    def fall(self) -> None:
        """No connection lives on, no new one is made."""
        self.down = True
        for feed in list(self.feeds):
            feed.fail("reset")

    def rise(self) -> None:
        self.down = False

    def disturb(self, how: str, process: int | None, plural: str) -> None:
        """Something happens to the open watches of a process: close, reset, silence or gone."""
        for feed in list(self.feeds):
            if process in (None, feed.wire.process) and plural in ("", feed.kind.plural):
                feed.fail(how)


class Wire:
    """The Transport of one process. `observer` is told what took effect and what the process has read."""

    def __init__(self, server: Server, machine, process: int, observer, randomness):
        self.server, self.machine, self.process = server, machine, process
        self.clock, self.observer, self.random = server.clock, observer, randomness
        self.dead, self.skew, self.identity = False, 0.0, ""
        self.crash = lambda: None

    def latency(self, what: str, plural: str) -> float:
        extra = self.server.faults.lasting("slow", self.process, plural, self.clock.now, what)
        return self.random.uniform(*LATENCY) + (self.random.uniform(0.2, 1.0) * extra if extra else 0.0)

    async def request(self, request: Request) -> Answer:
        if self.dead:
            raise UnsentError("the process is dead")
        place = self.server.api.place(request.path) if self._known(request.path) else None
        if place is None:
            return Answer(404, encode(status_object(404, "the server could not find the requested resource")))
        call = _Call(self, request, place)
        call.send()
        answer = await call.future
        if call.what == "list" and answer.ok:
            self.observer.listed(self, place, request, msgspec.json.decode(answer.body))
        return answer

    def _known(self, path: str) -> bool:
        try:
            self.server.api.place(path)
        except Refused:
            return False
        return True

    def stream(self, path: str, query, *, silence: float):
        return _Stream(self, path, dict(query), silence)


class _Call:
    """A request on its way."""

    def __init__(self, wire: Wire, request: Request, place):
        self.wire, self.request, self.place = wire, request, place
        self.what = about(request.method, place)
        self.future = wire.machine.create_future()
        self.say = f"replica {wire.process}: {request.method} {request.path}"
        query = urlencode({key: value for key, value in request.query.items() if key != "limit"})
        self.say += f"?{query}" if query else ""

    def send(self) -> None:
        wire, clock = self.wire, self.wire.clock
        fault = wire.server.faults.take(wire.process, self.what, self.place.kind.plural, clock.now)
        there = wire.latency(self.what, self.place.kind.plural)
        clock.after(self.request.seconds, self.settle, UnansweredError("timed out"))
        if fault is None:
            clock.after(there, self.arrive)
            return
        clock.say(f"{self.say}: FAULT {fault.how}")
        self._suffer(fault, there)

    def _suffer(self, fault: Fault, there: float) -> None:
        clock = self.wire.clock
        if fault.how in CODES:
            clock.after(there, self.refuse, CODES[fault.how], fault.seconds)
        elif fault.how == "refused":
            clock.after(0.001, self.settle, UnsentError("connection refused"))
        elif fault.how == "unanswered":
            clock.after(there, self.apply)
        elif fault.how == "reset":
            clock.after(there, self.arrive, True)
        elif fault.how == "crash-before":
            clock.after(0.0, self.wire.crash)
        elif fault.how == "crash-after":
            clock.after(there, self.apply)
            clock.after(there, self.wire.crash)
        elif fault.how in MEDDLING:
            clock.after(there, self.wire.server.meddle, fault.how, self.place)
            clock.after(there, self.arrive)
        elif fault.how != "lost":
            raise AssertionError(fault)

    def arrive(self, reset: bool = False) -> None:
        if self.wire.server.down:
            self.settle(UnsentError("connection refused"))
            return
        status, body = self.apply()
        back = self.wire.latency(self.what, self.place.kind.plural)
        if reset:
            self.settle(UnansweredError("connection reset"))
        else:
            self.wire.clock.after(back, self.answer, Answer(status, body))

    def apply(self):
        """The request takes effect."""
        wire, request = self.wire, self.request
        if wire.server.down:
            return 503, b""
        wire.observer.before(wire, self.what, request)
        status, body = wire.server.api.call(request.method, request.path, request.query, request.body, request.content_type)
        wire.clock.say(f"{self.say}: {status}")
        wire.observer.applied(wire, self.what, self.place, request, status)
        return status, body

    def refuse(self, code: int, retry_after: float) -> None:
        body = encode(status_object(code, "injected"))
        self.answer(Answer(code, body, max(1.0, round(retry_after)) if code == 429 else None))

    def answer(self, answer: Answer) -> None:
        if self.wire.server.down:
            self.settle(UnansweredError("connection reset"))
        elif not self.future.done():
            self.future.set_result(answer)

    def settle(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class _Stream:
    """The context of a watch; opening it is a request like others."""

    def __init__(self, wire: Wire, path: str, query, silence: float):
        self.wire, self.path, self.query, self.silence = wire, path, query, silence
        self.feed: Feed | None = None

    async def __aenter__(self):
        wire, server = self.wire, self.wire.server
        if wire.dead:
            raise UnsentError("the process is dead")
        if not wire._known(self.path):
            return Answer(404, encode(status_object(404, "the server could not find the requested resource"))), _nothing()
        place = server.api.place(self.path)
        plural = place.kind.plural
        fault = server.faults.take(wire.process, "watch", plural, wire.clock.now)
        await asyncio.sleep(wire.latency("watch", plural))
        if server.down or (fault is not None and fault.how == "refused"):
            raise UnsentError("connection refused")
        if fault is not None and fault.how in ("lost", "unanswered", "reset"):
            await asyncio.sleep(30.0 if fault.how != "reset" else 0.0)
            raise UnansweredError("no answer")
        if fault is not None and fault.how.startswith("crash"):
            wire.clock.after(0.0, wire.crash)
            await asyncio.sleep(3600.0)
        if fault is not None and fault.how in CODES:
            code = CODES[fault.how]
            wire.clock.say(f"replica {wire.process}: watch {plural}: {code}")
            return Answer(code, encode(status_object(code, "injected")), fault.seconds if code == 429 else None), _nothing()
        return self._open(place)

    def _open(self, place):
        wire, server = self.wire, self.wire.server
        version = int(self.query["resourceVersion"])
        try:
            missed = server.api.storage.since(place.kind, version)
        except CompactedError:
            gone = status_object(410, f"too old resource version: {version} ({server.api.storage.compacted})")
            wire.clock.say(f"replica {wire.process}: watch {place.kind.plural} from {version}: 410")
            if server.random.random() < 0.5:
                return Answer(410, encode(gone)), _nothing()
            self.feed = Feed(wire, place, self.query, self.silence)
            self.feed.push(_line("ERROR", encode(gone)), None)
            return Answer(200), self.feed
        wire.clock.say(f"replica {wire.process}: watch {place.kind.plural} from {version}")
        self.feed = Feed(wire, place, self.query, self.silence)
        if server.faults.lasting("repeat", wire.process, place.kind.plural, wire.clock.now):
            history = [change for change in server.api.storage.history if change.kind is place.kind and change.version <= version]
            latest = {change.key: change for change in history}
            for change in latest.values():
                self.feed.tell(change)
        for change in missed:
            self.feed.tell(change)
        self.feed.begin()
        return Answer(200), self.feed

    async def __aexit__(self, *_):
        if self.feed is not None:
            self.feed.close()


async def _nothing():
    return
    yield b""


class Feed:
    """The lines of one watch: in order, each after its delay. What stands in `buffer` has arrived and was not read yet."""

    def __init__(self, wire: Wire, place, query, silence: float):
        self.wire, self.place, self.kind, self.silence = wire, place, place.kind, silence
        self.selection = Selection.of(place, query)
        self.seconds = float(query.get("timeoutSeconds") or 1800)
        self.buffer: deque = deque()
        self.heard = wire.clock.now
        self.closed = self.silent = False
        self._last = 0.0
        self._waiting = None
        self._end: Exception | None = None

    def begin(self) -> None:
        self.wire.server.feeds.append(self)
        clock = self.wire.clock
        clock.after(BOOKMARK_SECONDS * self.wire.random.uniform(0.9, 1.05), self._bookmark)
        clock.after(self.seconds, self.fail, "close")

    # What the server does

    def tell(self, change: Change) -> None:
        event = self.selection.event(change)
        if event is not None:
            text = change.text
            if event == "DELETED" and change.new is not None:
                last = change.old | {"metadata": change.old["metadata"] | {"resourceVersion": str(change.version)}}
                text = whole(change.kind, last)
            self.push(_line(event, text), (event, change))

    def push(self, line: bytes, change) -> None:
        when = max(self._last, self.wire.clock.now + self.wire.latency("watch", self.kind.plural))
        self._last = when
        self.wire.clock.at(when, self._arrive, line, change)

    def _bookmark(self) -> None:
        if self.closed or self not in self.wire.server.feeds:
            return
        clock = self.wire.clock
        if not self.wire.server.faults.lasting("mute", self.wire.process, self.kind.plural, clock.now):
            version = str(self.wire.server.api.storage.version)
            head = {"kind": self.kind.name, "apiVersion": self.kind.api_version}
            self.push(_line("BOOKMARK", encode(head | {"metadata": {"resourceVersion": version, "creationTimestamp": None}})), None)
        clock.after(BOOKMARK_SECONDS, self._bookmark)

    def fail(self, how: str) -> None:
        if self.closed or self not in self.wire.server.feeds:
            return
        self.wire.clock.say(f"replica {self.wire.process}: watch {self.kind.plural}: FAULT {how}")
        self.wire.server.feeds.remove(self)
        if how == "silence":
            self.silent = True
        elif how == "gone":
            self.push(_line("ERROR", encode(status_object(410, "too old resource version"))), None)
        else:
            self.wire.clock.at(max(self._last, self.wire.clock.now), self._finish, how)

    # What the client sees

    def _arrive(self, line: bytes, change) -> None:
        if not (self.closed or self.silent or self._end):
            self.heard = self.wire.clock.now
            self.buffer.append((line, change))
            self._wake()

    def _finish(self, how: str) -> None:
        if not self.silent and self._end is None:
            self._end = StopAsyncIteration() if how == "close" else UnansweredError("connection reset")
            self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def __aiter__(self):
        return self

    async def __anext__(self) -> bytes:
        while not self.buffer:
            if self._end is not None:
                raise self._end
            if self.wire.clock.now >= self.heard + self.silence:
                raise UnansweredError("silence")
            self._waiting = self.wire.machine.create_future()
            timer = self.wire.machine.call_at(self.heard + self.silence, self._wake)
            try:
                await self._waiting
            finally:
                timer.cancel()
        line, change = self.buffer.popleft()
        if change is not None:
            self.wire.observer.pulled(self.wire, *change)
        return line

    def close(self) -> None:
        self.closed = True
        if self in self.wire.server.feeds:
            self.wire.server.feeds.remove(self)


def _line(event: str, text: bytes) -> bytes:
    return b'{"type":"' + event.encode() + b'","object":' + text + b"}"
