"""Decision records in a file, a JSON document a line, for those who ask long after.

The file is opened anew for every piece that is written: whoever rotates it need not tell. A disk that cannot keep up, or is full,
costs records and never decisions.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from stowplan.edge.logs import ROOT, say
from stowplan.loop.records import Record, Records

EVERY = 1.0
"""Seconds between two pieces."""
MOST = 100_000
"""Records that wait to be written; then the oldest are dropped."""
_log = logging.getLogger(f"{ROOT}.decisions")
_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Diary:
    """Appends all records to a file."""

    path: str
    records: Records
    failed: bool = False

    def __post_init__(self) -> None:
        self.records.outbox = deque(maxlen=MOST)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(EVERY)
            taken = self._take()
            if taken:
                await asyncio.to_thread(self.write, taken)

    def close(self) -> None:
        """Write what is left."""
        self.write(self._take())

    def write(self, records: Sequence[Record]) -> None:
        """Append these."""
        if not records:
            return
        try:
            with open(self.path, "ab") as stream:  # noqa: PTH123 - a str
                stream.write(b"".join(_encode(record.to_json()) + b"\n" for record in records))
        except OSError as error:
            if not self.failed:
                say(_log, logging.WARNING, "decisions cannot be written", file=self.path, message=error.strerror or str(error))
            self.failed = True
        else:
            self.failed = False

    def _take(self) -> list[Record]:
        outbox, taken = self.records.outbox, []
        while outbox:
            taken.append(outbox.popleft())
        return taken
