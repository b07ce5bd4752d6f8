"""The name that was meant by one that is not known."""

from __future__ import annotations

from collections.abc import Iterable

_CLOSE = 0.75


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A sentence that names the closest of the known names, if one is close."""
    meant = closest(name, known)
    return f'did you mean "{meant}"?' if meant else None


def closest(name: str, known: Iterable[str]) -> str | None:
    """The closest of the known names, if one is close."""
    from difflib import get_close_matches  # noqa: PLC0415 - only after an error, and slow to import

    lower = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), lower, n=1, cutoff=_CLOSE)
    return lower[close[0]] if close else None
