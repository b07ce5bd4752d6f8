"""Signals that end a process, heard from its first moment to its last: by default the first process of a container ignores them.

Imports next to nothing, so that there is no time before that.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

ABRUPT = 1
"""The exit code after a second signal, as kube-scheduler's."""


class StoppedEarly(SystemExit):
    """A signal came while nothing had begun that needs an end in good order."""


class Stoppable:
    """A context in which the first signal raises StoppedEarly, unless somebody else listens (`process.signals`).

    The second one ends the process at once, in whatever it is caught; a terminal that is closed sends several SIGHUPs, which count
    as one. `last_words` are given the name of the signal.
    """

    def __init__(self) -> None:
        self.stopping = False
        self.last_words: Callable[[str], None] = lambda _: None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> None:
        for number in stopping():
            self._before[number] = signal.signal(number, self._early)

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def heard(self, number: signal.Signals) -> bool:
        """Is this the signal to stop? There is no way back from the second one."""
        if self.stopping:
            if number is not signal.SIGHUP:
                self.last_words(number.name)
                os._exit(ABRUPT)
            return False
        self.stopping = True
        return True

    def _early(self, number: int, _: FrameType | None) -> None:
        if self.heard(signal.Signals(number)):
            raise StoppedEarly(0)


def stopping() -> list[signal.Signals]:
    """The signals that end a process; SIGHUP is not among them where it is ignored (`nohup`)."""
    hangup = [] if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [signal.SIGHUP]
    return [signal.SIGTERM, signal.SIGINT, *hangup]
