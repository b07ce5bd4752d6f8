"""One write to the API server, tried again where that helps, and never without leave.

Leave is asked for immediately before every attempt: a process that has lost its lease sends nothing more. What comes back
says whether the write may have taken effect without our being told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from stowplan.edge.clock import Clock
from stowplan.edge.kube.reflector import message_of
from stowplan.edge.kube.transport import Answer, Request, Transport, TransportError, UnsentError
from stowplan.edge.observer import Observer

ATTEMPTS = 4
FIRST_PAUSE, FACTOR, JITTER = 0.01, 5.0, 0.1
"""Upstream: `retry.DefaultBackoff`."""
CONFLICT, NOT_FOUND, FORBIDDEN, TOO_MANY = 409, 404, 403, 429
NO_LEAVE = "this process does not lead any more"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a call.

    answer    the last answer, None where there was none
    uncertain it may have taken effect, though no answer says so
    message   why it failed, "" if it did not
    """

    answer: Answer | None
    uncertain: bool
    message: str = ""

    @property
    def ok(self) -> bool:
        return self.answer is not None and self.answer.ok

    @property
    def status(self) -> int:
        return 0 if self.answer is None else self.answer.status


class Limit(Protocol):
    """Lets requests through at some rate."""

    async def pass_(self) -> None:
        """Returns when the next request may go."""
        ...


@dataclass(slots=True)
class Caller:
    """Sends requests, a bounded number at a time. `may_write`: whether this process may act, as of now."""

    transport: Transport
    clock: Clock
    observer: Observer
    may_write: Callable[[], bool]
    room: asyncio.Semaphore
    limit: Limit | None = None

    async def once(self, request: Request) -> Outcome:
        """One attempt."""
        async with self.room:
            if self.limit is not None:
                await self.limit.pass_()
            if request.method != "GET" and not self.may_write():
                return Outcome(None, False, NO_LEAVE)
            try:
                answer = await self.transport.request(request)
            except UnsentError as error:
                return Outcome(None, False, str(error) or "the API server cannot be reached")
            except TransportError as error:
                return Outcome(None, True, str(error) or "the API server did not answer")
        uncertain = answer.status >= 500
        return Outcome(answer, uncertain, "" if answer.ok else message_of(answer) or f"status {answer.status}")

    async def patiently(self, request: Request, *, repeatable: bool = True) -> Outcome:
        """Up to four attempts while the server is busy, fails or is out of reach; an answer may say how long to
        wait, which is not done for longer than an answer is waited for.

        What is not `repeatable` ends with the first attempt that may have taken effect.
        """
        pause, uncertain = FIRST_PAUSE, False
        for attempt in range(ATTEMPTS):
            outcome = await self.once(request)
            uncertain |= outcome.uncertain
            last = attempt == ATTEMPTS - 1 or outcome.message == NO_LEAVE or (uncertain and not repeatable)
            if last or not _passing(outcome):
                break
            wait = outcome.answer.retry_after if outcome.answer is not None else None
            wait = pause if wait is None else max(min(wait, request.seconds), pause)
            await asyncio.sleep(self.clock.jittered(wait, JITTER))
            pause *= FACTOR
        return Outcome(outcome.answer, uncertain and not outcome.ok, outcome.message)


def _passing(outcome: Outcome) -> bool:
    """Is it a failure that may pass?"""
    return outcome.answer is None or outcome.status == TOO_MANY or outcome.status >= 500
