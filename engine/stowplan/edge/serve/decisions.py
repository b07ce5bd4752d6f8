"""/decisions: why pods went where they went, as it was recorded when that was decided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stowplan.edge.serve.pages import Asked, Page, Reply, as_json
from stowplan.loop.records import Record, Records

RECENT = 50
"""Records of all pods that are shown unless a `limit` is given."""
NOT_FOUND, BAD = 404, 400


def decisions(records: Callable[[], Records]) -> tuple[Page, Page]:
    """The page of the last decisions, and that of one pod; newest last, the last `limit` of them."""

    def recent(asked: Asked) -> Reply:
        return _limited(asked, RECENT, lambda limit: as_json(_document(records(), list(records()), limit)))

    def about(asked: Asked) -> Reply:
        key = f"{asked.parts['namespace']}/{asked.parts['pod']}"
        found = records().of(key)
        status = 200 if found else NOT_FOUND
        return _limited(asked, len(found), lambda limit: as_json({"pod": key} | _document(records(), found, limit), status))

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


def _document(records: Records, found: list[Record], limit: int) -> dict[str, Any]:
    """Records, and how far back they reach: `kept` of all that were `written`, the oldest from `since`."""
    oldest = next(iter(records), None)
    return {
        "apiVersion": "stowplan.io/v1alpha1",
        "kind": "DecisionList",
        "kept": len(records),
        "written": records.written,
        "since": None if oldest is None else oldest.time,
        "items": [record.to_json() for record in (found[-limit:] if limit else [])],
    }
