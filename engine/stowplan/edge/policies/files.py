"""A policy in a file, followed: looked at several times a second, so that no file system has to be able to tell of changes.

A file is taken once two looks have found it the same: editors write in steps, and half a YAML text may be a good one. A mounted
ConfigMap is a folder of links by way of `..data`, which the kubelet turns to another folder at once: what is there is whole.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from functools import partial

from stowplan.edge.clock import monotonic
from stowplan.edge.configurations import changeable, sources
from stowplan.edge.policies.examine import Offer
from stowplan.edge.policies.keeper import Keeper
from stowplan.text import Code, Diagnostic, Severity, Source

POLL = 0.1
"""Seconds between two looks."""
STILL = 0.25
"""Seconds without a change after which a file counts as written; whoever pauses for longer should write another and rename it."""
MOST_LOOKS = 20
"""Looks at a file that changes without end, before a start takes it as it is."""
PUBLISHED = "..data"

Signature = tuple[str, int, int, int]


def signature(path: str) -> Signature | None:
    """What differs when a file has been written or replaced; None where there is none."""
    try:
        target = os.path.realpath(path)
        found = os.stat(target)  # noqa: PTH116 - a str, several times a second
    except OSError:
        return None
    return target, found.st_mtime_ns, found.st_size, found.st_ino


def published(target: str) -> bool:
    """Whether a file lies in a folder that a link `..data` beside it has been turned to."""
    folder, above = target, os.path.dirname(target)  # noqa: PTH120 - a str
    while folder != above:
        link = f"{above}/{PUBLISHED}"
        if os.path.islink(link) and os.path.realpath(link) == folder:  # noqa: PTH114 - a str
            return True
        folder, above = above, os.path.dirname(above)  # noqa: PTH120 - a str
    return False


def followable(path: str) -> bool:
    """Whether a path can be read again and again: a file, or one that is still to come."""
    return changeable(path) and not os.path.isdir(path)  # noqa: PTH112 - a str


def read(path: str) -> Offer:
    """The text of the file, or what is wrong with it."""
    if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113 - a str
        return Offer(Source(path, ""), Diagnostic(Code.UNREADABLE, Severity.ERROR, f"{path}: is no file any more"))
    (found,) = sources([path])
    return Offer(Source(path, ""), found) if isinstance(found, Diagnostic) else Offer(found)


def at_rest(path: str) -> Source | Diagnostic:
    """What a path holds that is read once, at a start; a file that is just being written is waited for."""
    for _ in range(MOST_LOOKS if followable(path) else 0):
        before = signature(path)
        if before is None or abs(time.time() - before[1] / 1e9) > STILL or published(before[0]):
            break
        time.sleep(STILL)
    (found,) = sources([path])
    return found


@dataclass(frozen=True, slots=True)
class Sight:
    """What a look has found; without a signature nothing was there."""

    signature: Signature | None
    offer: Offer | None


@dataclass(slots=True)
class PolicyFile:
    """Offers a file's text to a keeper whenever it changes."""

    path: str
    keeper: Keeper
    _seen: Signature | None = None
    """what was offered last"""
    _lost: bool = False
    _sight: Sight | None = None
    """what may still be changing, since when"""
    _since: float = 0.0

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(POLL)

    async def look(self) -> None:
        """See whether the file has changed, and then whether it has been written to its end."""
        now = await self._signature()
        if self._known(now):
            self._sight = None
            return
        sight = Sight(now, None if now is None else await self.keeper.beside(partial(read, self.path)))
        if await self._signature() != now or not (await self._turned(now) or self._still(sight)):
            return
        self._sight, self._seen, self._lost = None, now, now is None
        if sight.offer is None:
            self.keeper.lost(f"{self.path} is not there")
        else:
            await self.keeper.offer(sight.offer, self._newer)

    async def _signature(self) -> Signature | None:
        return await self.keeper.beside(partial(signature, self.path))  # a file system that hangs holds up nobody else

    def _known(self, now: Signature | None) -> bool:
        return self._lost if now is None else now == self._seen

    async def _turned(self, now: Signature | None) -> bool:
        """Has a mounted ConfigMap been turned to another folder?"""
        if now is None or (self._seen is not None and self._seen[0] == now[0]):
            return False
        return await self.keeper.beside(partial(published, now[0]))

    def _still(self, sight: Sight) -> bool:
        """Has the same been found for long enough?"""
        if sight != self._sight:
            self._sight, self._since = sight, monotonic()
        return monotonic() - self._since >= STILL

    async def _newer(self) -> None:
        """Until the file is another one than was offered."""
        while await self._signature() == self._seen:  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(POLL)
