"""The last good versions of a policy, kept in a ConfigMap beside the policy's: one key a version, and one that lists them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from stowplan.edge.policies.configmap import Reference

KEPT = 10
INDEX = "versions.json"
LARGEST = 900_000
"""Bytes of all texts together: the API server takes a MiB, names and index included."""
MANAGER = {"app.kubernetes.io/managed-by": "stowplan"}

_encode = msgspec.json.Encoder().encode


class Entry(msgspec.Struct):
    """A line of the index. `time`: when it came into force, RFC 3339; `key`: where its text is."""

    version: int
    hash: str
    time: str
    key: str
    warnings: tuple[str, ...] = ()


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
        return {"version": it.version, "hash": it.hash, "time": it.time, "warnings": list(it.warnings)}


def companion(reference: Reference) -> Reference:
    """Where the versions of a policy are kept."""
    return Reference(reference.namespace, f"{reference.name}-history", "")


def path_of(reference: Reference) -> str:
    return f"{reference.folder}/{reference.name}"


def versions(kept: Kept | None) -> tuple[Version, ...]:
    """The versions, oldest first; one whose text somebody has removed is left out, as is an index that cannot be read."""
    data = (kept.data if kept is not None else None) or {}
    try:
        index = _decode_index(data.get(INDEX, "[]"))
    except msgspec.MsgspecError:
        return ()
    return tuple(Version(entry, data[entry.key]) for entry in sorted(index, key=lambda e: e.version) if entry.key in data)


def with_version(known: Sequence[Version], digest: str, text: str, time: str, warnings: Sequence[str]) -> tuple[Version, ...]:
    """The versions with a new one, the last few of them."""
    number = known[-1].entry.version + 1 if known else 1
    new = Version(Entry(number, digest, time, f"v{number}.yaml", tuple(warnings)), text)
    kept = [*known, new][-KEPT:]
    while len(kept) > 1 and sum(len(each.text.encode()) for each in kept) > LARGEST:
        del kept[0]
    return tuple(kept)


def body(reference: Reference, kept: Kept | None, known: Sequence[Version]) -> bytes:
    """The ConfigMap with these versions, as it is written; a version in its metadata lets that fail if somebody was faster."""
    metadata = {"name": reference.name, "namespace": reference.namespace, "labels": MANAGER} if kept is None else kept.metadata
    data = {each.entry.key: each.text for each in known}
    index = msgspec.json.format(_encode([each.entry for each in known]), indent=1).decode()
    return _encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {INDEX: index, **data}})
