"""Which unschedulable pods are worth another attempt, and when that is looked at.

Pods that are alike wait in one group. A change of the cluster concerns a group if a plugin that rejected its pods depends on
such changes, as follows from what it reads; whether the change helps, the filters themselves say (`policy.hint`). Of a group
that fits, a few pods are woken at a time, and more once those have found a place.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from itertools import islice

from stowplan.loop.waiting import Waiting
from stowplan.plugins.cel_rule import expressions_of
from stowplan.plugins.plugin import Plugin
from stowplan.policy.compile import Policy, Profile
from stowplan.policy.hint import worth_trying
from stowplan.state import Reach, Rows, Store

INTERVAL = 0.05
"""Seconds between two looks while changes keep coming."""
TIMED_INTERVAL = 5.0
"""Seconds between two looks at pods that a rule over time has rejected."""
AT_ONCE = 16
"""Pods of one group that are woken by one look."""
GROUPS_AT_ONCE = 64
"""Groups whose filters run in one look; the others follow in the next."""


class Change(enum.Flag):
    """Kinds of changes, by what they can help against."""

    NONE = 0
    NODE = enum.auto()
    """a node is new, gone or different"""
    LEFT = enum.auto()
    """a pod left a node, or takes less of it"""
    JOINED = enum.auto()
    """a pod came to a node, or has other labels"""
    FACT = enum.auto()
    """a fact of another kind: a volume, a service, a namespace"""
    TIME = enum.auto()
    """time passed, and some rule looks at the clock"""


ALL = ~Change.NONE


def helped_by(plugin: Plugin) -> Change:
    """The changes after which the plugin may accept what it rejected, derived from what it reads."""
    found = Change.NODE | Change.FACT
    reaches = {column.reach for column in plugin.reads}
    if reaches - {Reach.NODE}:
        found |= Change.LEFT
    if Reach.DOMAIN in reaches:
        found |= Change.JOINED
    rule = expressions_of(plugin)
    if rule is not None:
        found |= Change.JOINED if rule.reading.moves else Change.NONE
        found |= Change.TIME if rule.reading.timed else Change.NONE
    return found


@dataclass(slots=True, eq=False)
class _Group:
    """Pods that ask the same, and what has changed since they were looked at; `place` and `epoch` are the store's then."""

    helps: Change
    waiting: dict[str, Waiting] = field(default_factory=dict)
    changes: Change = Change.NONE
    place: int = 0
    epoch: int = 0


class Requeue:
    """The groups of unschedulable pods of one policy."""

    def __init__(self, policy: Policy, store: Store) -> None:
        self._policy, self._store = policy, store
        self._groups: dict[Hashable, _Group] = {}
        self._group_of: dict[str, Hashable] = {}
        self._helps: dict[tuple[str, frozenset[str]], Change] = {}
        self._changes = Change.NONE
        self._looked = self._timed = 0.0
        self._more = False

    def enter(self, entry: Waiting, likeness: Hashable) -> None:
        """A pod is unschedulable as the cluster stands."""
        pod = entry.pod
        helps = self._helped(self._policy.serving(pod, self._store), entry.rejectors)
        key = (likeness, pod.nominated_node)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(helps, place=len(self._store.log), epoch=self._store.epoch)
        group.helps |= helps
        group.waiting[pod.key] = entry
        self._group_of[pod.key] = key

    def leave(self, key: str) -> None:
        """The pod does not wait for changes any more."""
        found = self._group_of.pop(key, None)
        if found is not None:
            group = self._groups[found]
            del group.waiting[key]
            if not group.waiting:
                del self._groups[found]

    def note(self, change: Change) -> None:
        """Something has changed."""
        self._changes |= change

    def resume(self) -> None:
        """A pod that was busy can be tried again: what changed meanwhile is looked at now."""
        self._more = True

    def due(self, now: float, *, idle: bool) -> bool:
        """Whether `look` may find something now; `idle`: no pod is active."""
        if not self._groups:
            self._changes, self._more = Change.NONE, False
            return False
        return (self._more and idle) or (bool(self._changes) and now >= self._looked + INTERVAL) or self._late(now)

    def wake_at(self) -> float | None:
        """When the next look is due."""
        if not self._groups:
            return None
        moments = [self._looked + INTERVAL] if self._changes else []
        if any(Change.TIME in group.helps for group in self._groups.values()):
            moments.append(self._timed + TIMED_INTERVAL)
        return min(moments, default=None)

    def look(self, now: float) -> list[Waiting]:
        """Pods to wake, of every group that a change since the last look concerns and that fits now."""
        if self._late(now):
            self._timed, self._changes = now, self._changes | Change.TIME
        for group in self._groups.values():
            group.changes |= self._changes & group.helps
        self._changes, self._looked, self._more = Change.NONE, now, False
        found: list[Waiting] = []
        asked = 0
        for group in self._groups.values():
            if not group.changes:
                continue
            if asked >= GROUPS_AT_ONCE:
                self._more = True
                break
            asked += 1
            found += self._of(group)
        return found

    def _of(self, group: _Group) -> Iterable[Waiting]:
        """The pods of one group to wake; the group is done with, unless there are more pods that may fit as well."""
        rows = self._changed(group)
        ready = [entry for entry in group.waiting.values() if not entry.busy]
        if not ready:
            return ()
        worth = worth_trying(self._policy, self._store, ready[0].pod, rows)
        if worth and len(ready) > AT_ONCE:
            self._more = True
            ready.sort(key=lambda entry: (-entry.pod.spec.priority, entry.timestamp))
        elif len(ready) == len(group.waiting):  # what has changed still matters to those that are busy
            group.changes = Change.NONE
            group.place, group.epoch = len(self._store.log), self._store.epoch
        return islice(ready, AT_ONCE) if worth else ()

    def _changed(self, group: _Group) -> Rows | None:
        """Rows that may matter to the group; None: all, where what happened elsewhere can matter to a row."""
        local = Change.LEFT | Change.JOINED
        if group.epoch != self._store.epoch or group.changes & ~local or Change.JOINED in group.helps:
            return None
        return self._store.log.since(group.place)

    def _late(self, now: float) -> bool:
        late = now >= self._timed + TIMED_INTERVAL
        return late and any(Change.TIME in group.helps for group in self._groups.values())

    def _helped(self, profile: Profile, rejectors: frozenset[str]) -> Change:
        """What may help pods that these plugins rejected; without one (there are no nodes), everything."""
        found = self._helps.get((profile.scheduler_name, rejectors))
        if found is None:
            plugins = profile.plugins
            found = Change.NONE
            for name in rejectors:
                found |= helped_by(plugins[name]) if name in plugins else ALL
            found = self._helps[profile.scheduler_name, rejectors] = found or ALL
        return found
