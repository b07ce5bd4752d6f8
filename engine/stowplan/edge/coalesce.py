"""Fewer events with the same end: of changes to one node or fact that came in together, the last one is enough."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stowplan.loop.events import Event, FactChanged, FactGone, NodeChanged, NodeGone


def coalesced(events: Sequence[Event]) -> list[Event]:
    """The events without those that a later one makes pointless, in order. Those about pods all matter.

    A change counts in the place of the last one; nothing moves past the deletion of what it is about.
    """
    later: set[tuple[object, str]] = set()
    kept: list[Event] = []
    for event in reversed(events):
        match event:
            case NodeChanged(node):
                about: tuple[object, str] | None = (NodeChanged, node.name)
            case FactChanged(fact):
                about = (type(fact), fact.key)
            case NodeGone(name):
                later.discard((NodeChanged, name))
                about = None
            case FactGone(kind, key):
                later.discard((kind, key))
                about = None
            case _:
                about = None
        if about is not None:
            if about in later:
                continue
            later.add(about)
        kept.append(event)
    kept.reverse()
    return kept


def flattened(batches: Iterable[Sequence[Event]]) -> list[Event]:
    return [event for batch in batches for event in batch]
