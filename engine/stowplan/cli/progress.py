"""A progress bar on standard error, for work on a terminal that takes longer than a moment."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE = 0.5
"""Seconds before a bar appears: until then rich is not even imported."""


class Bar:
    """A bar for one kind of work; shows nothing when standard error is no terminal."""

    def __init__(self, label: str, total: int | None = None) -> None:
        """`total`: the amount of work, None if nobody knows."""
        self._label, self._total, self._done = label, total, 0
        self._since = time.monotonic()
        self._shown: Progress | None = None
        self._wanted = sys.stderr.isatty()

    def advance(self, amount: int) -> None:
        """More work is done."""
        self.reach(self._done + amount, self._total)

    def reach(self, done: int, total: int | None) -> None:
        """So much of the work is done."""
        self._done, self._total = done, total
        if not self._wanted:
            return
        if self._shown is not None:
            self._shown.update(self._shown.task_ids[0], completed=done, total=total)
        elif time.monotonic() - self._since > PATIENCE:
            self._show()

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        self._shown = Progress(*columns, console=Console(stderr=True), transient=True)
        self._shown.add_task(self._label, total=self._total, completed=self._done)
        self._shown.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._shown is not None:
            self._shown.stop()
