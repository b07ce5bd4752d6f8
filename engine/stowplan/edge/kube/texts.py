"""Names and texts that the API server takes: not too long, and valid."""

from __future__ import annotations

NOTE = 1024
"""Bytes of an Event's note (upstream: `NoteLengthLimit`)."""
MESSAGE = 32_768
"""Bytes of a condition's message (metav1.Condition); that of a pod has no limit of its own, but an object has one."""
NAME = 253
"""Characters (upstream: `DNS1123SubdomainMaxLength`)."""


def event_name(about: str, number: int) -> str:
    """A name for an Event about an object, as upstream's (`GenerateEventName`) where that is valid.

    Of a longer one the beginning is kept, where upstream takes a random name that tells nobody anything.
    """
    suffix = f".{number:x}"
    return about[: NAME - len(suffix)].rstrip("-.") + suffix


def truncated(text: str, longest: int = NOTE) -> str:
    """At most so many bytes in UTF-8; a longer text ends with " ..."."""
    if len(text) * 4 <= longest:  # no character takes more
        return text
    encoded = text.encode()
    if len(encoded) <= longest:
        return text
    return encoded[: longest - 4].decode(errors="ignore") + " ..."
