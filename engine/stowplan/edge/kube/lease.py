"""Who leads: the one that holds the Lease (upstream: `leaderelection` of client-go, with the same periods).

Leadership ends by this process' own monotonic clock, `renew_deadline` after the last renewal that succeeded *was sent*, which
is before `lease_duration` has passed for anybody else: no answer is needed for that, so a request that hangs cannot prolong
it. Others' leases are judged by how long they have not changed under our eyes, never by the times they state.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from stowplan.edge.clock import Clock, monotonic, rfc3339_micro
from stowplan.edge.kube.calls import NOT_FOUND
from stowplan.edge.kube.reflector import message_of
from stowplan.edge.kube.texts import event_name
from stowplan.edge.kube.transport import Answer, Request, Transport, TransportError
from stowplan.edge.observer import Observer
from stowplan.profile.model import LeaderElection

JITTER = 1.2
NEVER = float("-inf")
RELEASES = 3
MOMENT = 0.25
"""Seconds in which servers usually answer."""
STANDSTILL = 0.5
"""Seconds of waking up late that show that this process stood still."""


class _Spec(msgspec.Struct, rename="camel", omit_defaults=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Record(msgspec.Struct, rename="camel"):
    """A Lease: its metadata are kept as they are."""

    metadata: dict[str, Any]
    spec: _Spec = msgspec.field(default_factory=_Spec)


_decode = msgspec.json.Decoder(_Record).decode
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Seat:
    """What is competed for, and under which name."""

    election: LeaderElection
    identity: str

    @property
    def lease_seconds(self) -> float:
        return self.election.lease_duration.total_seconds()

    @property
    def deadline_seconds(self) -> float:
        return self.election.renew_deadline.total_seconds()

    @property
    def retry_seconds(self) -> float:
        return self.election.retry_period.total_seconds()


class Lease:
    """Competes for a lease. `run` says when it is won and when it is lost; `valid` is true while this process may act."""

    def __init__(self, seat: Seat, transport: Transport, clock: Clock, observer: Observer) -> None:
        self._seat, self._transport, self._clock, self._observer = seat, transport, clock, observer
        self._until = NEVER
        self._record: _Record | None = None
        self._known: _Spec | None = None
        self._seen = NEVER
        self._missing = self._left = False
        self.holder = ""
        self.renewed = NEVER
        self._begun: float | None = None
        """when the attempt began that is on its way, if there is one"""

    def valid(self) -> bool:
        """May this process act, as of now?"""
        return monotonic() < self._until

    def urgent(self) -> bool:
        """Is it worth waiting a moment for the answer that is to come? Whoever computes keeps the event loop from it."""
        return self._begun is not None and monotonic() < self._begun + MOMENT

    async def run(self, told: Callable[[bool], None]) -> None:
        """Tell when the lease is won, and return once it is lost, which has been told as well."""
        await self._win()
        self._observer.lease(True)
        told(True)
        try:
            await self._hold()
        finally:
            self._until = NEVER
            self._observer.lease(False)
            told(False)

    async def release(self) -> None:
        """Give the lease up for the next one to take at once. `run` must have ended; nothing may be written from now on."""
        self._until, self._left = NEVER, True
        with contextlib.suppress(TransportError, msgspec.MsgspecError):
            for _ in range(RELEASES):  # a renewal of which nobody waits for the answer may come in between
                record = await self._read()
                if record is None or self.holder != self._seat.identity:
                    return
                now = rfc3339_micro(self._clock.wall())
                spec = _Spec("", 1, now, now, record.spec.lease_transitions)
                if (await self._put(record, spec)).ok:
                    return

    async def _win(self) -> None:
        while True:
            if await self._attempt():
                return
            await asyncio.sleep(self._clock.jittered(self._seat.retry_seconds, JITTER))

    async def _hold(self) -> None:
        """Renew until the time is over, or somebody else has the lease.

        Where this process stood still for longer than that, it has done nothing meanwhile: it may go on if one more attempt
        shows that nobody else has had the lease. Until then it may not act.
        """
        while True:
            due = min(monotonic() + self._seat.retry_seconds, self._until)
            await asyncio.sleep(due - monotonic())
            stood_still = monotonic() - due > STANDSTILL
            end = max(self._until, monotonic() + self._patience()) if stood_still else self._until
            if monotonic() >= end or not await self._kept(end):
                return

    async def _kept(self, end: float) -> bool:
        """Try once, until then at the latest; False if the lease is lost."""
        terms = self._terms
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(end):
                if not await self._attempt() and self.holder not in ("", self._seat.identity):
                    return False
        return self.valid() and self._terms == terms

    @property
    def _terms(self) -> int:
        """How often the lease has changed hands."""
        return 0 if self._known is None else self._known.lease_transitions or 0

    async def _attempt(self) -> bool:
        """Acquire or renew once. Never raises for what servers and networks do."""
        begun, held = monotonic(), False
        self._begun = begun
        try:
            held = await self._acquire(begun)
        except (TransportError, msgspec.MsgspecError) as error:
            self._observer.failed("Lease", str(error) or type(error).__name__)
        finally:
            self._begun = None
            self._observer.renewed(held, monotonic() - begun)
        if held:
            self.renewed = monotonic()
        return held

    async def _acquire(self, begun: float) -> bool:
        record = self._record if self.valid() else None
        if record is None:
            record = await self._read()
            if record is None:
                return self._missing and await self._create()
        mine = self.holder == self._seat.identity
        if not mine and self.holder and begun < self._seen + (record.spec.lease_duration_seconds or 0):
            return False
        sent, now = monotonic(), rfc3339_micro(self._clock.wall())
        acquired = record.spec.acquire_time if mine else now
        transitions = (record.spec.lease_transitions or 0) + (0 if mine else 1)
        spec = _Spec(self._seat.identity, round(self._seat.lease_seconds), acquired, now, transitions)
        return self._won(await self._put(record, spec), sent)

    async def _read(self) -> _Record | None:
        """The lease as it is; None if there is none, or no answer that says so."""
        answer = await self._send(Request("GET", self._path(), seconds=self._patience()))
        self._missing = answer.status == NOT_FOUND
        if self._missing or not self._ok(answer):
            return None
        record = _decode(answer.body)
        self._see(record)
        return record

    async def _create(self) -> bool:
        sent, now = monotonic(), rfc3339_micro(self._clock.wall())
        spec = _Spec(self._seat.identity, round(self._seat.lease_seconds), now, now, 0)
        metadata = {"name": self._seat.election.resource_name, "namespace": self._seat.election.resource_namespace}
        body = _body(metadata, spec)
        return self._won(await self._send(Request("POST", self._folder(), body=body, seconds=self._patience())), sent)

    async def _put(self, record: _Record, spec: _Spec) -> Answer:
        """The version in the record's metadata lets this fail if somebody else was faster."""
        return await self._send(Request("PUT", self._path(), body=_body(record.metadata, spec), seconds=self._patience()))

    async def _send(self, request: Request) -> Answer:
        try:
            return await self._transport.request(request)
        except TransportError:
            self._record = None  # whoever holds it now, the next attempt asks
            raise

    def _won(self, answer: Answer, sent: float) -> bool:
        if not self._ok(answer):
            self._record = None
            return False
        self._see(_decode(answer.body))
        if not self._left:
            self._until = sent + self._seat.deadline_seconds
        return True

    def _see(self, record: _Record) -> None:
        """Note who holds the lease, and when that was last news."""
        if self._known != record.spec:
            self._known, self._seen = record.spec, monotonic()
        self._record, self.holder = record, record.spec.holder_identity or ""

    def _ok(self, answer: Answer) -> bool:
        if not answer.ok and answer.status != 409:
            self._observer.failed("Lease", f"{answer.status}: {message_of(answer)}")
        return answer.ok

    def _patience(self) -> float:
        """How long to wait for an answer: two attempts must fit into the deadline."""
        return max(self._seat.deadline_seconds / 2, 1.0)

    def _folder(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self._seat.election.resource_namespace}/leases"

    def _path(self) -> str:
        return f"{self._folder()}/{self._seat.election.resource_name}"


def _body(metadata: dict[str, Any], spec: _Spec) -> bytes:
    return _encode({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec})


def announcement(seat: Seat, reporter: str, instance: str, now: float) -> Request:
    """The Event that tells users who leads from now on."""
    election = seat.election
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    body = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": event_name(election.resource_name, int(now * 1e9)), "namespace": election.resource_namespace},
        "eventTime": rfc3339_micro(now),
        "type": "Normal",
        "reason": "LeaderElection",
        "action": "LeaderElection",
        "note": f"{seat.identity} became leader",
        "reportingController": reporter,
        "reportingInstance": instance[:128],
        "regarding": lease | {"namespace": election.resource_namespace, "name": election.resource_name},
    }
    path = f"/apis/events.k8s.io/v1/namespaces/{election.resource_namespace}/events"
    return Request("POST", path, body=_encode(body), seconds=10.0)
