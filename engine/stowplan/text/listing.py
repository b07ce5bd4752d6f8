"""Lists and numbers in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def some(names: Sequence[str], most: int | None) -> str:
    """`a, b, c and 4 more`: the first names, and how many are left out; None: all of them."""
    more = 0 if most is None else len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def counted(count: int, one: str, many: str = "") -> str:
    """`1 node`, `2 nodes`; `many` is for nouns whose plural is not the word and an s."""
    return f"{count} {one if count == 1 else many or one + 's'}"
