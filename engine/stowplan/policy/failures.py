"""Failed attempts by class: an unschedulable pod gets the answer of one like it for as long as a new attempt would find the same.

Where pods have come or gone since, that can be said without a new attempt if there is nobody to evict: then what an attempt
finds is what the filters say of each row, and only the changed rows have to be asked.
"""

from __future__ import annotations

import numpy as np

from stowplan.objects import Pod
from stowplan.plugins.plugin import Code
from stowplan.policy.attempt import attempt
from stowplan.policy.compile import Policy, Profile
from stowplan.policy.evaluate import NO_ROWS, filter_rows, skips
from stowplan.policy.layers import reach_of
from stowplan.policy.nominated import Attempt
from stowplan.policy.preempt import ineligible, with_victims
from stowplan.state import Census, Cluster, Reach, Rows, Store, Watch

MANY = 256
"""Changes after which a new attempt is made without looking at them."""


class Failure:
    """An attempt that found no node, and what its outcome depends on besides nodes, nominations and other facts."""

    def __init__(self, store: Store, profile: Profile, found: Attempt, *, crowded: bool) -> None:
        """`crowded`: whether nominated pods counted."""
        self.found, self._store, self._profile = found, store, profile
        self._place = len(store.log)
        self._watch: Watch | None = None
        """of the filters that look beyond a row; None where only a new attempt can tell whether the outcome is the same"""
        opening, refused = found.opening, found.infeasible
        if opening is None or opening.refusal is not None or opening.names is not None or crowded or not len(refused):
            return
        if not self._could_release() and not self._could_evict(np.arange(len(store.nodes))):
            self._watch = Watch({}, Census())
            self._look_beyond(self._watch)

    def _could_release(self) -> bool:
        """Whether a PostFilter plugin has rows on which it could give something up: those that it refused itself."""
        refusing = {status.plugin for status in self.found.infeasible.statuses}
        plugins = self._profile.plugins
        return any(plugins[name].releases is not None and name in refusing for name in self._profile.points["postFilter"])

    def _could_evict(self, rows: Rows) -> bool:
        """Whether a search for victims would find some on these rows."""
        found = self.found
        if not self._profile.points["postFilter"] or ineligible(self._store, found) is not None:
            return False
        open_to_it = np.intersect1d(rows, found.infeasible.rows(Code.UNSCHEDULABLE))
        return bool(with_victims(self._store, open_to_it, found.pod.spec.priority).any())

    def _look_beyond(self, watch: Watch) -> None:
        assert self.found.opening is not None
        asks, cluster = self.found.opening.asks, Cluster(self._store, watch=watch)
        nothing = Cluster(self._store, NO_ROWS, watch=watch)
        for name in self._profile.points["filter"]:
            plugin = self._profile.plugins[name]
            if reach_of(plugin) is Reach.DOMAIN and asks[name] is not None and not skips(plugin, asks[name], nothing):
                assert plugin.rejects is not None
                plugin.rejects(asks[name], cluster)
                if plugin.final is not None:
                    plugin.final(asks[name], cluster)

    def holds(self) -> bool:
        """Whether a new attempt would come to the same, as far as pods that came or went are concerned."""
        log = self._store.log
        if self._place == len(log):
            return True
        changed = log.since(self._place, MANY)
        if self._watch is None or changed is None or self._watch.stale():
            return False
        self._place = len(log)
        return self._same(np.unique(changed))

    def _same(self, rows: Rows) -> bool:
        found = self.found
        assert found.opening is not None
        if self._could_evict(rows):
            return False
        refused = filter_rows(self._profile, found.opening, Cluster(self._store, rows)).refusals()
        return len(refused) == len(rows) and all(refused[i] == found.infeasible[row] for i, row in enumerate(rows.tolist()))


class Failures:
    """The latest failure of each class."""

    def __init__(self, policy: Policy, store: Store) -> None:
        self._policy, self._store = policy, store
        self._known: dict[int, tuple[tuple[int | str, ...], Failure]] = {}

    def attempt(self, number: int, pod: Pod, *, crowded: bool) -> Attempt:
        """The attempt of a pod of a class that no node takes, or of one like it; `crowded`: whether nominated pods count."""
        store, spec = self._store, pod.spec
        stamp = (store.epoch, store.nominations, store.lookups, spec.priority, spec.preemption_policy)
        known = self._known.get(number)
        if known is not None and known[0] == stamp and known[1].holds():
            return known[1].found
        found = attempt(self._policy, store, pod)
        failure = Failure(store, self._policy.serving(pod, store), found, crowded=crowded)
        found.filtering = None  # nobody asks for it any more, and it is large
        self._known[number] = stamp, failure
        return found
