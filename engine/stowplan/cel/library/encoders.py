"""base64 (cel-spec) and JSON pointer keys."""

from __future__ import annotations

import base64
import binascii

from stowplan.cel.errors import CelError
from stowplan.cel.overloads import declare


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise CelError("illegal base64 data") from None


ENCODERS = (
    declare("base64.decode(string) -> bytes", _decode, "the bytes of a base64 text, padding optional", grows=1),
    declare("base64.encode(bytes) -> string", lambda data: base64.b64encode(data).decode(), "base64 text", grows=1),
)
