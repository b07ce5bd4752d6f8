"""Explanations: what the pipeline found out, for every node and every plugin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from stowplan.policy.analysis import analysis_json
from stowplan.policy.attempt import attempt
from stowplan.policy.audit import audits, rule_errors
from stowplan.policy.compile import Policy, Profile
from stowplan.policy.evaluate import points
from stowplan.policy.extenders import left_out_json
from stowplan.policy.given import given
from stowplan.policy.nominated import Attempt
from stowplan.policy.subjects import find, pending
from stowplan.state import Numbers, Store
from stowplan.text import counted

API_VERSION = "stowplan.io/v1alpha1"
SHOWN = 3
"""pods that a repr names"""
POINTS = ("preEnqueue", "preFilter", "filter", "postFilter", "preScore", "score")


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """Every pod that was asked about, judged against the same cluster. Iterating computes one pod at a time."""

    policy: Policy
    store: Store
    pods: tuple[str, ...]
    """keys of the pods asked about, in the order of the input"""

    def __repr__(self) -> str:
        named = ", ".join(self.pods[:SHOWN]) + (", ..." if len(self.pods) > SHOWN else "")
        return f"<Explanation of {counted(len(self.pods), 'pod')} on {counted(len(self.store.nodes), 'node')}: {named or 'none'}>"

    def __iter__(self) -> Iterator[Attempt]:
        """Attempts; until the next one is asked for, a pod that runs is pending in the cluster."""
        for key in self.pods:
            with pending(self.store, find(self.store, key)):
                yield attempt(self.policy, self.store, self.store.pending[key])

    def _rules_json(self, found: Attempt) -> dict[str, Any]:
        """What rules in audit say, and where rules have no value, if there is any of that."""
        profile = self.policy.profiles.get(found.profile)
        if profile is None or found.skipped is not None:
            return {}
        names = [node.name for node in self.store.nodes]
        answer: dict[str, Any] = {}
        if profile.audits:
            said = audits(profile, self.store, found.pod, found.feasible)
            answer["audit"] = {audit.rule: audit.to_json(names, found.feasible) for audit in said}
        failed = {
            rule: {names[row]: text for text, rows in texts.items() for row in rows.tolist()}
            for rule, texts in rule_errors(profile, self.store, found).items()
        }
        return answer | ({"ruleErrors": failed} if failed else {})

    def to_json(self, *, analysis: bool = False) -> dict[str, Any]:
        """`{"pods": [...], "profiles": {...}}`, the shape of a golden, as a `stowplan.io/v1alpha1 Explanation`.

        What there is nothing to say about is left out, so ask with `get`:

        always               `pod`, `profile`
        not tried            `skipped` says why; gated: `preEnqueue`, and with `analysis` also `ifUngated`, judged without the gate
        tried                `preFilter`, `filters`; `infeasible` where nodes reject it
        it fits              `feasible`, `best`; `totals`, and `scores` and `preScore`, unless a single node was left
        it fits nowhere      `message`; `preemption` where that was tried

        Beside that, `boundTo` marks a pod that runs and was judged anew, and `extenders`, if there are any, says whose verdicts
        are left out. With `analysis`, which judges changed pods and so takes its time, a pod that was tried also has the members
        of `analysis_json`.
        """
        pods, judged = [], []
        nodes = [self.store.place_of(key) for key in self.pods]
        for node, found in zip(nodes, self, strict=True):
            pods.append(self._pod_json(found, analysis=analysis) | ({"boundTo": node} if node else {}))
            judged += [found.pod] if found.skipped is None else []
        answer = {"apiVersion": API_VERSION, "kind": "Explanation", "pods": pods}
        return answer | left_out_json(self.policy, judged) | {"profiles": profiles_json(self.policy)}

    def _pod_json(self, found: Attempt, *, analysis: bool) -> dict[str, Any]:
        answer = attempt_json(found, self.store) | self._rules_json(found)
        if not analysis:
            return answer
        if found.skipped == "gated":
            ungated = attempt(self.policy, self.store, found.pod, gated=False)
            return answer | {"ifUngated": self._pod_json(ungated, analysis=True)}
        return answer | analysis_json(self.policy, self.store, found)


def explain(policy: Policy | None, cluster: Store, pods: str | Iterable[str] | None = None) -> Explanation:
    """Judge pods on every node, each for itself: all that are pending, or those named `namespace/name` (one, or several).

    Without a policy kube-scheduler's defaults apply. A pod that runs is judged as if it were pending. Raises UnknownPodError, a
    KeyError, for a pod that is not there, and TypeError for a policy or cluster that is still to be loaded.
    """
    policy, cluster = given(policy, cluster)
    names = tuple(cluster.pending) if pods is None else (pods,) if isinstance(pods, str) else tuple(pods)
    return Explanation(policy, cluster, tuple(find(cluster, name).pod.key for name in names))


def profiles_json(policy: Policy) -> dict[str, Any]:
    """Effective plugins of each profile."""
    return {name: _profile_json(profile) for name, profile in policy.profiles.items()}


def _profile_json(profile: Profile) -> dict[str, Any]:
    points: dict[str, Any] = {point: list(profile.points[point]) for point in POINTS}
    return points | {"weights": {name: profile.weights[name] for name in profile.points["score"]}}


def attempt_json(found: Attempt, store: Store) -> dict[str, Any]:
    """One pod in the shape of a golden: empty members are left out."""
    names = [node.name for node in store.nodes]
    answer: dict[str, Any] = {"pod": found.pod.key, "profile": found.profile}
    if found.skipped is not None:
        answer["skipped"] = found.skipped
    if found.pre_enqueue:
        answer["preEnqueue"] = {name: status.to_json() for name, status in found.pre_enqueue.items()}
    if found.opening is None or found.filtering is None:
        return answer
    answer["preFilter"] = {name: status.to_json() for name, status in found.opening.statuses.items()}
    answer["filters"] = _filters_json(found, names)
    if len(found.feasible):
        answer["feasible"] = [names[row] for row in found.feasible.tolist()]
    if found.infeasible:
        answer["infeasible"] = {names[row]: status.to_json() for row, status in found.infeasible.items()}
    answer |= _scores_json(found, names)
    if found.message is not None:
        answer["message"] = found.message
    if found.preemption is not None:
        answer["preemption"] = found.preemption.to_json()
    return answer


def _filters_json(found: Attempt, names: list[str]) -> dict[str, Any]:
    assert found.opening is not None
    assert found.filtering is not None
    filters: dict[str, Any] = {}
    for name in found.filtering.names:
        status = found.opening.statuses.get(name)
        if status is not None and status.code.value != "Success":
            continue
        rejected = found.filtering.rejected[name].nonzero()[0].tolist()
        filters[name] = {names[row]: _without_plugin(found.filtering.status(name, row).to_json()) for row in rejected}
    return filters


def _without_plugin(status: dict[str, Any]) -> dict[str, Any]:
    status.pop("plugin", None)
    return status


def _scores_json(found: Attempt, names: list[str]) -> dict[str, Any]:
    scoring = found.scoring
    answer: dict[str, Any] = {}
    if scoring is None:
        return answer
    nodes = [names[row] for row in found.feasible.tolist()]
    if scoring.skipped:
        answer["preScore"] = {name: "Skip" if skipped else "Success" for name, skipped in scoring.skipped.items()}
    if scoring.error is not None:
        answer["scoreError"] = scoring.error
    else:
        if scoring.scores:
            answer["scores"] = {
                name: {
                    "weight": s.weight,
                    "raw": _by_node(nodes, s.raw, s.unit),
                    "normalized": _by_node(nodes, s.normalised, s.unit),
                }
                for name, s in scoring.scores.items()
            }
        answer["totals"] = _by_node(nodes, scoring.totals, scoring.scale)
    answer["best"] = [names[row] for row in found.best.tolist()]
    return answer


def _by_node(nodes: list[str], numbers: Numbers, unit: int) -> dict[str, float]:
    return {node: points(number, unit) for node, number in zip(nodes, numbers.tolist(), strict=True)}
