"""Time and chance as the live edge has them: the wall clock and randomness are handed in, waiting is asyncio's.

Nothing here or above reads a clock of its own, so that an event loop with virtual time runs all of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from stowplan.text.moments import rfc3339, rfc3339_micro

__all__ = ["Backoff", "Clock", "monotonic", "real", "rfc3339", "rfc3339_micro"]


@dataclass(frozen=True, slots=True)
class Clock:
    """`wall`: epoch seconds, which never go back."""

    wall: Callable[[], float]
    random: Random

    def jittered(self, seconds: float, share: float) -> float:
        """At least `seconds`, and up to that share longer."""
        return seconds * (1 + share * self.random.random())


@dataclass(slots=True)
class Backoff:
    """Growing pauses between attempts: `least` seconds, doubled each time up to `most`, jittered."""

    clock: Clock
    least: float
    most: float
    failures: int = 0

    def reset(self) -> None:
        self.failures = 0

    async def pause(self) -> None:
        """After a failure."""
        seconds = min(self.least * 2.0 ** min(self.failures, 30), self.most)
        self.failures += 1
        await asyncio.sleep(self.clock.jittered(seconds, 0.5))


def monotonic() -> float:
    """Seconds of the running event loop, for durations."""
    return asyncio.get_running_loop().time()


def real() -> Clock:
    """The clock of this machine as of now; later changes of its date do not matter."""
    import random
    import time

    start = time.time() - time.monotonic()
    return Clock(lambda: start + time.monotonic(), random.Random())  # noqa: S311 - jitter, not secrets
