"""Keeps the policy: what is in force, what was refused and why, and the way of a new text into force.

Checking happens beside the loop, in a thread; the trial on the live cluster and the swap happen between two decisions. Nothing that
is wrong with a text, and nothing that goes wrong while it is tried, takes the policy in force away.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from stowplan.edge.policies import names
from stowplan.edge.policies.examine import Checked, Examiner, Offer
from stowplan.edge.policies.naming import named
from stowplan.edge.policies.trial import tried
from stowplan.edge.policies.worker import worked
from stowplan.loop.events import PolicyChanged
from stowplan.policy.compile import Policy, PolicyError
from stowplan.state import Store
from stowplan.text import Code, Diagnostic, Severity, render
from stowplan.text.moments import rfc3339

PATIENCE, LONGEST = 2.0, 15.0
"""Seconds that a text has to be checked in while a newer one waits, and at all; large policies take one or two."""
LOOK = 0.1
"""Seconds between two looks at whether the cluster is known."""
Found = TypeVar("Found")
Overtaken = Callable[[], Awaitable[object]]
"""Waits for a newer text."""
Result = str
ACCEPTED, REJECTED, UNCHANGED = "accepted", "rejected", "unchanged"


@dataclass(frozen=True, slots=True)
class Accepted:
    """A policy that came into force. `generation`: how many this process had before; `since` in epoch seconds."""

    policy: Policy
    offer: Offer
    digest: str
    generation: int
    since: float
    warnings: tuple[Diagnostic, ...] = ()
    tried: bool = False
    """the warnings include what the live cluster showed"""

    @property
    def source(self) -> str:
        """Where it was written."""
        return self.offer.source.name or "kube-scheduler's defaults"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A text that was not put into force, and everything that is wrong with it."""

    offer: Offer
    time: float
    diagnostics: tuple[Diagnostic, ...]

    @property
    def errors(self) -> list[Diagnostic]:
        return [finding for finding in self.diagnostics if finding.is_error]

    @property
    def reason(self) -> str:
        """The first error in one line, with its place, and how many more there are."""
        first, *more = self.errors
        return headline(first) + (f" (and {len(more)} more)" if more else "")

    def to_json(self) -> dict[str, Any]:
        """JSON types."""
        return {
            "source": self.offer.source.name,
            "time": rfc3339(self.time),
            "reason": self.reason,
            "errors": [headline(each) for each in self.errors],
        }


def headline(finding: Diagnostic) -> str:
    """`source:line:column: severity[code]: what is wrong`."""
    return render(finding).partition("\n")[0]


class Beside(Protocol):
    """Runs a function where it does not hold up the loop, and gives it up when it is cancelled."""

    def __call__(self, work: Callable[[], Found], /) -> Awaitable[Found]: ...


class Listener(Protocol):
    """Who is told what became of a text. Must not raise. `tried`: what the live cluster has shown of the policy of a start."""

    def accepted(self, now: Accepted) -> None: ...

    def tried(self, now: Accepted, found: tuple[Diagnostic, ...]) -> None: ...

    def rejected(self, refusal: Refusal, now: Accepted | None) -> None: ...

    def lost(self, why: str) -> None: ...


@dataclass(slots=True)
class Live:
    """Where a policy is tried and swapped in, once there is a loop."""

    store: Store
    tell: Callable[[PolicyChanged], None]


@dataclass(slots=True)
class Keeper:
    """What is in force and what was refused. `wall`: epoch seconds; `first` is set with the first policy that is accepted.

    To be made within a running asyncio loop.
    """

    examiner: Examiner
    wall: Callable[[], float]
    listeners: list[Listener] = field(default_factory=list)
    beside: Beside = worked
    in_force: Accepted | None = None
    refused: Refusal | None = None
    trouble: str = ""
    """why there is nothing to read at the moment"""
    results: Counter[Result] = field(default_factory=Counter)
    first: asyncio.Event = field(default_factory=asyncio.Event)
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    """set once a text, or that there is none, has been dealt with"""
    live: Live | None = None
    numbers: dict[str, int] = field(default_factory=dict)
    """versions in the history by hash, as far as they are known"""
    _served: dict[str, None] = field(default_factory=dict)
    """scheduler names that this process has served"""
    _offered: str | None = None
    """the text that was looked at last, good or bad"""

    async def offer(self, offer: Offer, overtaken: Overtaken | None = None) -> None:
        """Put a text into force if nothing is wrong with it; one that was offered last is not looked at again.

        One that takes too long to check is refused: sooner, where `overtaken` says that a newer one waits.
        """
        self.trouble = ""
        if offer.wrong is None and offer.source.text == self._offered:
            if self.in_force is not None and self.in_force.offer.source.text == self._offered:
                self.in_force = replace(self.in_force, offer=offer)  # the same text may stand elsewhere now
            return
        found = await self._examined(offer, overtaken)
        self._offered = offer.source.text if offer.wrong is None else None
        self.heard.set()
        if isinstance(found, PolicyError):
            self._reject(offer, found)
        elif self.in_force is not None and found.digest == self.in_force.digest:
            self.results[UNCHANGED] += 1
            self.in_force, self.refused = replace(self.in_force, offer=offer), None
        else:
            self._accept(offer, found)

    def lost(self, why: str) -> None:
        """There is nothing to read any more: what is in force stays."""
        self._offered = None
        self.heard.set()
        if why != self.trouble:
            self.trouble = why
            for listener in self.listeners:
                listener.lost(why)

    def start(self, offer: Offer, checked: Checked) -> None:
        """Put the first policy into force, which somebody else has checked; what was refused before stays refused."""
        refused = self.refused
        self._accept(offer, checked, first=True)
        self.refused = refused
        if refused is None:
            self._offered = offer.source.text or None

    async def try_start(self, synced: Callable[[], bool]) -> None:
        """Try the policy of a start as soon as the cluster is known, as later ones are before they come into force. It stays."""
        while not synced():  # noqa: ASYNC110 - many lists make one answer
            await asyncio.sleep(LOOK)
        now, live = self.in_force, self.live
        if now is None or live is None or now.tried:
            return
        try:
            found = tried(now.policy, live.store)
        except Exception as error:  # noqa: BLE001 - it is in force, and every decision says the same
            found = (_fault(f"fails on the live cluster: {type(error).__name__}: {error}", Severity.WARNING),)
        self.in_force = now = replace(now, warnings=now.warnings + found, tried=True)
        for listener in self.listeners if found else ():
            listener.tried(now, found)

    def unserved(self) -> dict[str, int]:
        """Scheduler names that this process has served and the policy has no more, and how many pods wait for each."""
        now = () if self.in_force is None else names.served(self.in_force.policy)
        gone = [name for name in self._served if name not in now]
        return names.waiting(gone, None if self.live is None else self.live.store)

    def named(self, now: Accepted) -> str:
        """What a policy that was in force is called."""
        return named(now.generation, now.digest, self.numbers.get(now.digest))

    def waits_for(self) -> str:
        """Why there is no policy yet, without a word about that there is none."""
        refused = "" if self.refused is None else self.refused.reason
        return "; ".join(filter(None, (refused, self.trouble))) or "nothing was read yet"

    def note(self) -> str:
        """One line about what is in force, and what is wrong with what should be."""
        now = self.in_force
        parts = ["no policy yet" if now is None else f"{self.named(now)}, from {now.source}"]
        if self.refused is not None:
            parts.append(f"rejected: {self.refused.reason}")
        return "; ".join(filter(None, (*parts, self.trouble, names.shown(self.unserved()))))

    def missing(self) -> str:
        """Why there is no policy; "" where there is one."""
        return self.note() if self.in_force is None else ""

    async def _examined(self, offer: Offer, overtaken: Overtaken | None) -> Checked | PolicyError:
        running = None if self.in_force is None else self.in_force.policy.configuration
        try:
            found = await self._in_time(lambda: self.examiner.examine(offer, running), overtaken)
            # meanwhile the last good policy may have come into force, which this one has to go with
            return found if running is not None or self.in_force is None else await self._examined(offer, overtaken)
        except PolicyError as error:
            return error
        except Exception as error:  # noqa: BLE001 - a text must not be able to stop the scheduler
            return PolicyError([_fault(f"cannot be read: {type(error).__name__}: {error}")])

    async def _in_time(self, check: Callable[[], Checked], overtaken: Overtaken | None) -> Checked:
        """The text, checked. Raises PolicyError also where that takes too long."""
        checking = asyncio.ensure_future(self.beside(check))
        waits: set[asyncio.Future[Any]] = {checking}
        try:
            await asyncio.wait(waits, timeout=PATIENCE)
            if not checking.done():
                waits |= set() if overtaken is None else {asyncio.ensure_future(overtaken())}
                await asyncio.wait(waits, timeout=LONGEST - PATIENCE, return_when=asyncio.FIRST_COMPLETED)
            if checking.done():
                return checking.result()
        finally:
            for each in waits:
                each.cancel()
        raise PolicyError([_fault("given up: it takes too long to check; shorten it, or its rules")])

    def _accept(self, offer: Offer, checked: Checked, *, first: bool = False) -> None:
        warnings = tuple(each for each in checked.policy.warnings if each.severity is not Severity.INFO)
        if self.live is not None and not first:
            try:
                warnings += tried(checked.policy, self.live.store)
            except Exception as error:  # noqa: BLE001 - better here than in the first decision
                self._reject(offer, PolicyError([_fault(f"failed on the live cluster: {type(error).__name__}: {error}")]))
                return
        if self.in_force is not None:
            store = None if self.live is None else self.live.store
            warnings += tuple(names.removed(self.in_force.policy, checked.policy, store))
        generation = 0 if self.in_force is None else self.in_force.generation + 1
        now = Accepted(checked.policy, offer, checked.digest, generation, self.wall(), warnings, self.live is not None)
        self.in_force, self.refused = now, None
        self._served |= dict.fromkeys(names.served(now.policy))
        if not first:
            self.results[ACCEPTED] += 1
        if self.live is not None:
            self.live.tell(PolicyChanged(now.policy, now.generation, now.digest))
        for listener in self.listeners:
            listener.accepted(now)
        self.first.set()

    def _reject(self, offer: Offer, error: PolicyError) -> None:
        self.results[REJECTED] += 1
        self.refused = Refusal(offer, self.wall(), error.diagnostics)
        for listener in self.listeners:
            listener.rejected(self.refused, self.in_force)


def _fault(text: str, severity: Severity = Severity.ERROR) -> Diagnostic:
    return Diagnostic(Code.RULES, severity, text)


def described(keeper: Keeper) -> Mapping[str, Any]:
    """What is in force, was refused and is missing, as JSON types."""
    now = keeper.in_force
    shown: dict[str, Any] = {"results": dict(keeper.results)}
    if now is not None:
        if now.digest in keeper.numbers:
            shown["version"] = keeper.numbers[now.digest]
        shown |= {"since": rfc3339(now.since), "warnings": [headline(each) for each in now.warnings]}
    if keeper.refused is not None:
        shown["rejected"] = keeper.refused.to_json()
    if keeper.trouble:
        shown["trouble"] = keeper.trouble
    if unserved := keeper.unserved():
        shown["unserved"] = unserved
    return shown
