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
from stowplan.edge.kube.calls import NOT_FOUND, Caller
from stowplan.edge.kube.recorder import truncated
from stowplan.edge.kube.transport import Request
from stowplan.edge.policies import history
from stowplan.edge.policies.configmap import Reference
from stowplan.edge.policies.history import Entry, Kept, Version, decode_kept
from stowplan.edge.policies.keeper import Accepted, Keeper, Refusal, headline
from stowplan.text import counted

CONTROLLER = "stowplan.io/scheduler"
REJECTED, RELOADED = "PolicyRejected", "PolicyReloaded"
TICK = 1.0
"""Seconds between two looks at whether this process may write."""
RETRY, LOOK = 5.0, 30.0
"""Seconds after which a history is written again that could not be, and looked at again that did not have the policy."""
SECONDS = 10.0
MOST = 50
"""Events that wait; older ones are dropped."""

_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Clerk:
    """A `Listener` of the keeper; `run` writes. `instance`: this process, as Events name it."""

    keeper: Keeper
    reference: Reference
    caller: Caller
    instance: str
    _events: deque[tuple[dict[str, str], str, str, Callable[[], str]]] = field(default_factory=lambda: deque(maxlen=MOST))
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _said: Refusal | None = None
    _recorded: str = ""
    _not_before: float = 0.0
    _look_at: float = 0.0
    _number: int = 0

    def accepted(self, now: Accepted) -> None:
        """Tell that a policy is in force, unless it is the first of this process."""
        if now.generation:
            more = f"; {counted(len(now.warnings), 'warning')}: {headline(now.warnings[-1])}" if now.warnings else ""
            self._tell(now.offer.about, "Normal", RELOADED, lambda: f"{self.keeper.named(now)} is in force{more}")
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
            await self.write()
            self._news.clear()
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
        if now is not None and now.offer.source.text:
            if may and now.digest != self._recorded and monotonic() >= self._not_before:
                await self._recording(now)
            elif not may and now.digest not in self.keeper.numbers and monotonic() >= self._look_at:
                self._look_at = monotonic() + LOOK
                await self._known()
        while self._events and self.caller.may_write():
            about, tone, reason, text = self._events.popleft()
            await self._post(about, tone, reason, text())

    async def _recording(self, now: Accepted) -> None:
        if await self._record(now):
            self._recorded = now.digest
        else:
            self._not_before = monotonic() + RETRY

    def _tell(self, about: Any, tone: str, reason: str, text: Callable[[], str]) -> None:
        """`text` is asked when it is written: by then the policy has its number."""
        if about is not None and self.caller.may_write():
            self._events.append((dict(about), tone, reason, text))
            self._news.set()

    async def _post(self, about: dict[str, str], tone: str, reason: str, text: str) -> None:
        self._number += 1
        wall = self.caller.clock.wall()
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{about['name']}.{int(wall * 1e6):x}{self._number:x}", "namespace": about["namespace"]},
            "eventTime": rfc3339_micro(wall),
            "type": tone,
            "reason": reason,
            "action": "Reload",
            "note": truncated(text),
            "reportingController": CONTROLLER,
            "reportingInstance": self.instance[:128],
            "regarding": about,
        }
        path = f"/apis/events.k8s.io/v1/namespaces/{about['namespace']}/events"
        outcome = await self.caller.patiently(Request("POST", path, body=_encode(event), seconds=SECONDS))
        self.caller.observer.noted("sent" if outcome.ok else "failed")
        if not outcome.ok:
            self.caller.observer.failed("Event", outcome.message)

    async def _known(self) -> tuple[Kept | None, tuple[Version, ...]] | None:
        """The history, which tells the numbers of policies; None where it cannot be read."""
        place = history.companion(self.reference)
        found = await self.caller.patiently(Request("GET", history.path_of(place), seconds=SECONDS))
        if found.answer is None or not (found.ok or found.status == NOT_FOUND):
            self.caller.observer.failed("history", f"{place} cannot be read: {found.message}")
            return None
        kept = decode_kept(found.answer.body) if found.ok else None
        known = history.versions(kept)
        self.keeper.numbers = history.numbers(known)
        return kept, known

    async def _record(self, now: Accepted) -> bool:
        """Put the policy in force at the end of the history; False where that is to be tried again."""
        found = await self._known()
        if found is None:
            return False
        kept, known = found
        if known and known[-1].entry.hash == now.digest:
            return True
        known = history.with_version(known, _entry(now, known), now.offer.source.text)
        place = history.companion(self.reference)
        method, target = ("POST", place.folder) if kept is None else ("PUT", history.path_of(place))
        written = await self.caller.patiently(Request(method, target, body=history.body(place, kept, known), seconds=SECONDS))
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
