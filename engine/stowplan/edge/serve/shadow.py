"""/shadow: how the placements of the scheduler that is watched compare with what would have been decided here."""

from __future__ import annotations

from collections.abc import Callable

from stowplan.edge.serve.pages import Asked, Page, Reply, as_json
from stowplan.loop.shadow import Shadow


def shadow(compared: Callable[[], Shadow | None]) -> Page:
    """The page; it is there in any case, and says so where nothing is compared."""

    def answer(_: Asked) -> Reply:
        found = compared()
        return (
            Reply(b"this scheduler is no shadow: start it with --shadow\n", status=404)
            if found is None
            else as_json(found.to_json())
        )

    return Page("/shadow", answer, takes=())
