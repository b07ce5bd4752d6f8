"""Texts that are taken for cluster dumps and are none: what kubectl prints for people, what it complains, binary data."""

from __future__ import annotations

import io
import re
from typing import Any, BinaryIO

from stowplan.edge.configurations import GZIP, UTF_16

_LOOKED_AT = 4096
_TABLE = re.compile(rb"(?:NAMESPACE\s+)?NAME\s+[A-Z][A-Z -]+(?:\s|$)")
_COMPLAINT = re.compile(rb"(?:Error from server|error: |Unable to connect|The connection to the server|No resources found)[^\n]*")


def unpacked(stream: BinaryIO) -> BinaryIO:
    """The stream, or what it holds if it is compressed by gzip. Reading what is returned may raise EOFError and zlib.error."""
    peeking: Any = stream
    if not hasattr(stream, "peek"):
        peeking = io.BufferedReader(peeking)
    if not peeking.peek(len(GZIP)).startswith(GZIP):
        return peeking  # type: ignore[no-any-return]
    import gzip

    unzipped: Any = gzip.GzipFile(fileobj=peeking)
    return unzipped  # type: ignore[no-any-return]


def foreign(start: bytes) -> str | None:
    """What a text that begins like this is, and what to do; None for what may be JSON or YAML."""
    if b"\0" in start[:_LOOKED_AT] and not start.startswith(UTF_16):
        return "this is binary data, not JSON or YAML"
    text = start[:_LOOKED_AT].lstrip()
    complaint = _COMPLAINT.match(text)
    if complaint is not None:
        return f"this is no dump, kubectl failed: {complaint[0].decode(errors='replace').strip()}"
    if _TABLE.match(text):
        return "this is a table of kubectl for people: dump with -o json"
    return None
