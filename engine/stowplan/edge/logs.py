"""Log lines, as text for people or as JSON for machines, on standard error.

Levels are Kubernetes' verbosities: `-v 0` says that something went wrong or began, 2 tells decisions, 3 every attempt. A line is
a message and named values; values are quoted, so no name or message from the cluster can break out of its line.
"""

from __future__ import annotations

import json
import logging
import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import msgspec

from stowplan.edge.journal import Attempt, Result
from stowplan.loop.events import Failure
from stowplan.objects import Pod

ROOT = "stowplan"
DECISIONS, ATTEMPTS = 2, 3
"""Verbosities that tell the decisions that changed something, and all attempts."""
MOST_VERBOSE = 10
LONGEST = 4096
"""Characters of one value."""
FORMATS = ("text", "json")
_VALUES = "stowplan_values"
_LOST = {"msg": "lines of the log are lost"}
_REMEMBERED = 10_000
_NOBODY_WAITS = (Failure.GONE, Failure.ELSEWHERE)
_WORDS = {Result.SCHEDULED: "bound", Result.UNSCHEDULABLE: "unschedulable", Result.ERROR: "not scheduled"}

_log = logging.getLogger(f"{ROOT}.decisions")


def level(verbosity: int) -> int:
    """The level of the standard library for a verbosity: INFO is 0, more is below it."""
    return logging.INFO - verbosity


def say(logger: logging.Logger, severity: int, text: str, /, **values: object) -> None:
    """Log a message with named values; those that are None are left out. Costs next to nothing if nobody listens."""
    if logger.isEnabledFor(severity):
        logger.log(severity, text, extra={_VALUES: values})


def set_up(form: str, verbosity: int, stream: TextIO | None = None) -> None:
    """Send the lines of this program and the warnings of its libraries to a stream, standard error if none is given."""
    handler = Lines(sys.stderr if stream is None else stream)
    handler.setFormatter(AsJson() if form == "json" else AsText())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(ROOT).setLevel(level(verbosity))
    logging.captureWarnings(True)


class Lines(logging.StreamHandler[TextIO]):
    """Writes lines to a stream; those that it does not take, as its reader is gone or the disk full, are lost and counted."""

    lost = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, and before it how many are missing, once there are some."""
        if self.lost:
            missing, self.lost = self.lost, 0
            extra = {_VALUES: {"lines": missing}}
            self.emit(logging.makeLogRecord({"name": ROOT, "levelno": logging.WARNING, "levelname": "WARNING"} | extra | _LOST))
            if self.lost:  # that line in place of this one
                self.lost += missing
                return
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Count it, if it is the stream that fails."""
        if isinstance(sys.exc_info()[1], OSError):
            self.lost += 1
        else:
            super().handleError(record)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    values = getattr(record, _VALUES, None) or {}
    return {name: _bounded(name, value) for name, value in values.items() if value is not None}


def _bounded(name: str, value: object) -> object:
    """Long lines are broken up by what collects them, and are JSON no more; the end of a traceback is what matters."""
    if not isinstance(value, str) or len(value) <= LONGEST:
        return value
    return f"... {value[-LONGEST:]}" if name == "trace" else f"{value[:LONGEST]} ..."


def _moment(record: logging.LogRecord) -> str:
    clock = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{clock}.{int(record.msecs):03d}Z"


def _severity(record: logging.LogRecord) -> str:
    return "info" if record.levelno <= logging.INFO else record.levelname.lower()


class AsText(logging.Formatter):
    """`2026-11-30T22:35:01.123Z info bound pod="web/api" node="n1" attempt=1`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and the lines of a traceback where there is one."""
        pairs = (f" {name}={_text(value)}" for name, value in _fields(record).items())
        message = record.getMessage()
        if not message.isprintable():
            message = _text(message)[1:-1]
        line = f"{_moment(record)} {_severity(record)} {message}{''.join(pairs)}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class AsJson(logging.Formatter):
    """One object a line: `ts`, `level`, `v` (verbosity), `msg`, and the values under their names."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, the traceback in its member `trace`."""
        told: dict[str, Any] = {"ts": _moment(record), "level": _severity(record)}
        if record.levelno <= logging.INFO:
            told["v"] = logging.INFO - record.levelno
        told["msg"] = record.getMessage()
        told |= _fields(record)
        if record.exc_info:
            told["trace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(told, enc_hook=str).decode()


def _text(value: object) -> str:
    """JSON in ASCII: what looks like an end of a line somewhere is escaped."""
    return json.dumps(value, default=str)


class Allowance:
    """So many lines a second, and a few more after a quiet time; counts those that were too many."""

    def __init__(self, each_second: float, at_once: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.suppressed = 0
        self._rate, self._most, self._clock = each_second, at_once, clock
        self._left, self._then = at_once, clock()

    def take(self) -> bool:
        """Whether one more line is allowed."""
        now = self._clock()
        self._left = min(self._most, self._left + (now - self._then) * self._rate)
        self._then = now
        if self._left < 1:
            self.suppressed += 1
            return False
        self._left -= 1
        return True


class Seldom:
    """One line in a period, however often it is said; the next one tells how many it stands for."""

    def __init__(self, logger: logging.Logger, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger, self._seconds, self._clock = logger, seconds, clock
        self._next, self._left_out = -math.inf, 0

    def say(self, severity: int, text: str, /, **values: object) -> None:
        """As the function of this name, unless that was too short a time ago."""
        now = self._clock()
        if now < self._next:
            self._left_out += 1
            return
        self._next = now + self._seconds
        say(self._logger, severity, text, **values, left_out=self._left_out or None)
        self._left_out = 0


class DecisionLog:
    """A line for each decision: pods bound, pods that fit nowhere whenever the reason is a new one. A `Listener` of the journal.

    From verbosity 3 on every attempt is told, and no number of lines is too many.
    """

    def __init__(self, allowance: Allowance | None = None) -> None:
        self._allowance = Allowance(100, 1000) if allowance is None else allowance
        self._told: dict[str, str] = {}
        """the last message about pods that wait, by uid"""

    def attempted(self, attempt: Attempt) -> None:
        """Tell how an attempt ended."""
        if not _log.isEnabledFor(level(DECISIONS)):
            return
        scheduled = attempt.result is Result.SCHEDULED
        if scheduled:
            self._told.pop(attempt.pod.uid, None)
            verbosity = DECISIONS
        else:
            known = self._told.get(attempt.pod.uid) == attempt.message
            verbosity = ATTEMPTS if known else DECISIONS
            if not known:
                self._remember(attempt)
        if not _log.isEnabledFor(level(verbosity)) or not self._may():
            return
        wrong = attempt.result is Result.ERROR and attempt.failure not in _NOBODY_WAITS
        severity = logging.WARNING if wrong else level(verbosity)
        say(
            _log,
            severity,
            _WORDS[attempt.result],
            pod=attempt.pod.key,
            profile=attempt.profile,
            generation=attempt.generation,
            attempt=attempt.number or None,
            node=attempt.node or None,
            feasible=attempt.feasible,
            message=attempt.message or None,
            seconds=round(attempt.ended - attempt.started, 6),
        )

    def preempted(self, preemptor: Pod, node: str, victims: Sequence[Pod]) -> None:
        """Tell who is evicted for whom: never too many lines to know."""
        for victim in victims:
            say(_log, level(DECISIONS), "preempting", pod=victim.key, node=node, preemptor=preemptor.key)

    def policy(self, generation: int, seconds: float, now: float) -> None:  # noqa: ARG002 - the listeners' signature
        """Tell that a policy is in force."""
        say(_log, level(0), "policy in force", generation=generation, seconds=round(seconds, 3))

    def _remember(self, attempt: Attempt) -> None:
        self._told[attempt.pod.uid] = attempt.message
        if len(self._told) > _REMEMBERED:  # pods that went without being bound
            del self._told[next(iter(self._told))]

    def _may(self) -> bool:
        if _log.isEnabledFor(level(ATTEMPTS)):
            return True
        before = self._allowance.suppressed
        allowed = self._allowance.take()
        if allowed and before:
            say(_log, level(0), "left out lines about decisions", lines=before)
            self._allowance.suppressed = 0
        return allowed
