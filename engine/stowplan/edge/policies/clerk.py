"""Writes down at the API server what becomes of policies: Events on the ConfigMap, and its history.

Only the replica that may write does. One that comes to lead tells of a text that is refused still, and of the policy in force if
the history does not end with it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stowplan.edge.clock import monotonic, rfc3339, rfc3339_micro
from stowplan.edge.kube.calls import NOT_FOUND, Caller
from stowplan.edge.kube.recorder import truncated
from stowplan.edge.kube.transport import Request
from stowplan.edge.policies import history
from stowplan.edge.policies.configmap import Reference
from stowplan.edge.policies.history import decode_kept
from stowplan.edge.policies.keeper import Accepted, Keeper, Refusal, headline
from stowplan.text import counted

CONTROLLER = "stowplan.io/scheduler"
REJECTED, RELOADED = "PolicyRejected", "PolicyReloaded"
TICK = 1.0
"""Seconds between two looks at whether this process may write."""
RETRY = 5.0
"""Seconds after which a history that could not be written is tried again."""
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
    _events: deque[tuple[dict[str, str], str, str, str]] = field(default_factory=lambda: deque(maxlen=MOST))
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _said: Refusal | None = None
    _recorded: str = ""
    _not_before: float = 0.0
    _number: int = 0

    def accepted(self, now: Accepted) -> None:
        """Tell that a policy is in force, unless it is the first of this process."""
        if now.generation:
            told = f"generation {now.generation}, hash {now.digest}, is in force"
            if now.warnings:
                told += f"; {counted(len(now.warnings), 'warning')}: {headline(now.warnings[-1])}"
            self._tell(now.offer.about, "Normal", RELOADED, told)
        self._news.set()

    def rejected(self, refusal: Refusal, now: Accepted | None) -> None:
        """Tell why a text is not in force, and what is."""
        stays = "" if now is None else f"; generation {now.generation}, hash {now.digest}, stays in force"
        if self.caller.may_write():
            self._said = refusal
        first, *more = refusal.errors
        cause = headline(first) + (f" (and {len(more)} more)" if more else "")
        self._tell(refusal.offer.about, "Warning", REJECTED, cause + stays)

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
        if not self.caller.may_write():
            return
        refused = self.keeper.refused
        if refused is not None and refused is not self._said:
            self.rejected(refused, self.keeper.in_force)
        while self._events:
            await self._post(*self._events.popleft())
        now = self.keeper.in_force
        if now is not None and now.digest != self._recorded and now.offer.source.text and monotonic() >= self._not_before:
            if await self._record(now):
                self._recorded = now.digest
            else:
                self._not_before = monotonic() + RETRY

    def _tell(self, about: Any, tone: str, reason: str, text: str) -> None:
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

    async def _record(self, now: Accepted) -> bool:
        """Add the policy in force to the history unless it is the newest there; False where that is to be tried again."""
        place = history.companion(self.reference)
        path = history.path_of(place)
        found = await self.caller.patiently(Request("GET", path, seconds=SECONDS))
        if found.answer is None or not (found.ok or found.status == NOT_FOUND):
            self.caller.observer.failed("history", f"{place} cannot be read: {found.message}")
            return False
        kept = decode_kept(found.answer.body) if found.ok else None
        known = history.versions(kept)
        if known and known[-1].entry.hash == now.digest:
            return True
        warnings = [headline(each) for each in now.warnings[:10]]
        known = history.with_version(known, now.digest, now.offer.source.text, rfc3339(now.since), warnings)
        method, target = ("POST", place.folder) if kept is None else ("PUT", path)
        written = await self.caller.patiently(Request(method, target, body=history.body(place, kept, known), seconds=SECONDS))
        if not written.ok:
            self.caller.observer.failed("history", f"{place} cannot be written: {written.message}")
        return written.ok
