"""One scheduling attempt: admission, PreFilter, filters with nominated pods, scoring, and the message."""

from __future__ import annotations

from typing import Any

import numpy as np

from stowplan.objects import Pod
from stowplan.plugins.plugin import Code
from stowplan.policy.compile import Policy, Profile
from stowplan.policy.decision import NO_NODES, SUCCESS, Refusals, Status, fit_error
from stowplan.policy.evaluate import Filtering, ask_all, filter_rows, open_pod, score_rows
from stowplan.policy.nominated import Attempt, with_nominated
from stowplan.policy.preempt import post_filter
from stowplan.state import Cluster, Feasible, Store, Supposition


def admission(policy: Policy, store: Store, pod: Pod) -> tuple[str | None, dict[str, Status]]:
    """Why no profile tries the pod now (None: one does), with the PreEnqueue statuses of a gated pod."""
    return admission_to(policy.profile_of(pod, store), policy, store, pod)


def admission_to(name: str | None, policy: Policy, store: Store, pod: Pod) -> tuple[str | None, dict[str, Status]]:
    """The `admission` of a pod of which one knows the profile."""
    if name is None:
        return "no profile", {}
    if texts := gates(policy.profiles[name], store, pod):
        return "gated", {name: SUCCESS if text is None else Status(Code.UNRESOLVABLE, (text,)) for name, text in texts.items()}
    return (f"skip schedule deleting pod: {pod.key}" if pod.terminating else None), {}


def gates(profile: Profile, store: Store, pod: Pod) -> dict[str, str | None]:
    """What each PreEnqueue plugin has against the pod; empty if none has anything."""
    cluster, plugins = Cluster(store), profile.plugins
    texts = {name: gate(pod, cluster) if (gate := plugins[name].gate) else None for name in profile.points["preEnqueue"]}
    return {} if all(text is None for text in texts.values()) else texts


def attempt(policy: Policy, store: Store, pod: Pod, *, gated: bool = True) -> Attempt:
    """Judge one pending pod on every node, as the cluster stands; unless `gated`, as if no plugin kept it from the queue."""
    name = policy.profile_of(pod, store)
    found = Attempt(pod, name or pod.spec.scheduler_name)
    found.skipped, found.pre_enqueue = admission_to(name, policy, store, pod)
    if found.skipped == "gated" and not gated:
        found.skipped, found.pre_enqueue = None, {}
    if found.skipped is not None:
        return found
    profile, cluster = policy.profiles[found.profile], Cluster(store)
    opening = found.opening = open_pod(profile, ask_all(profile, pod, cluster), cluster)
    filtering = found.filtering = filter_rows(profile, opening, cluster)
    if not store.nodes:
        found.message = NO_NODES
    elif opening.refusal is not None:
        found.infeasible = Refusals(len(store.nodes))
        found.infeasible.put(np.arange(len(store.nodes)), opening.refusal)
        found.message = fit_error(len(store.nodes), (), ", ".join(opening.refusal.reasons))
        post_filtered(policy, store, found)
    else:
        _choose(profile, policy, store, found, filtering)
    return found


def on_nominated(policy: Policy, store: Store, pod: Pod, asks: dict[str, Any]) -> Attempt | None:
    """The attempt of an admitted pod whose nominated node takes it, in which no other node was looked at; None for any other.

    `attempt` comes to the same, and says why a node does not take the pod.
    """
    row = store.row_of.get(pod.nominated_node)
    if row is None:
        return None
    found = Attempt(pod, policy.profile_of(pod, store) or "")
    profile = policy.profiles[found.profile]
    opening = found.opening = open_pod(profile, asks, Cluster(store))
    if opening.refusal is not None:
        return None
    found.feasible = np.array([row], dtype=np.intp)
    found.filtering = filter_rows(profile, opening, Cluster(store, found.feasible))
    _, crowded = with_nominated(profile, policy, store, found, {row: Supposition()})
    if found.filtering.first[0] >= 0 or any(crowded):
        return None
    score(profile, store, found)
    return found


def _choose(profile: Profile, policy: Policy, store: Store, found: Attempt, filtering: Filtering) -> None:
    opening = found.opening
    assert opening is not None
    nominated = store.row_of.get(found.pod.nominated_node)
    refusal = None if nominated is None else _alone(profile, policy, store, found, nominated)
    if nominated is not None and refusal is None:
        found.feasible = np.array([nominated], dtype=np.intp)
    else:
        _filter(profile, policy, store, found, filtering)
        if nominated is not None and refusal is not None and not len(found.feasible):
            _blame(store, found, nominated, refusal)
        errors = found.infeasible.rows(Code.ERROR)
        if len(errors):
            error = found.infeasible[int(errors[store.name_ranks()[errors].argmin()])]
            found.message = f'running "{error.plugin}" filter plugin: {error.reasons[0]}'
            found.infeasible, found.feasible = Refusals(0), found.feasible[:0]
            return
    if not len(found.feasible):
        found.message = fit_error(len(store.nodes), found.infeasible.reasons())
        post_filtered(policy, store, found)
        return
    score(profile, store, found)


def _blame(store: Store, found: Attempt, row: int, refusal: Status) -> None:
    """The nominated node keeps its own status also where PreFilter left it out, and its plugin joins those that narrowed."""
    assert found.opening is not None
    if found.opening.names is not None:
        outside = found.opening.outside([refusal.plugin])
        left_out = [r for r in found.infeasible if store.nodes[r].name not in found.opening.names]
        found.infeasible.put(np.array(left_out, dtype=np.intp), outside)
    found.infeasible.put(row, refusal)


def post_filtered(policy: Policy, store: Store, found: Attempt) -> None:
    """PostFilter: its message joins that of the attempt."""
    found.preemption = post_filter(policy, store, found)
    if found.preemption is not None and found.preemption.message:
        found.message = f"{found.message} {found.preemption.message}"


def score(profile: Profile, store: Store, found: Attempt) -> None:
    """Score the feasible rows and pick the best; an error counts only where there is a choice."""
    assert found.opening is not None
    feasible = Feasible(np.ones(len(found.feasible), dtype=np.int64))
    scoring = score_rows(profile, found.opening.asks, Cluster(store, found.feasible), feasible)
    if scoring.error is None:
        found.best = found.feasible[scoring.totals == scoring.totals.max()]
    elif len(found.feasible) == 1:
        found.best = found.feasible
    else:
        found.message, found.feasible, found.infeasible = scoring.error, found.feasible[:0], Refusals(0)
        return
    found.scoring = scoring


def _filter(profile: Profile, policy: Policy, store: Store, found: Attempt, filtering: Filtering) -> None:
    opening = found.opening
    assert opening is not None
    candidates = np.ones(len(store.nodes), dtype=np.bool_)
    if opening.names is not None:
        candidates[:] = False
        candidates[[store.row_of[name] for name in opening.names if name in store.row_of]] = True
    passed = candidates & (filtering.first < 0)
    found.infeasible = filtering.refusals()
    if opening.names is not None:
        found.infeasible.put(~candidates, opening.outside())
    for row, status in zip(*with_nominated(profile, policy, store, found), strict=True):
        if candidates[row] and status is not None:
            passed[row] = False
            found.infeasible.put(row, status)
    rows = np.flatnonzero(passed)
    found.feasible = rows[np.argsort(store.name_ranks()[rows])]


def _alone(profile: Profile, policy: Policy, store: Store, found: Attempt, row: int) -> Status | None:
    """Why one node is refused, nominated pods counted, or None; PreFilter's narrowing does not matter."""
    assert found.filtering is not None
    _, refusals = with_nominated(profile, policy, store, found, {row: Supposition()})
    crowded = next((status for status in refusals if status is not None), None)
    return crowded or (None if found.filtering.first[row] < 0 else found.filtering.first_status(row))
