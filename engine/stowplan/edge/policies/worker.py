"""Work that takes a while, and is given up when nobody waits for it any more.

A thread that computes for ever would take half of the interpreter's time from the decisions, so it is ended, not only left alone.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from typing import TypeVar

from stowplan.edge.aside import apart

Found = TypeVar("Found")


class GivenUpError(SystemExit):
    """Raised in the thread; it ends without a word."""


async def worked(work: Callable[[], Found], /) -> Found:
    """The result of work in a thread of its own. Cancelling ends the work at the next step of the interpreter."""
    running: list[int] = []

    def run() -> Found:
        running.append(threading.get_ident())
        try:
            return work()
        finally:
            running.clear()

    try:
        return await apart(run)
    except asyncio.CancelledError:
        for thread in running[:]:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(GivenUpError))
        raise
