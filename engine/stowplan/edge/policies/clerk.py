"""Writes down at the API server what becomes of policies: Events on the ConfigMap, and its history.

Only the replica that may write does. One that comes to lead tells of a text that is refused still, and of the policy in force if
the history does not end with it. The others look the number of their policy up there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stowplan.edge.clock import monotonic, rfc3339, rfc3339_micro
from stowplan.edge.kube.calls import CONFLICT, NOT_FOUND, TOO_MANY, Caller
from stowplan.edge.kube.texts import event_name, truncated
from stowplan.edge.kube.transport import Request
from stowplan.edge.policies import history
from stowplan.edge.policies.configmap import Reference
from stowplan.edge.policies.examine import digest_of
from stowplan.edge.policies.history import Entry, Kept, Known, Version, decode_kept
from stowplan.edge.policies.keeper import Accepted, Keeper, Refusal, headline
from stowplan.text import Code, Diagnostic, counted

CONTROLLER = "stowplan.io/scheduler"
REJECTED, RELOADED, FOUND, REMOVED = "PolicyRejected", "PolicyReloaded", "PolicyWarning", "SchedulerNameRemoved"
TICK = 1.0
"""Seconds between two looks at whether this process may write."""
RETRY, LOOK = 5.0, 30.0
"""Seconds after which a history is written again that could not be, and looked at again that did not have the policy."""
SECONDS = 10.0
MOST = 50
"""Events that wait; older ones are dropped."""

_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Told:
    """An Event that is still to be written. `text` is asked when that is first tried: by then the policy has its number."""

    about: dict[str, str]
    tone: str
    reason: str
    text: Callable[[], str]
    body: bytes = b""


@dataclass(slots=True)
class Clerk:
    """A `Listener` of the keeper; `run` writes. `instance`: this process, as Events name it."""

    keeper: Keeper
    reference: Reference
    caller: Caller
    instance: str
    _events: deque[Told] = field(default_factory=lambda: deque(maxlen=MOST))
    _silent_until: float = 0.0
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _said: Refusal | None = None
    _recorded: str = ""
    _not_before: float = 0.0
    _look_at: float = 0.0
    _number: int = 0
    _wrong: tuple[str, ...] = ()
    """what was told of the history that is kept"""
    _found: tuple[Accepted, tuple[Diagnostic, ...]] | None = None
    """what is still to be told of the policy of a start"""

    def accepted(self, now: Accepted) -> None:
        """Tell that a policy is in force, unless it is the first of this process."""
        if now.generation:
            more = f"; {counted(len(now.warnings), 'warning')}: {headline(now.warnings[-1])}" if now.warnings else ""
            self._tell(now.offer.about, "Normal", RELOADED, lambda: f"{self.keeper.named(now)} is in force{more}")
        for each in now.warnings:
            if each.code is Code.NAME_REMOVED:
                self._tell(now.offer.about, "Warning", REMOVED, lambda each=each: headline(each))  # type: ignore[misc]
        self._news.set()

    def tried(self, now: Accepted, found: tuple[Diagnostic, ...]) -> None:
        """Tell what the live cluster has shown of the policy of a start, now or once this process leads."""
        self._found = (now, found)
        self._recorded = ""  # the history has a line about it without these
        self._news.set()

    def rejected(self, refusal: Refusal, now: Accepted | None) -> None:
        """Tell why a text is not in force, and what is."""
        if self.caller.may_write():
            self._said = refusal
        first, *more = refusal.errors
        cause = headline(first) + (f" (and {len(more)} more)" if more else "")

        def told() -> str:
            return cause if now is None else f"{cause}; {self.keeper.named(now)} stays in force"

        self._tell(refusal.offer.about, "Warning", REJECTED, told)

    def lost(self, why: str) -> None:
        """Nothing: an object that is gone has no Events."""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._news.clear()
            await self.write()
            try:
                async with asyncio.timeout(TICK):
                    await self._news.wait()
            except TimeoutError:
                continue

    async def write(self) -> None:
        """Write what is to be written, if this process may."""
        may, now = self.caller.may_write(), self.keeper.in_force
        if may:
            refused = self.keeper.refused
            if refused is not None and refused is not self._said:
                self.rejected(refused, now)
            if self._found is not None:
                self._tell_found(*self._found)
        if now is not None and now.offer.source.text:
            if may and now.digest != self._recorded and monotonic() >= self._not_before:
                await self._recording(now)
            elif not may and now.digest not in self.keeper.numbers and monotonic() >= self._look_at:
                self._look_at = monotonic() + LOOK
                await self._known()
        # what came into force meanwhile gets its number first
        while self._events and self.caller.may_write() and self.keeper.in_force is now:
            if monotonic() < self._silent_until:
                break
            if not await self._post(self._events[0]):
                self._silent_until = monotonic() + RETRY
            else:
                self._events.popleft()

    def _tell_found(self, now: Accepted, found: tuple[Diagnostic, ...]) -> None:
        self._found = None
        if now is self.keeper.in_force:
            first, *more = found
            also = f" (and {len(more)} more)" if more else ""
            self._tell(now.offer.about, "Warning", FOUND, lambda: f"{self.keeper.named(now)}: {headline(first)}{also}")

    async def _recording(self, now: Accepted) -> None:
        if await self._record(now):
            self._recorded = now.digest
        else:
            self._not_before = monotonic() + RETRY

    def _tell(self, about: Any, tone: str, reason: str, text: Callable[[], str]) -> None:
        if about is not None and self.caller.may_write():
            self._events.append(Told(dict(about), tone, reason, text))
            self._news.set()

    async def _post(self, told: Told) -> bool:
        """Write an Event; False where that is to be tried again, under the same name: it may be there without our being told."""
        told.body = told.body or self._event(told)
        path = f"/apis/events.k8s.io/v1/namespaces/{told.about['namespace']}/events"
        outcome = await self.caller.patiently(Request("POST", path, body=told.body, seconds=SECONDS))
        written = outcome.ok or outcome.status == CONFLICT
        self.caller.observer.noted("sent" if written else "failed")
        if not written:
            self.caller.observer.failed("Event", outcome.message)
        return written or (400 <= outcome.status < 500 and outcome.status != TOO_MANY)

    def _event(self, told: Told) -> bytes:
        self._number += 1
        wall, about = self.caller.clock.wall(), told.about
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": event_name(about["name"], int(wall * 1e9) + self._number), "namespace": about["namespace"]},
            "eventTime": rfc3339_micro(wall),
            "type": told.tone,
            "reason": told.reason,
            "action": "Reload",
            "note": truncated(told.text()),
            "reportingController": CONTROLLER,
            "reportingInstance": self.instance[:128],
            "regarding": about,
        }
        return _encode(event)

    async def _known(self) -> tuple[Kept | None, Known] | None:
        """The history, which tells the numbers of policies; None where it cannot be read."""
        place = history.companion(self.reference)
        found = await self.caller.patiently(Request("GET", history.path_of(place), seconds=SECONDS))
        if found.answer is None or not (found.ok or found.status == NOT_FOUND):
            self.caller.observer.failed("history", f"{place} cannot be read: {found.message}")
            return None
        kept = decode_kept(found.answer.body) if found.ok else None
        known = history.known(kept, lambda _: "")
        if known.wrong:  # then texts tell what they are, which takes long
            known = await self.keeper.beside(lambda: history.known(kept, digest_of))
        if known.wrong and known.wrong != self._wrong:
            self.caller.observer.failed("history", f"{place}: {'; '.join(known.wrong)}")
        self._wrong = known.wrong
        self.keeper.numbers = history.numbers(known.versions)
        return kept, known

    async def _record(self, now: Accepted) -> bool:
        """Put the policy in force at the end of the history; False where that is to be tried again."""
        found = await self._known()
        if found is None:
            return False
        kept, before = found
        entry, last = _entry(now, before.versions), before.versions[-1].entry if before.versions else None
        if last is not None and last.hash == now.digest and not before.wrong:
            if set(entry.warnings) <= set(last.warnings):
                return True
            entry = msgspec.structs.replace(entry, time=last.time)  # only what is known of it is new
        known = history.with_version(before.versions, entry, now.offer.source.text, before.highest)
        place = history.companion(self.reference)
        method, target = ("POST", place.folder) if kept is None else ("PUT", history.path_of(place))
        body = history.body(place, kept, before, known)
        written = await self.caller.patiently(Request(method, target, body=body, seconds=SECONDS))
        if written.ok:
            self.keeper.numbers = history.numbers(known)
        else:
            self.caller.observer.failed("history", f"{place} cannot be written: {written.message}")
        return written.ok


def _entry(now: Accepted, known: Sequence[Version]) -> Entry:
    """A line about the policy in force. What the live cluster showed before still counts if it has not been looked at again."""
    entry = Entry(0, now.digest, rfc3339(now.since), "", tuple(headline(each) for each in now.warnings))
    before = next((each.entry for each in known if each.entry.hash == now.digest), None)
    if before is not None and not now.tried:
        entry = msgspec.structs.replace(entry, warnings=tuple(dict.fromkeys((*entry.warnings, *before.warnings))))
    barren = entry.barren  # must not be among those that are left out
    ranked = tuple(dict.fromkeys((barren, *entry.warnings))) if barren else entry.warnings
    return msgspec.structs.replace(entry, warnings=ranked[: history.MOST_WARNINGS])
