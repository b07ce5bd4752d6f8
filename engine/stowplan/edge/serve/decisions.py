"""/decisions: why pods went where they went, as it was recorded when that was decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stowplan.edge.serve.pages import Asked, Page, Reply, as_json
from stowplan.edge.serve.standing import Stand, Standing
from stowplan.loop.records import Record, Records
from stowplan.text.moments import rfc3339_micro

RECENT = 50
"""Records of all pods that are shown unless a `limit` is given."""
NOT_FOUND, BAD = 404, 400


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
        names, records = asked.query.get("name", ()), told.records()
        found = [record for record in records if not names or record.pod.rpartition("/")[2] in names]
        return _limited(asked, RECENT, lambda limit: as_json(_document(told, found, limit)))

    def about(asked: Asked) -> Reply:
        key = f"{asked.parts['namespace']}/{asked.parts['pod']}"
        found = told.records().of(key)
        status = 200 if found else NOT_FOUND
        return _limited(asked, len(found), lambda limit: as_json({"pod": key} | _document(told, found, limit), status))

    return Page("/decisions", recent), Page("/decisions/{namespace}/{pod}", about)


def limit_of(asked: Asked, default: int) -> int | None:
    """The number that `limit` asks for; None if that is no number."""
    values = asked.query.get("limit", ())
    if not values:
        return default
    return int(values[-1]) if values[-1].isascii() and values[-1].isdigit() else None


def _limited(asked: Asked, default: int, show: Callable[[int], Reply]) -> Reply:
    limit = limit_of(asked, default)
    return Reply(b"limit is no number\n", status=BAD) if limit is None else show(limit)


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
