"""The last good versions of a policy, kept in a ConfigMap beside the policy's: one key a version, and one that lists them all.

A version is a distinct document and keeps its number: one that comes back into force moves to the end, and gets no second row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from stowplan.edge.policies.configmap import Reference
from stowplan.text import Code

KEPT = 10
INDEX = "versions.json"
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
    """

    version: int
    hash: str
    time: str
    key: str
    warnings: tuple[str, ...] = ()
    before: tuple[str, ...] = ()

    @property
    def barren(self) -> str:
        """The warning that a rule of it lets no node pass; "" where there was none."""
        return next((each for each in self.warnings if f"[{Code.CONSTANT}]" in each), "")


class Kept(msgspec.Struct, rename="camel"):
    """The ConfigMap as it is stored; its metadata are kept as they are."""

    metadata: dict[str, Any]
    data: dict[str, str] | None = None


decode_kept = msgspec.json.Decoder(Kept).decode
_decode_index = msgspec.json.Decoder(tuple[Entry, ...]).decode


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


def versions(kept: Kept | None) -> tuple[Version, ...]:
    """The versions, the one that came into force last at the end.

    One whose text somebody has removed is left out, as is an index that cannot be read.
    """
    data = (kept.data if kept is not None else None) or {}
    try:
        index = _decode_index(data.get(INDEX, "[]"))
    except msgspec.MsgspecError:
        return ()
    found: dict[str, Version] = {}
    for entry in index:
        if entry.key in data:
            found[entry.hash] = _again(found.pop(entry.hash, None), Version(entry, data[entry.key]))
    return tuple(found.values())


def with_version(known: Sequence[Version], now: Entry, text: str) -> tuple[Version, ...]:
    """The versions with the one in force at the end, the last few of them. Number and key of `now` do not count."""
    number = max((each.entry.version for each in known), default=0) + 1
    before = next((each for each in known if each.entry.hash == now.hash), None)
    new = _again(before, Version(msgspec.structs.replace(now, version=number, key=f"v{number}.yaml"), text))
    kept = [*(each for each in known if each is not before), new][-KEPT:]
    while len(kept) > 1 and sum(len(each.text.encode()) for each in kept) > LARGEST:
        del kept[0]
    return tuple(kept)


def numbers(known: Sequence[Version]) -> dict[str, int]:
    """Hash -> version."""
    return {each.entry.hash: each.entry.version for each in known}


def _again(before: Version | None, new: Version) -> Version:
    """A version that has come into force once more: its number stays, its text may have other comments."""
    if before is None:
        return new
    old, entry = before.entry, new.entry
    times = tuple(dict.fromkeys((*old.before, old.time, *entry.before)))
    times = tuple(each for each in times if each != entry.time)[-MOST_TIMES:]
    return Version(msgspec.structs.replace(entry, version=old.version, key=old.key, before=times), new.text)


def body(reference: Reference, kept: Kept | None, known: Sequence[Version]) -> bytes:
    """The ConfigMap with these versions, as it is written; a version in its metadata lets that fail if somebody was faster."""
    metadata = {"name": reference.name, "namespace": reference.namespace, "labels": MANAGER} if kept is None else kept.metadata
    data = {each.entry.key: each.text for each in known}
    index = msgspec.json.format(_encode([each.entry for each in known]), indent=1).decode()
    return _encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {INDEX: index, **data}})
