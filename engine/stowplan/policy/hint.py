"""Queueing hints: whether a pod that no node took is worth another attempt, now that some rows have changed.

A hint is no second copy of a filter but the filters themselves, run on the changed rows: the pod fits one of them, or evictions
would make it fit (upstream: the hint functions of all plugins, by which a pod is woken where they cannot tell).
"""

from __future__ import annotations

import numpy as np

from stowplan.objects import Pod
from stowplan.plugins.plugin import Code
from stowplan.policy.attempt import admission
from stowplan.policy.compile import Policy
from stowplan.policy.decision import Refusals
from stowplan.policy.evaluate import ask_all, filter_rows, open_pod
from stowplan.policy.nominated import Attempt, with_nominated
from stowplan.policy.preempt import NAME, ineligible, search
from stowplan.state import Cluster, Rows, Store, Supposition


def worth_trying(policy: Policy, store: Store, pod: Pod, rows: Rows | None) -> bool:
    """Whether an attempt would end otherwise than in vain because of these rows of the store (None: of all)."""
    skipped, _ = admission(policy, store, pod)
    if skipped is not None or not store.nodes:
        return False
    profile, view = policy.serving(pod, store), Cluster(store)
    found = Attempt(pod, profile.scheduler_name)
    opening = found.opening = open_pod(profile, ask_all(profile, pod, view), view)
    if opening.refusal is not None:
        return False
    asked = _rows(store, pod, rows)
    if not len(asked):
        return False
    found.filtering = filter_rows(profile, opening, view.rows(asked))
    found.infeasible = _refusals(store, asked, found)
    crowded = {row: Supposition() for row in asked.tolist() if store.nodes[row].name in store.nominated}
    for row, status in zip(*with_nominated(profile, policy, store, found, crowded), strict=True) if crowded else ():
        if status is not None:
            found.infeasible.put(row, status)
    if (found.infeasible.codes[asked] < 0).any():
        return True
    return _could_preempt(policy, store, found)


def _rows(store: Store, pod: Pod, rows: Rows | None) -> Rows:
    """The rows to ask: those given, and the node that is reserved for the pod."""
    if rows is None:
        return np.arange(len(store.nodes), dtype=np.intp)
    mine = store.row_of.get(pod.nominated_node)
    found = np.unique(rows if mine is None else np.append(rows, mine))
    return found[found < len(store.nodes)].astype(np.intp)


def _refusals(store: Store, asked: Rows, found: Attempt) -> Refusals:
    """First refusals by row of the store; rows that were not asked have none."""
    assert found.opening is not None
    assert found.filtering is not None
    refusals, local = Refusals(len(store.nodes)), found.filtering.refusals()
    for place, status in enumerate(local.statuses):
        refusals.put(asked[local.codes == place], status)
    names = found.opening.names
    if names is not None:
        refusals.put(np.array([row for row in asked if store.nodes[row].name not in names], dtype=np.intp), found.opening.outside())
    return refusals


def _could_preempt(policy: Policy, store: Store, found: Attempt) -> bool:
    if NAME not in policy.profiles[found.profile].points["postFilter"] or ineligible(store, found) is not None:
        return False
    return search(policy, store, found).code is Code.SUCCESS
