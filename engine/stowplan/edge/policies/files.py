"""A policy in a file, followed: looked at several times a second, so that no file system has to be able to tell of changes.

A mounted ConfigMap is a folder of links by way of `..data`, which the kubelet turns to another folder at once: what counts is where
the path leads in the end.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass

from stowplan.edge.configurations import changeable, sources
from stowplan.edge.policies.examine import Offer
from stowplan.edge.policies.keeper import Keeper
from stowplan.text import Diagnostic, Source

POLL = 0.1
"""Seconds between two looks."""
MOMENT = 0.15
"""Seconds that whoever is writing the file gets to finish it."""

Signature = tuple[str, int, int, int]


def signature(path: str) -> Signature | None:
    """What differs when a file has been written or replaced; None where there is none."""
    try:
        target = os.path.realpath(path)
        found = os.stat(target)  # noqa: PTH116 - a str, several times a second
    except OSError:
        return None
    return target, found.st_mtime_ns, found.st_size, found.st_ino


def followable(path: str) -> bool:
    """Whether a path can be read again and again: a file, or one that is still to come."""
    return changeable(path) and not os.path.isdir(path)  # noqa: PTH112 - a str


def read(path: str) -> Offer:
    """The text of the file, or what is wrong with it."""
    (found,) = sources([path])
    return Offer(Source(path, ""), found) if isinstance(found, Diagnostic) else Offer(found)


@dataclass(slots=True)
class PolicyFile:
    """Offers a file's text to a keeper whenever it changes."""

    path: str
    keeper: Keeper
    _seen: Signature | None = None

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(POLL)

    async def look(self) -> None:
        """See whether the file has changed."""
        now = await asyncio.to_thread(signature, self.path)  # a file system that hangs holds up nobody else
        if now is None:
            self._seen = None
            self.keeper.lost(f"{self.path} is not there")
        elif now != self._seen or self.keeper.trouble:
            self._seen = now
            await self.keeper.offer(await asyncio.to_thread(read, self.path), self._again)

    async def _again(self) -> Offer:
        await asyncio.sleep(MOMENT)
        self._seen = await asyncio.to_thread(signature, self.path)
        return await asyncio.to_thread(read, self.path)
