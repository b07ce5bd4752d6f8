"""Which version to go back to: further back each time, and to none that is known to let no node pass.

The ConfigMap is marked with what was gone back from. The mark counts while it holds the version that was gone back to, or one of
those again; any other text is a new beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from stowplan.edge.policies.history import Version
from stowplan.text import some

MARK = "stowplan.io/rolled-back"
"""The annotation of the ConfigMap."""
SHORTEST = 4
"""Digits of a hash that name a version."""


class RollbackError(Exception):
    """There is nothing to go back to, or it cannot be written; the text says why."""


class Mark(msgspec.Struct, frozen=True):
    """Hashes: what was gone back `to`, and what from (`left`)."""

    to: str = ""
    left: tuple[str, ...] = ()


_read = msgspec.json.Decoder(Mark).decode


def mark_of(text: str, held: str) -> Mark:
    """The mark of a ConfigMap that holds this version; an empty one where it does not count."""
    try:
        mark = _read(text or "{}")
    except msgspec.MsgspecError:
        return Mark()
    return mark if held and held in (mark.to, *mark.left) else Mark()


def marked(mark: Mark, known: Sequence[Version], held: str, target: Version) -> Mark:
    """The mark once the target is back: all that was in force after it has been gone back from."""
    hashes = [each.entry.hash for each in known]
    after = hashes[hashes.index(target.entry.hash) + 1 :]
    left = [each for each in dict.fromkeys((*mark.left, *after, held)) if each in hashes and each != target.entry.hash]
    return Mark(target.entry.hash, tuple(left))


@dataclass(frozen=True, slots=True)
class Choice:
    """The version to go back to, and the newer ones that were passed over because they let no node pass."""

    version: Version
    passed: tuple[Version, ...] = ()


def chosen(known: Sequence[Version], held: str, left: Sequence[str]) -> Choice:
    """The version in force last of those that are not held, were not gone back from and let nodes pass. Raises RollbackError."""
    others = [each for each in reversed(known) if each.entry.hash != held]
    if not others:
        raise RollbackError("has no other version than the one it holds")
    fresh = [each for each in others if each.entry.hash not in left]
    if not fresh:
        raise RollbackError(f"has no version further back: {_numbers(others)} were gone back from already; name one (--to)")
    passed: list[Version] = []
    for each in fresh:
        if not each.entry.barren:
            return Choice(each, tuple(passed))
        passed.append(each)
    raise RollbackError(f"has no version further back that lets some node pass: {_numbers(fresh)} did not; name one (--to)")


def named(known: Sequence[Version], wanted: str, held: str) -> Choice:
    """The version of this number, or whose hash begins so. Raises RollbackError."""
    found = [each for each in known if str(each.entry.version) == wanted]
    if not found and len(wanted) >= SHORTEST:
        found = [each for each in known if each.entry.hash.startswith(wanted.lower())]
    if not found:
        there = ", ".join(str(each.entry.version) for each in sorted(known, key=lambda each: each.entry.version))
        raise RollbackError(f"has no version {wanted}: there are {there}")
    if len(found) > 1:
        raise RollbackError(f"has several versions whose hash begins with {wanted}: {_numbers(found)}")
    if found[0].entry.hash == held:
        raise RollbackError(f"holds version {found[0].entry.version} already")
    return Choice(found[0])


def _numbers(versions: Sequence[Version]) -> str:
    return some([f"version {each.entry.version}" for each in versions], 10)
