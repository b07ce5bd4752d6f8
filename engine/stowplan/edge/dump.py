"""The objects in what kubectl printed, one after the other, in any layout: lists, single objects, documents, JSON or YAML.

A large list as `kubectl get -o json` prints it is never held as a whole: its items stand at one indentation, and as a JSON
string has no line ends, `}`, line end, `{` at that indentation is the end of an item and nothing else. Every other layout is
read as a whole. What an object means is not asked here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from stowplan.edge.foreign import foreign
from stowplan.edge.place import BrokenTextError, Place, Sink, Text
from stowplan.edge.yaml_dump import read_yaml

_CHUNK = 2 << 20
LARGEST = 1 << 30
"""Bytes that are held at once: hundreds of thousands of pods, and an end to what has none."""
_LINE_END, _CLOSING = b"\n}"
_HEAD = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{[^{}\[\]]*"items":[ ]?\[(\r?\n[ \t]*)(?=\{\r?\n)')
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_BYTE = re.compile(r" \(byte (\d+)\)$")
_INSIGNIFICANT = re.compile(rb"(?:\s|\xef\xbb\xbf|#[^\n]*(?:\n|$)|---(?=\s|$)|\.\.\.(?=\s|$))*")
_NOTHING = msgspec.Raw(b"")


class Envelope(msgspec.Struct):
    """The least that must be known of a document: what it is, and whether it has items."""

    kind: Any = None
    items: msgspec.Raw = _NOTHING


_envelope = msgspec.json.Decoder(Envelope).decode
_array = msgspec.json.Decoder(list[msgspec.Raw]).decode


def read_dump(stream: BinaryIO, name: str, sink: Sink, progress: Callable[[int], None] | None = None) -> int:
    """Hand every object of the stream to `sink`; returns the number of documents, so 0 means that nothing was written.

    JSON objects are handed over as bytes, YAML ones as dicts. `sink` must let `msgspec.DecodeError` through when bytes are
    no JSON. `progress` is told how many bytes were read. Raises BrokenTextError.
    """

    def more(size: int = LARGEST + 1) -> bytes:
        data = stream.read(size)
        if len(data) > LARGEST:
            raise BrokenTextError(f"{name}: larger than {LARGEST >> 30} GiB: only lists of kubectl -o json may be", None)
        if progress is not None:
            progress(len(data))
        return data

    first = more(_CHUNK)
    other = foreign(first)
    if other is not None:
        raise BrokenTextError(f"{name}: {other}", None)
    head = _HEAD.match(first)
    if head is None:
        return _Whole(Text(name, _utf8(first + more())), sink).read()
    return _Whole(_stream(name, first, head, more, sink), sink).read()


def _stream(name: str, buffer: bytes, head: re.Match[bytes], more: Callable[..., bytes], sink: Sink) -> Text:
    """Hand over the items that are cut off safely. What is left, with the head of the list put before it, is a text again.

    The last item, which the end of the list follows, is always left; so is everything from an item on that cannot be read, and
    the whole list if its items have no kind of their own (as in a PodList).
    """
    columns = len(head[1].strip(b"\r\n"))
    at, before = head.end(), head[0].count(b"\n")
    lines = before
    chunk = buffer
    while chunk:
        line_ends = np.frombuffer(buffer, np.uint8) == _LINE_END
        for cut in _cuts(buffer, line_ends, head[1]):
            raw = buffer[at : cut + len(head[1]) + 1]
            if (lines == before and _kind_of(raw) is None) or not _hand_over(
                sink, raw, Text(name, raw, shift=lines, columns=columns)
            ):
                return _rest(head, name, buffer[at:] + more(), lines)
            begin = cut + 2 * len(head[1]) + 2
            lines += int(np.count_nonzero(line_ends[at:begin]))
            at = begin
        chunk = more(_CHUNK)
        buffer, at = buffer[at:] + chunk, 0
    return _rest(head, name, buffer[at:] + more(), lines)


def _rest(head: re.Match[bytes], name: str, left: bytes, lines: int) -> Text:
    return Text(name, head[0] + left, head=head[0].rindex(b"\n") + 1, shift=lines - head[0].count(b"\n"))


def _cuts(buffer: bytes, line_ends: NDArray[np.bool_], line_end: bytes) -> Iterator[int]:
    """Where items end: the offsets of all `},` between lines at the indentation of the list, followed by `{`.

    Comparing whole arrays is thrice as fast as searching: indented JSON is mostly blanks, which a search cannot jump over.
    """
    separator = line_end + b"}," + line_end + b"{"
    before = line_end.index(b"\n")
    distance = len(line_end) - before
    closing = np.frombuffer(buffer, np.uint8)[distance:] == _CLOSING
    for found in np.flatnonzero(line_ends[: len(closing)] & closing).tolist():
        if buffer.startswith(separator, found - before):
            yield found - before


def _kind_of(raw: bytes) -> Any:
    """The kind of a JSON object; None if it has none or cannot be read."""
    try:
        return _envelope(raw).kind
    except (msgspec.DecodeError, RecursionError):
        return None


def _hand_over(sink: Sink, raw: bytes, text: Text) -> bool:
    """False, and nothing handed over, if the bytes are no object of their own."""
    try:
        sink(raw, Place(text, 0, len(raw)))
    except msgspec.DecodeError:
        return False
    return True


def _utf8(data: bytes) -> bytes:
    """PowerShell redirects in UTF-16."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace").encode()
    return data


class _Whole:
    """A text that is held as a whole."""

    def __init__(self, text: Text, sink: Sink) -> None:
        self.text, self.data, self.sink = text, text.data, sink

    def read(self) -> int:
        return sum(self._document(start, end) for start, end in self._documents())

    def _documents(self) -> Iterator[tuple[int, int]]:
        """`---` at the start of a line ends a document, in YAML and between JSON objects: no scalar can contain it."""
        start = 0
        at = self.data.find(b"\n---")
        while at >= 0:
            if not self.data[at + 4 : at + 5].strip():
                yield start, at + 1
                start = at + 1
            at = self.data.find(b"\n---", at + 4)
        yield start, len(self.data)

    def _document(self, start: int, end: int) -> int:
        """Read what lies between two document markers; returns how many documents that was."""
        count = 0
        while (start := _skip(self.data, start, end)) < end and self.data[start : start + 1] != b"%":
            if self.data[start : start + 1] in (b"{", b"["):
                start = self._json(start, end)
            else:
                read_yaml(self.text, self.data.rfind(b"\n", 0, start) + 1, end, self.sink)
                start = end
            count += 1
        return count

    def _json(self, start: int, end: int) -> int:
        """Read the JSON document that begins at `start`; returns where it ends."""
        decode: Callable[[Any], Any] = _array if self.data[start : start + 1] == b"[" else _envelope
        view = memoryview(self.data)
        try:
            try:
                found = decode(view[start:end])
            except msgspec.DecodeError as error:
                trailing = _TRAILING.search(str(error))
                if trailing is None:
                    raise
                end = start + int(trailing[1]) - 1
                found = decode(view[start:end])
        except (msgspec.DecodeError, RecursionError) as error:
            if self.text.name.endswith((".yaml", ".yml")):  # JSON's brackets with YAML's freedoms
                read_yaml(self.text, start, end, self.sink)
                return end
            raise _broken(error, self.text, start, end) from None
        if isinstance(found, list):
            self._each(found, start + 1)
        elif isinstance(found.kind, str) and found.kind.endswith("List") and bytes(found.items).startswith(b"["):
            self._each(_array(found.items), self.data.index(found.items, start) + 1, found.kind.removesuffix("List"))
        else:
            self._give(self.data[start:end], Place(self.text, start, end))
        return end

    def _each(self, items: list[msgspec.Raw], at: int, kind: str = "") -> None:
        """Hand over items of which the first stands at `at` or later; `kind` is for those without, as in a PodList."""
        for item in items:
            raw = bytes(item)
            at = self.data.index(raw[:1], at)
            place = Place(self.text, at, at + len(raw))
            at += len(raw)
            self._give(_with_kind(raw, kind) if kind else raw, place)

    def _give(self, raw: bytes, place: Place) -> None:
        try:
            self.sink(raw, place)
        except msgspec.DecodeError as error:
            raise _broken(error, self.text, place.start, place.end) from None


def _with_kind(raw: bytes, kind: str) -> bytes:
    """The object with the kind that its list implies, if it has none of its own and is more than `{}`."""
    if not raw.startswith(b"{") or b":" not in raw or _kind_of(raw) is not None:
        return raw
    return f'{{"kind":"{kind}",'.encode() + raw[1:]


def _skip(data: bytes, start: int, end: int) -> int:
    """Past blanks, comments and document markers."""
    found = _INSIGNIFICANT.match(data, start, end)
    return found.end() if found else start


def _broken(error: Exception, text: Text, start: int, end: int) -> BrokenTextError:
    """What a decoder says about the JSON between `start` and `end`, with the place in the text."""
    message = str(error)
    if isinstance(error, RecursionError):
        return BrokenTextError("broken JSON: nested too deeply", text.point(start))
    if "truncated" in message:
        return BrokenTextError("the JSON ends in the middle of an object: is the dump truncated?", text.point(end))
    byte = _BYTE.search(message)
    what = _BYTE.sub("", message).removeprefix("JSON is malformed: ")
    return BrokenTextError(f"broken JSON: {what}", text.point(start + int(byte[1]) if byte else start))
