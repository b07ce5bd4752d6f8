"""An HTTP/1.1 answer, taken out of the bytes of a connection as they come (RFC 9112). No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST_HEAD, LONGEST_LINE = 262_144, 16_384
_NO_BODY = (204, 304)
_LONGEST_PAUSE = 3600.0
"""Seconds; a server that asks for more is asked again all the same."""
_LONGEST_NUMBER = 18
"""Digits."""
_HEXADECIMAL = re.compile(rb"[0-9a-fA-F]{1,15}")
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5]\d\d)(?: |\r\n|\Z)")


class MalformedError(Exception):
    """The bytes are no HTTP/1.1."""


@dataclass(frozen=True, slots=True)
class Head:
    """What comes before the body. `length`: of the body in bytes; None: in chunks, if `chunked`, else until the connection ends.

    `retry_after` in seconds, None where the server does not say or says a date, which API servers do not. `last`: the connection
    ends with this answer.
    """

    status: int
    length: int | None
    chunked: bool
    last: bool
    retry_after: float | None


def read_head(text: bytes) -> Head:
    """The head, without the empty line that ends it."""
    found = _STATUS.match(text)
    if found is None:
        raise MalformedError(f"no answer in HTTP/1.1: {text[:50]!r}")
    status, fields = int(found[1]), text[12:].lower()
    coding, told = _field(fields, b"transfer-encoding"), _length(fields)
    length = 0 if status in _NO_BODY else None if coding else told
    if coding not in (b"", b"chunked"):
        raise MalformedError(f"an answer in an unknown coding: {coding!r}")
    chunked = bool(coding) and length is None
    last = text[7:8] == b"0" or b"close" in re.split(rb"[,\s]+", _field(fields, b"connection")) or (length is None and not chunked)
    pause = _field(fields, b"retry-after")
    return Head(status, length, chunked, last, pause_of(pause))


def pause_of(told: bytes) -> float | None:
    """A Retry-After in seconds; None for nothing and for a date, which API servers do not send."""
    return min(float(told[:9]), _LONGEST_PAUSE) if told.isdigit() else None


def _length(fields: bytes) -> int | None:
    """The body's length in bytes, if it is told; told twice, it has to be the same."""
    told = {each.strip() for each in _field(fields, b"content-length").split(b",")} - {b""}
    if not told:
        return None
    (length, *others) = told
    if others or not length.isdigit() or len(length) > _LONGEST_NUMBER:
        raise MalformedError(f"no length of a body: {b', '.join(sorted(told))[:50]!r}")
    return int(length)


def _field(fields: bytes, name: bytes) -> bytes:
    """A field's value out of the lines of a head in lower case, b"" if it is not there; with commas between several."""
    values, start = [], b"\r\n" + name + b":"
    place = fields.find(start)
    while place >= 0:
        begin = place + len(start)
        end = fields.find(b"\r\n", begin)
        values.append(fields[begin : len(fields) if end < 0 else end].strip())
        place = -1 if end < 0 else fields.find(start, end)
    return values[0] if len(values) == 1 else b",".join(values)


class Reading:
    """One answer. `feed` it, then look at `head` and take what there is of the body."""

    __slots__ = ("_held", "_left", "_pieces", "_trailing", "done", "head", "silent", "size")

    def __init__(self) -> None:
        self.head: Head | None = None
        self.done = False
        self.silent = True
        """nothing has come yet"""
        self.size = 0
        """bytes that `take` would return"""
        self._held = b""
        """a line that has only begun"""
        self._pieces: list[bytes] = []
        self._left = 0
        """what is still to come of the body, or of the chunk with its line end"""
        self._trailing = False

    def feed(self, data: bytes) -> None:
        """Read on. MalformedError where that is impossible; what follows the answer's end is nobody's."""
        self.silent = False
        if self._held:
            data, self._held = self._held + data, b""
        head = self.head
        if head is None:
            head, data = self._begun(data)
            if head is None:
                return
        if self.done and data:
            raise MalformedError("bytes that belong to no answer")
        if head.chunked:
            self._unchunk(data)
        elif data:
            self._measure(data)

    def end(self) -> bool:
        """The connection ends. Is that the end of the answer?"""
        if self.head is not None and self.head.length is None and not self.head.chunked:
            self.done = True
        return self.done

    def take(self) -> bytes:
        """What has come of the body since it was last taken."""
        found = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self.size = 0
        return found

    def _begun(self, data: bytes) -> tuple[Head | None, bytes]:
        """The head, if it is there, and what follows; interim answers are passed over."""
        begin = 0
        while (end := data.find(b"\r\n\r\n", begin)) >= 0:
            head = read_head(data[begin:end])
            begin = end + 4
            if head.status >= 200:
                self.head, self._left, self.done = head, head.length or 0, head.length == 0
                return head, data[begin:]
        if len(data) - begin > LONGEST_HEAD:
            raise MalformedError("an answer's head without an end")
        self._held = data[begin:]
        return None, b""

    def _measure(self, data: bytes) -> None:
        assert self.head is not None
        self._keep(data)
        if self.head.length is not None:
            self._left -= len(data)
            if self._left < 0:
                raise MalformedError("more than the announced bytes")
            self.done = self._left == 0

    def _unchunk(self, data: bytes) -> None:
        at = 0
        while not self.done:
            if self._left:
                taken = data[at : at + self._left]
                if not taken:
                    return
                self._left -= len(taken)
                if self._left < 2:  # the line end has begun, or is what is missing of it
                    size = max(len(taken) + self._left - 2, 0)
                    taken, ending = taken[:size], taken[size:]
                    at += len(ending)
                    if ending != b"\r\n"[2 - self._left - len(ending) : 2 - self._left]:
                        raise MalformedError("a chunk of another size than announced")
                self._keep(taken)
                at += len(taken)
                continue
            end = data.find(b"\r\n", at)
            if end < 0:
                if len(data) - at > LONGEST_LINE:
                    raise MalformedError("a chunk's size without an end")
                self._held = data[at:]
                return
            self._line(data[at:end])
            at = end + 2
        if at != len(data):
            raise MalformedError("bytes after the last chunk")

    def _line(self, line: bytes) -> None:
        """The size of a chunk, or a line of the trailer, which an empty one ends."""
        if self._trailing:
            self.done = not line
            return
        digits = line.partition(b";")[0].strip()
        if not _HEXADECIMAL.fullmatch(digits):
            raise MalformedError(f"no size of a chunk: {line[:50]!r}")
        size = int(digits, 16)
        self._trailing = size == 0
        self._left = size + 2 if size else 0

    def _keep(self, data: bytes) -> None:
        if data:
            self._pieces.append(data)
            self.size += len(data)
