"""Work on many objects at once, in order for each of them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

Job = TypeVar("Job")
Spawn = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]
"""Starts a task that somebody watches over: what it raises is not lost."""


class Lanes(Generic[Job]):
    """A queue for each key that has work; `work` is done for the jobs of a key one after the other."""

    def __init__(self, work: Callable[[Job], Coroutine[Any, Any, None]], spawn: Spawn) -> None:
        self._work, self._spawn = work, spawn
        self._waiting: dict[str, deque[Job]] = {}
        self._empty = asyncio.Event()
        self._empty.set()

    def __len__(self) -> int:
        """Keys with work that is waiting or being done."""
        return len(self._waiting)

    def put(self, key: str, job: Job) -> None:
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.append(job)
            return
        self._waiting[key] = deque((job,))
        self._empty.clear()
        self._spawn(self._run(key))

    def last(self, key: str) -> Job | None:
        """The job that was put last, if it has not been begun."""
        waiting = self._waiting.get(key)
        return waiting[-1] if waiting else None

    def replace_last(self, key: str, job: Job) -> None:
        self._waiting[key][-1] = job

    async def idle(self) -> None:
        """Returns when no work is left."""
        await self._empty.wait()

    async def _run(self, key: str) -> None:
        waiting = self._waiting[key]
        while waiting:
            await self._work(waiting.popleft())
        del self._waiting[key]
        if not self._waiting:
            self._empty.set()
