"""Rules in audit: what they would have done, found out beside the decision and without any part in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stowplan.objects import Pod
from stowplan.plugins.plugin import Plugin, Rejections
from stowplan.policy.compile import Profile
from stowplan.policy.evaluate import normalise, points
from stowplan.policy.nominated import Attempt
from stowplan.state import Cluster, Feasible, Numbers, Rows, Store

if TYPE_CHECKING:
    from stowplan.plugins.cel_rule.compiled import NoValue


@dataclass(frozen=True, slots=True)
class Audit:
    """One rule for one pod; arrays are over all rows of the store."""

    rule: str
    applies: bool
    """whether the rule has anything to say about the pod"""
    rejections: Rejections
    scores: Numbers | None
    """normalised, in steps of `unit`; meaningful on feasible rows"""
    unit: int

    @property
    def rejected(self) -> Rows:
        """Rows that it would reject."""
        masks = list(self.rejections.values())
        return np.logical_or.reduce(masks).nonzero()[0] if masks else np.zeros(0, dtype=np.intp)

    def to_json(self, names: list[str], feasible: Rows) -> dict[str, Any]:
        """Rejected nodes with the reasons, scores of the feasible ones."""
        if not self.applies:
            return {"skipped": True}
        reasons = {names[row]: reason.text for reason, mask in self.rejections.items() for row in mask.nonzero()[0].tolist()}
        answer: dict[str, Any] = {"rejects": reasons}
        if self.scores is not None:
            answer["scores"] = {names[row]: points(int(self.scores[row]), self.unit) for row in feasible.tolist()}
        return answer


def audits(profile: Profile, store: Store, pod: Pod, feasible: Rows) -> list[Audit]:
    """What each rule in audit says of the pod on every node."""
    profile.begin(len(store.nodes))
    return [_audit(plugin, store, pod, feasible) for plugin in profile.audits]


def _audit(plugin: Plugin, store: Store, pod: Pod, feasible: Rows) -> Audit:
    cluster = Cluster(store)
    ask = plugin.asks(pod, None, cluster)
    if ask is None:
        return Audit(plugin.name, False, {}, None, plugin.unit)
    rejections = (plugin.rejects(ask, cluster) if plugin.rejects else None) or {}
    weights = np.zeros(cluster.size, dtype=np.int64)
    weights[feasible] = 1
    raw = plugin.scores(ask, cluster, Feasible(weights)) if plugin.scores and cluster.size else None
    scores = None if raw is None else normalise(plugin, ask, raw, Feasible(weights))
    return Audit(plugin.name, True, rejections, scores, plugin.unit)


def rule_errors(profile: Profile, store: Store, found: Attempt) -> dict[str, dict[str, Rows]]:
    """By rule and error the rows for which a rule has no value; of scores only those among the feasible rows."""
    if found.opening is None or not any(not plugin.default for plugin in profile.plugins.values()):
        return {}
    from stowplan.plugins.cel_rule import errors  # noqa: PLC0415 - most profiles have no rules, and CEL takes long to import

    answer: dict[str, dict[str, Rows]] = {}
    everything = np.arange(len(store.nodes), dtype=np.intp)
    for name in dict.fromkeys((*profile.points["filter"], *profile.points["score"])):
        plugin, ask = profile.plugins[name], found.opening.asks[name]
        if plugin.default or ask is None:
            continue
        rows = everything if plugin.scores is None else found.feasible
        profile.begin(len(everything))  # whoever asks afterwards must not find that the decision has used it all
        failed = errors(plugin, ask, Cluster(store, rows))
        if failed:
            answer[name] = {text: rows[mask] for text, mask in failed.items()}
    return answer


def without_value(profile: Profile, asks: Mapping[str, Any]) -> Mapping[str, NoValue]:
    """Rules that had no value for some node that was looked at; scores also where a node does not take the pod."""
    if profile.allowance is None:
        return {}
    from stowplan.plugins.cel_rule.compiled import no_values  # noqa: PLC0415 - as above

    return no_values(asks)


def objections(profile: Profile, store: Store, pod: Pod, row: int) -> Mapping[str, str]:
    """Rules in audit that would have rejected one node, with the reason."""
    found = {}
    profile.begin(len(store.nodes))
    cluster = Cluster(store, np.array([row], dtype=np.intp))
    for plugin in profile.audits:
        ask = plugin.asks(pod, None, cluster) if plugin.rejects else None
        for reason, mask in (plugin.rejects(ask, cluster) or {}).items() if plugin.rejects and ask is not None else ():
            if mask[0]:
                found[plugin.name] = reason.text
    return found
