"""/decisions: why pods went where they went, as it was recorded when that was decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stowplan.edge.serve.pages import Asked, Page, Reply, as_json, limit_of, names_of
from stowplan.edge.serve.standing import Stand, Standing
from stowplan.loop.records import Record, Records
from stowplan.text.moments import rfc3339_micro

RECENT = 50
"""Records of all pods that are shown unless a `limit` is given."""
NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class Told:
    """Where the pages look. `numbers`: versions of policies in the history, by hash."""

    records: Callable[[], Records]
    stand: Stand = lambda: Standing(leads=True)
    numbers: Callable[[], Mapping[str, int]] = dict


def decisions(told: Told) -> tuple[Page, Page]:
    """The page of the last decisions, and that of one pod; newest last, the last `limit` of them.

    `name` narrows the first one to pods of that name, in any namespace.
    """

    def recent(asked: Asked) -> Reply:
        limit, names, records = limit_of(asked, RECENT), names_of(asked, "name"), told.records()
        if isinstance(names, Reply):
            return names
        found = [record for record in records if not names or record.pod.rpartition("/")[2] in names]
        return limit if isinstance(limit, Reply) else as_json(_document(told, found, limit))

    def about(asked: Asked) -> Reply:
        key = f"{asked.parts['namespace']}/{asked.parts['pod']}"
        found = told.records().of(key)
        limit, status = limit_of(asked, len(found)), 200 if found else NOT_FOUND
        return limit if isinstance(limit, Reply) else as_json({"pod": key} | _document(told, found, limit), status)

    return Page("/decisions", recent, takes=("name", "limit")), Page("/decisions/{namespace}/{pod}", about, takes=("limit",))


def _document(told: Told, found: list[Record], limit: int) -> dict[str, Any]:
    """Records, and how far back they reach: `kept` of all that were `written`, the oldest from `since`."""
    records, numbers = told.records(), told.numbers()
    oldest = next(iter(records), None)
    return {
        "apiVersion": "stowplan.io/v1alpha1",
        "kind": "DecisionList",
        **told.stand().to_json(),
        "kept": len(records),
        "written": records.written,
        "since": None if oldest is None else rfc3339_micro(oldest.time),
        "items": [_item(record, numbers) for record in (found[-limit:] if limit else [])],
    }


def _item(record: Record, numbers: Mapping[str, int]) -> dict[str, Any]:
    """A record, and the version of its policy where that is known by now."""
    item = record.to_json()
    if record.digest in numbers:
        item["policy"]["version"] = numbers[record.digest]
    return item
