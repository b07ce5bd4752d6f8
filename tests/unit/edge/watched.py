"""A loop whose doings are told to a journal."""

from __future__ import annotations

from stowplan.edge.journal import Journal
from unit.loop.driving import Scene


class Watched:
    """A loop that tells a journal of what it handles; an event takes `seconds`."""

    def __init__(self, loop, journal, seconds=0.25):
        self.loop, self.journal, self.seconds = loop, journal, seconds

    def __getattr__(self, name):
        return getattr(self.loop, name)

    def handle(self, event, now):
        effects = self.loop.handle(event, now)
        self.journal.handled(event, effects, now, self.seconds)
        return effects


class Listening:
    """A listener that keeps what it was told."""

    def __init__(self):
        self.attempts, self.preemptions, self.policies = [], [], []

    def attempted(self, attempt):
        self.attempts.append(attempt)

    def preempted(self, preemptor, node, victims):
        self.preemptions.append((preemptor.name, node, [victim.name for victim in victims]))

    def policy(self, generation, seconds, now):
        self.policies.append((generation, seconds, now))


def scene(*listeners, **options):
    """A scene whose loop tells listeners."""
    found = Scene(**options)
    found.loop = Watched(found.loop, Journal(found.loop.ledger, listeners))
    return found
