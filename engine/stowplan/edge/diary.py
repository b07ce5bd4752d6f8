"""Decision records in a file, a JSON document a line, for those who ask long after.

The file is opened anew for every piece that is written: whoever rotates it need not tell. A pipe stays open. A disk that cannot
keep up, is full or hangs, and a pipe that nobody reads, cost records and never decisions; how many they were is told.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic

import msgspec

from stowplan.edge.aside import Aside
from stowplan.edge.logs import ROOT, Seldom, level, say
from stowplan.loop.records import Record, Records

EVERY = 1.0
"""Seconds between two pieces."""
MOST = 20_000
"""Records that wait to be written; then the oldest are dropped."""
CLOSING = 5.0
"""Seconds that writing may take at the end."""
_log = logging.getLogger(f"{ROOT}.decisions")
_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Diary:
    """Appends all records to a file."""

    path: str
    records: Records
    failed: bool = False
    _file: _File = field(init=False)
    _aside: Aside = field(default_factory=Aside)
    _before: int = 0
    """records that were there before"""
    _told: int = 0
    """lost ones that have been told of"""
    _losses: Seldom = field(default_factory=lambda: Seldom(_log))

    def __post_init__(self) -> None:
        self.records.outbox = deque(maxlen=MOST)
        self._before = self.records.written
        self._file = _File(self.path)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(EVERY)
            self._go_on()
            lost = self.lost
            if lost > self._told:
                self._losses.say(logging.WARNING, "decision records are lost", file=self.path, lost=lost)
                self._told = lost

    @property
    def lost(self) -> int:
        """Records that are neither in the file nor wait for it."""
        return self.records.written - self._before - self._file.taken - len(self.records.outbox or ())

    def close(self) -> None:
        """Write what is left, for some seconds at most, and tell what is not in the file then."""
        until, before = monotonic() + CLOSING, -1
        while self._aside.wait(max(until - monotonic(), 0.0)) and self._file.written > before:
            before = self._file.written
            self._go_on()
        missing = self.records.written - self._before - self._file.written
        if missing:
            say(_log, logging.WARNING, "decision records were not written", file=self.path, lost=missing)

    def _go_on(self) -> None:
        """Write what there is, unless that is being done; after a failure what could not be written comes first."""
        if self._aside.busy:
            return
        outbox, taken = self.records.outbox, list[Record]()
        while outbox and not self._file.lines:
            taken.append(outbox.popleft())
            if len(taken) == MOST:
                break
        if taken or self._file.lines:
            self._file.taken += len(taken)
            self._aside.begin(lambda: self._write(taken))

    def _write(self, records: Sequence[Record]) -> None:
        """Append these, and what is left of those before them."""
        try:
            self._file.append([_encode(record.to_json()) + b"\n" for record in records])
        except (OSError, ValueError) as error:  # the latter: a text that is none in UTF-8
            if not self.failed:
                message = getattr(error, "strerror", None) or str(error)
                say(_log, logging.WARNING, "decisions cannot be written", file=self.path, message=message)
            self.failed = True
        else:
            if self.failed:
                say(_log, level(0), "decisions are written again", file=self.path)
            self.failed = False


@dataclass(slots=True)
class _File:
    """Lines and the file that they go to. `taken`: how many so far; `lines`: those of them that are not `written` yet."""

    path: str
    taken: int = 0
    written: int = 0
    lines: list[bytes] = field(default_factory=list)
    _torn: bool = False
    """the last line is not whole: the next one must not go on with it"""
    _pipe: int | None = None

    def append(self, lines: list[bytes]) -> None:
        """Write these after what is left. Raises OSError; what is in the file then is not written again."""
        self.lines += lines
        content = memoryview((b"\n" if self._torn else b"") + b"".join(self.lines))
        done = 0
        try:
            handle = self._opened()
            try:
                while done < len(content):
                    done += os.write(handle, content[done:])
            finally:
                if handle != self._pipe:
                    os.close(handle)
        except OSError:
            if self._pipe is not None:
                os.close(self._pipe)
                self._pipe = None
            raise
        finally:
            self._account(bytes(content[:done]))

    def _opened(self) -> int:
        if self._pipe is not None:
            return self._pipe
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            self._pipe = handle
        return handle

    def _account(self, written: bytes) -> None:
        """Drop the lines that are in the file."""
        if not written:
            return
        whole = written.count(b"\n") - self._torn
        self._torn = not written.endswith(b"\n")
        del self.lines[:whole]
        self.written += whole
