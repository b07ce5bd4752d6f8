"""The last good versions of a policy, kept in a ConfigMap beside the policy's: one key a version, and one that lists them all.

A version is a distinct document and keeps its number: one that comes back into force moves to the end, and gets no second row.
What somebody has broken is passed over piece by piece, told, and kept as it was found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from stowplan.edge.policies.configmap import Reference
from stowplan.text import Code
from stowplan.text.moments import epoch_of

KEPT = 10
INDEX, UNREADABLE = "versions.json", "versions.json.unreadable"
"""Keys: the list, and the last one that could not be read whole."""
BRIEF = 60.0
"""Seconds; a version that was in force for less is the first to make room, or a storm of edits would push out the good ones."""
LARGEST = 900_000
"""Bytes of all texts together: the API server takes a MiB, names and index included."""
MOST_TIMES = 20
"""Times of coming into force that a version remembers."""
MOST_WARNINGS = 10
MANAGER = {"app.kubernetes.io/managed-by": "stowplan"}

_encode = msgspec.json.Encoder().encode


class Entry(msgspec.Struct, frozen=True):
    """A line of the index, RFC 3339.

    time      when it came into force last; `before`: the times before that, oldest first
    key       where its text is
    warnings  one line each
    lasted    seconds in all that it was in force, up to when another one came; None in the lists of earlier releases
    """

    version: int
    hash: str
    time: str
    key: str
    warnings: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    lasted: float | None = None

    @property
    def barren(self) -> str:
        """The warning that a rule of it lets no node pass; "" where there was none."""
        return next((each for each in self.warnings if f"[{Code.CONSTANT}]" in each), "")


class Kept(msgspec.Struct, rename="camel"):
    """The ConfigMap as it is stored; its metadata are kept as they are."""

    metadata: dict[str, Any]
    data: dict[str, str] | None = None


decode_kept = msgspec.json.Decoder(Kept).decode
_decode_index = msgspec.json.Decoder(tuple[msgspec.Raw, ...]).decode
_decode_entry = msgspec.json.Decoder(Entry).decode
_KEY = re.compile(r"v([1-9]\d{0,8})\.yaml")


@dataclass(frozen=True, slots=True)
class Version:
    """A policy that was in force."""

    entry: Entry
    text: str

    def to_json(self) -> dict[str, Any]:
        """Without the text."""
        it = self.entry
        times = [*it.before, it.time]
        return {"version": it.version, "hash": it.hash, "time": it.time, "times": times, "warnings": list(it.warnings)}


def companion(reference: Reference) -> Reference:
    """Where the versions of a policy are kept."""
    return Reference(reference.namespace, f"{reference.name}-history", "")


def path_of(reference: Reference) -> str:
    return f"{reference.folder}/{reference.name}"


@dataclass(frozen=True, slots=True)
class Known:
    """The versions, the one that came into force last at the end, and what is wrong with what is kept, a line each.

    highest   number of any text that is kept, be it one of a version or not
    """

    versions: tuple[Version, ...] = ()
    wrong: tuple[str, ...] = ()
    highest: int = 0


def known(kept: Kept | None, digest_of: Callable[[str], str]) -> Known:
    """What can be read of the history.

    A text that no readable line names is a version whose time nobody knows, if `digest_of` gives a hash for it and not "". A line
    whose text somebody has removed is left out.
    """
    data = (kept.data if kept is not None else None) or {}
    wrong: list[str] = []
    entries = list(_entries(data.get(INDEX, "[]"), wrong))
    found: dict[str, Version] = {}
    numbered = sorted((int(match[1]), key) for key in data if (match := _KEY.fullmatch(key)))
    if wrong:
        for number, key in numbered:
            digest = "" if any(entry.key == key for entry in entries) else digest_of(data[key])
            if digest:
                found[digest] = Version(Entry(number, digest, "", key), data[key])
    for entry in entries:
        if entry.key in data:
            found[entry.hash] = _again(found.pop(entry.hash, None), Version(entry, data[entry.key]))
    return Known(tuple(found.values()), tuple(wrong), numbered[-1][0] if numbered else 0)


def _entries(index: str, wrong: list[str]) -> Iterator[Entry]:
    try:
        lines = _decode_index(index)
    except msgspec.MsgspecError as error:
        wrong.append(f"{INDEX} cannot be read: {error}")
        return
    for place, line in enumerate(lines):
        try:
            yield _decode_entry(line)
        except msgspec.MsgspecError as error:
            wrong.append(f"item {place} of {INDEX} cannot be read: {error}")


def with_version(known: Sequence[Version], now: Entry, text: str, highest: int = 0) -> tuple[Version, ...]:
    """The versions with the one in force at the end, a few of them. Number and key of `now` do not count.

    A new number is larger than all others and than `highest`.
    """
    number = max((each.entry.version for each in known), default=0)
    number = max(number, highest) + 1
    before = next((each for each in known if each.entry.hash == now.hash), None)
    new = _again(before, Version(msgspec.structs.replace(now, version=number, key=f"v{number}.yaml"), text))
    kept = [*(each for each in _timed(known, now) if each.entry.hash != now.hash), new]
    while len(kept) > 1 and (len(kept) > KEPT or sum(len(each.text.encode()) for each in kept) > LARGEST):
        brief = (at for at, each in enumerate(kept[:-1]) if each.entry.lasted is not None and each.entry.lasted < BRIEF)
        del kept[next(brief, 0)]
    return tuple(kept)


def _timed(known: Sequence[Version], now: Entry) -> Iterator[Version]:
    """The versions, the last of them in force until now."""
    for each, after in zip(known, [*(each.entry for each in known[1:]), now], strict=False):  # none known, one now
        entry = each.entry
        last = after is now and entry.hash != now.hash
        if entry.lasted is None or last:
            entry = msgspec.structs.replace(entry, lasted=_sum(entry.lasted, _between(entry.time, after.time)))
        yield Version(entry, each.text)


def _between(since: str, until: str) -> float | None:
    """Seconds; None where nobody knows."""
    try:
        return max(epoch_of(until) - epoch_of(since), 0.0)
    except (ValueError, TypeError):
        return None


def _sum(before: float | None, more: float | None) -> float | None:
    return before if more is None else (before or 0.0) + more


def numbers(known: Sequence[Version]) -> dict[str, int]:
    """Hash -> version."""
    return {each.entry.hash: each.entry.version for each in known}


def _again(before: Version | None, new: Version) -> Version:
    """A version that has come into force once more: its number stays, its text may have other comments."""
    if before is None:
        return new
    old, entry = before.entry, new.entry
    times = tuple(dict.fromkeys((*old.before, old.time, *entry.before)))
    times = tuple(each for each in times if each not in (entry.time, ""))[-MOST_TIMES:]
    lasted = old.lasted if entry.lasted is None else entry.lasted
    return Version(msgspec.structs.replace(entry, version=old.version, key=old.key, before=times, lasted=lasted), new.text)


def body(reference: Reference, kept: Kept | None, before: Known, now: Sequence[Version]) -> bytes:
    """The ConfigMap with these versions, as it is written; a version in its metadata lets that fail if somebody was faster.

    `before` is what was read of it. What is no version stays as it is; so does a list with lines that could not be read, under
    another key.
    """
    metadata = {"name": reference.name, "namespace": reference.namespace, "labels": MANAGER} if kept is None else kept.metadata
    old = (kept.data if kept is not None else None) or {}
    ours = {INDEX, *(each.entry.key for each in before.versions)}
    data = {key: text for key, text in old.items() if key not in ours}
    if before.wrong:
        data[UNREADABLE] = old[INDEX]
    texts = {each.entry.key: each.text for each in now}
    room = LARGEST - sum(len(text.encode()) for text in texts.values())
    for key in sorted(data, key=lambda key: key == UNREADABLE):  # what is more than the API server takes goes
        room -= len(data[key].encode())
        if room < 0:
            del data[key]
    index = msgspec.json.format(_encode([each.entry for each in now]), indent=1).decode()
    return _encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {**data, INDEX: index, **texts}})
