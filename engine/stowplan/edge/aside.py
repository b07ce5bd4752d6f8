"""Work that may hang, as a file system may: done in threads that nobody has to wait for, and that keep no process from ending.

The threads of asyncio's executor are waited for at the end of the process, however long that takes.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TypeVar

Found = TypeVar("Found")


async def apart(work: Callable[..., Found], *arguments: object) -> Found:
    """As `asyncio.to_thread`."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Found] = loop.create_future()

    def tell(how: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(lambda: None if future.done() else how())

    def run() -> None:
        try:
            found = work(*arguments)
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            tell(lambda error=error: future.set_exception(error))  # type: ignore[misc]
        else:
            tell(lambda: future.set_result(found))

    threading.Thread(target=run, daemon=True).start()
    return await future


@dataclass(slots=True)
class Aside:
    """A thread that does one thing after another."""

    _work: SimpleQueue[Callable[[], None]] = field(default_factory=SimpleQueue)
    _idle: threading.Condition = field(default_factory=threading.Condition)
    _begun: int = 0
    _thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        return self._begun > 0

    def begin(self, work: Callable[[], None]) -> None:
        """Have this done, which must not raise."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        with self._idle:
            self._begun += 1
        self._work.put(work)

    def wait(self, seconds: float) -> bool:
        """Whether all of it is done before this time is over."""
        with self._idle:
            return self._idle.wait_for(lambda: not self._begun, seconds)

    def _run(self) -> None:
        while True:
            try:
                self._work.get()()
            finally:
                with self._idle:
                    self._begun -= 1
                    self._idle.notify_all()


def within(seconds: float, work: Callable[[], None]) -> None:
    """Do this. Raises the OSError that it raises, and TimeoutError, which is one, when the time is over."""
    raised: list[OSError] = []

    def run() -> None:
        try:
            work()
        except OSError as error:
            raised.append(error)

    aside = Aside()
    aside.begin(run)
    if not aside.wait(seconds):
        raise TimeoutError(f"nothing happens for {seconds:g} s")
    if raised:
        raise raised[0]
