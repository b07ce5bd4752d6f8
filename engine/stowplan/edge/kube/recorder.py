"""Events for users (events.k8s.io/v1), with kube-scheduler's reasons and texts.

What repeats becomes a series: one Event that counts. Who repeats often is written ever more rarely, but what was said last is
always written in the end. Nothing waits for an Event, and one that cannot be written is lost.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import quote

import msgspec

from stowplan.edge.clock import monotonic, rfc3339_micro
from stowplan.edge.kube.calls import CONFLICT, FORBIDDEN, NO_LEAVE, NOT_FOUND, TOO_MANY, Caller, Outcome
from stowplan.edge.kube.lanes import Spawn
from stowplan.edge.kube.texts import event_name, truncated
from stowplan.edge.kube.transport import MERGE, Request
from stowplan.loop.effects import Note
from stowplan.objects import Pod

PAUSE, LONGEST_PAUSE = 10.0, 300.0
"""Seconds between two writes of one series, doubled each time."""
FORGET = 360.0
"""Seconds after which what is said again is news (upstream: `finishTime`)."""
MOST = 50_000
"""Series that are remembered: where there are more, one that has been written is forgotten before its time."""
LOOKED_AT = 100
"""The oldest series, among which one that can be forgotten is looked for."""
TRIES = 12
"""Upstream: `maxTriesPerEvent`."""
TERMINATED = "because it is being terminated"
SECONDS = 10.0

_encode = msgspec.json.Encoder().encode

Key = tuple[str, ...]


@dataclass(slots=True)
class _Series:
    """What has been said about one thing: how often, when last, and whether the server knows.

    `tries` in vain since it was last written, of which the last one had the text `tried`; `ticket`: its place in the queue, if
    it has one; `flying`: it is being written.
    """

    note: _Slim
    key: Key
    count: int = 1
    last: float = 0.0
    name: str = ""
    written: str | None = None
    unwritten: bool = True
    pause: float = PAUSE
    not_before: float = 0.0
    tries: int = 0
    tried: str | None = None
    ticket: int | None = None
    flying: bool = False


@dataclass(frozen=True, slots=True)
class _Slim:
    """A note without its pods, which would be kept alive."""

    namespace: str
    pod: str
    text: str
    members: Mapping[str, Any]


class Recorder:
    """Takes notes; `run` writes them. `instance`: this process, for `reportingInstance`."""

    def __init__(self, caller: Caller, instance: str, spawn: Spawn) -> None:
        self._caller, self._spawn = caller, spawn
        self._instance = instance[:128]
        self._series: dict[Key, _Series] = {}
        self._queue: list[tuple[float, int, Key]] = []
        self._number = 0
        self._draining = False
        self._news = asyncio.Event()
        self._swept = 0.0

    def take(self, note: Note) -> None:
        """Have an Event written, or counted."""
        now = monotonic()
        text, related = truncated(note.text), note.related
        reporter = note.reporter or note.pod.spec.scheduler_name
        key = (note.pod.uid, note.reason, note.action, note.tone, reporter, related.uid if related is not None else "")
        series = self._series.get(key)
        if series is None:
            if len(self._series) >= MOST and not self._forget_one():
                self._caller.observer.noted("dropped")
                return
            slim = _Slim(note.pod.namespace, note.pod.name, text, self._members(note, reporter))
            series = self._series[key] = _Series(slim, key)
        else:
            same = series.note.text == text
            series.count = series.count + 1 if same else 1
            if not same:
                series.note = _Slim(series.note.namespace, series.note.pod, text, series.note.members)
            self._caller.observer.noted("aggregated")
        series.last, series.unwritten = self._caller.clock.wall(), True
        if series.ticket is None and not series.flying:
            self._enqueue(series, max(now, series.not_before))

    async def run(self) -> None:
        """Write what is due, until cancelled."""
        while True:
            now = monotonic()
            while self._queue and self._queue[0][0] <= now:
                await self._caller.room.acquire()
                self._caller.room.release()  # there is room: order is kept, and no more tasks are begun than can be sent
                self._begin(*heapq.heappop(self._queue)[1:])
            self._sweep(now)
            self._news.clear()
            wait = self._queue[0][0] - now if self._queue else FORGET
            try:
                async with asyncio.timeout(max(wait, 0.0)):
                    await self._news.wait()
            except TimeoutError:
                continue

    async def drain(self, seconds: float) -> None:
        """Write at once what was not due yet, for so long."""
        self._draining = True
        for series in list(self._series.values()):
            if series.unwritten and not series.flying:
                self._enqueue(series, 0.0)
        try:
            async with asyncio.timeout(seconds):
                while any(each.unwritten or each.flying for each in self._series.values()):  # noqa: ASYNC110 - once, at the end
                    await asyncio.sleep(0.01)
        except TimeoutError:
            self._caller.observer.noted("dropped")

    def _enqueue(self, series: _Series, due: float) -> None:
        """Have a series written then; a place that it has in the queue is void."""
        self._number += 1
        series.ticket = self._number
        heapq.heappush(self._queue, (due, self._number, series.key))
        self._news.set()

    def _begin(self, ticket: int, key: Key) -> None:
        series = self._series.get(key)
        if series is not None and series.ticket == ticket:
            series.ticket, series.flying, series.unwritten = None, True, False
            self._spawn(self._write(series))

    async def _write(self, series: _Series) -> None:
        kept = await self._patch(series) if series.written == series.note.text else await self._create(series)
        series.flying = False
        if not kept:
            self._series.pop(series.key, None)
            return
        series.not_before = monotonic() + series.pause
        series.pause = min(series.pause * 2, LONGEST_PAUSE)
        if series.unwritten:
            self._enqueue(series, 0.0 if self._draining else series.not_before)

    async def _create(self, series: _Series) -> bool:
        """A new Event. Is there going to be a series?"""
        text, note = series.note.text, series.note
        now = self._caller.clock.wall()
        if series.tried != text:  # another try keeps its name, as the last one may have been heard
            self._number += 1
            series.name, series.tried = event_name(note.pod, int(now * 1e9) + self._number), text
        body = {
            "metadata": {"name": series.name, "namespace": note.namespace},
            "eventTime": rfc3339_micro(series.last),
            "note": text,
            **note.members,
        }
        if series.count > 1:
            body["series"] = _counted(series)
        path = f"/apis/events.k8s.io/v1/namespaces/{quote(note.namespace)}/events"
        outcome = await self._caller.patiently(Request("POST", path, body=_encode(body), seconds=SECONDS))
        if outcome.ok or outcome.status == CONFLICT:  # the latter: an attempt that was not answered has been successful
            series.written, series.tried, series.tries = text, None, 0
            self._caller.observer.noted("sent")
            return True
        return self._kept(series, outcome)

    async def _patch(self, series: _Series) -> bool:
        """Count the repetitions. Is the series to go on?"""
        note = series.note
        path = f"/apis/events.k8s.io/v1/namespaces/{quote(note.namespace)}/events/{quote(series.name)}"
        body = _encode({"series": _counted(series)})
        outcome = await self._caller.patiently(Request("PATCH", path, body=body, content_type=MERGE, seconds=SECONDS))
        if outcome.status == NOT_FOUND:  # it has expired
            series.written, series.count = None, 1
            return await self._create(series)
        if outcome.ok:
            self._caller.observer.noted("sent")
            series.tries = 0
            return True
        return self._kept(series, outcome)

    def _kept(self, series: _Series, outcome: Outcome) -> bool:
        """Is what could not be written to be tried again? A server that is down, or does not know yet who may what, comes back."""
        going = outcome.status == NOT_FOUND or TERMINATED in outcome.message or outcome.message == NO_LEAVE
        passing = outcome.answer is None or outcome.status in (FORBIDDEN, TOO_MANY) or outcome.status >= 500
        if passing and not going and series.tries < TRIES:
            series.tries += 1
            series.unwritten = True
            return True
        self._caller.observer.noted("dropped" if going else "failed")
        if not going:
            self._caller.observer.failed("Event", outcome.message)
        return False

    def _sweep(self, now: float) -> None:
        """Forget what was said long ago, now and then."""
        if now - self._swept < FORGET / 6:
            return
        self._swept = now
        wall = self._caller.clock.wall()
        old = [
            key
            for key, series in self._series.items()
            if wall - series.last > FORGET and series.ticket is None and not series.flying
        ]
        for key in old:
            del self._series[key]

    def _forget_one(self) -> bool:
        """Make room for another series; False where all of the oldest are still to be written."""
        for key, series in islice(self._series.items(), LOOKED_AT):
            if not series.unwritten and not series.flying:
                del self._series[key]
                return True
        return False

    def _members(self, note: Note, reporter: str) -> dict[str, Any]:
        """What does not change within a series."""
        members: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "type": note.tone,
            "reason": note.reason,
            "action": note.action,
            "reportingController": reporter,
            "reportingInstance": self._instance,
            "regarding": _reference(note.pod),
        }
        return members if note.related is None else members | {"related": _reference(note.related)}


def _counted(series: _Series) -> dict[str, Any]:
    return {"count": series.count, "lastObservedTime": rfc3339_micro(series.last)}


def _reference(pod: Pod) -> dict[str, str]:
    return {"apiVersion": "v1", "kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}
