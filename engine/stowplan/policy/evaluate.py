"""One pod against the rows of a cluster: the whole pipeline, every plugin's answer kept.

Functions here run the same for all rows, for the rows that changed and for one representative row of a group; what they
return is what `explain` shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stowplan.objects import Pod
from stowplan.plugins.plugin import Code, Plugin, Reason, Refusal, Rejections, ScoringError
from stowplan.policy.compile import Profile
from stowplan.policy.decision import SKIP, SUCCESS, Refusals, Status
from stowplan.state import IGNORED, Cluster, Feasible, Mask, Numbers, Rows
from stowplan.state.feasible import NOTHING


@dataclass(slots=True)
class Opening:
    """What PreFilter found out: asks by plugin, statuses, and whether the pod is refused or narrowed."""

    asks: dict[str, Any] = field(default_factory=dict)
    statuses: dict[str, Status] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)
    reached: set[str] = field(default_factory=set)
    """plugins that the chain ran before a refusal stopped it"""
    refusal: Status | None = None
    names: frozenset[str] | None = None
    narrowing: list[str] = field(default_factory=list)

    def outside(self, others: Sequence[str] = ()) -> Status:
        """Status of the nodes that narrowing leaves out; `others` are named beside the plugins that narrowed."""
        culprits = " ".join(sorted({*self.narrowing, *others}))
        return Status(Code.UNRESOLVABLE, (f"node(s) didn't satisfy plugin(s) [{culprits}]",))

    def narrow(self, plugin: str, names: frozenset[str]) -> None:
        """Keep only the named nodes; an empty rest refuses the pod."""
        self.narrowing.append(plugin)
        self.names = names if self.names is None else self.names & names
        if not self.names:
            culprits = sorted(self.narrowing)
            text = (
                f"node(s) didn't satisfy plugin {culprits[0]}"
                if len(culprits) == 1
                else f"node(s) didn't satisfy plugin(s) [{' '.join(culprits)}] simultaneously"
            )
            self.refusal = Status(Code.UNRESOLVABLE, (text,))


def ask_all(profile: Profile, pod: Pod, cluster: Cluster) -> dict[str, Any]:
    """What the pod wants of each plugin that takes part; None where a plugin has nothing to say. A decision begins with it."""
    profile.begin(cluster.size)
    return {name: plugin.asks(pod, profile.args[name], cluster) for name, plugin in profile.plugins.items()}


def open_pod(profile: Profile, asks: Mapping[str, Any], cluster: Cluster, *, briefly: bool = False) -> Opening:
    """Run PreFilter. Every plugin is asked, also after a refusal; `refusal` and `names` are those of the chain.

    `briefly`: only these two are wanted, so plugins that can neither refuse a pod nor narrow the search are not asked.
    """
    opening = Opening(dict(asks))
    for name in profile.points["preFilter"]:
        if briefly and profile.plugins[name].refuses is None and profile.plugins[name].narrows is None:
            continue
        plugin, ask = profile.plugins[name], asks[name]
        status = _prefilter(plugin, ask, cluster)
        opening.statuses[name] = status
        if status.code is Code.SKIP:
            opening.skipped.add(name)
        if opening.refusal is not None and opening.refusal.code is not Code.UNSCHEDULABLE:
            continue
        opening.reached.add(name)
        if status.code is not Code.SUCCESS:
            if status.code is not Code.SKIP:
                opening.refusal = Status(status.code, status.reasons, name)
        elif status.nodes is not None:
            opening.narrow(name, frozenset(status.nodes))
    return opening


def _prefilter(plugin: Plugin, ask: Any, cluster: Cluster) -> Status:
    if ask is None or skips(plugin, ask, cluster.rows(NO_ROWS)):
        return SKIP
    refusal: Refusal | None = plugin.refuses(ask, cluster) if plugin.refuses else None
    if refusal is not None:
        return Status(refusal.code, tuple(sorted(refusal.reasons)))
    names = plugin.narrows(ask) if plugin.narrows else None
    return SUCCESS if names is None else Status(Code.SUCCESS, nodes=tuple(sorted(names)))


def skips(plugin: Plugin, ask: Any, nothing: Cluster) -> bool:
    """Whether a plugin has nothing to filter in the cluster as it stands; `nothing` is a view of no rows.

    A plugin that skips is not asked about supposed pods either.
    """
    return plugin.rejects is None or plugin.rejects(ask, nothing) is None


NO_ROWS: Rows = np.zeros(0, dtype=np.intp)


@dataclass(slots=True)
class Filtering:
    """Every filter's answer over the rows of one view."""

    names: Sequence[str]
    """filters that were asked, in order"""
    rejections: dict[str, Rejections]
    rejected: dict[str, Mask]
    first: Numbers
    """index into `names` of the first filter that rejects the row, -1 where all let it pass"""
    final: dict[str, Mask]

    def status(self, name: str, place: int) -> Status:
        """What one filter says of the asked row at `place`."""
        found = [reason for reason, mask in self.rejections[name].items() if mask[place]]
        if not found:
            return SUCCESS
        code = Code.UNSCHEDULABLE
        if any(reason.error for reason in found):
            code = Code.ERROR
        elif any(reason.final for reason in found) or (name in self.final and self.final[name][place]):
            code = Code.UNRESOLVABLE
        return Status(code, tuple(sorted(reason.text for reason in found)), name)

    def first_status(self, place: int) -> Status:
        """What the first rejecting filter says of the asked row at `place`."""
        return self.status(self.names[int(self.first[place])], place)

    def refusals(self) -> Refusals:
        """What the first rejecting filter says of each asked row, by its place."""
        found = Refusals(len(self.first))
        for index in np.unique(self.first).tolist():
            if index >= 0:
                name = self.names[index]
                for places in self._patterns(name, (self.first == index).nonzero()[0]):
                    found.put(places, self.status(name, int(places[0])))
        return found

    def _patterns(self, name: str, places: Rows) -> list[Rows]:
        """Places split into those that the same reasons of one filter reject."""
        masks = [*self.rejections[name].values(), *([self.final[name]] if name in self.final else [])]
        code = np.zeros(len(places), dtype=np.int64)
        for mask in masks:
            _, code = np.unique(code * 2 + mask[places], return_inverse=True)
        return [places[code == number] for number in range(int(code.max(initial=-1)) + 1)]


def filter_rows(profile: Profile, opening: Opening, cluster: Cluster) -> Filtering:
    """Ask every filter that did not skip about every row of the view."""
    names = [name for name in profile.points["filter"] if name not in opening.skipped]
    rejections: dict[str, Rejections] = {}
    rejected: dict[str, Mask] = {}
    final: dict[str, Mask] = {}
    first = np.full(cluster.size, -1, dtype=np.int64)
    for index, name in enumerate(names):
        plugin, ask = profile.plugins[name], opening.asks[name]
        rejections[name] = answer(profile, plugin, ask, cluster)
        rejected[name] = mask = any_of(rejections[name], cluster.size)
        first[mask & (first < 0)] = index
        if plugin.final is not None and mask.any():
            final[name] = plugin.final(ask, cluster)
    return Filtering(names, rejections, rejected, first, final)


def answer(profile: Profile, plugin: Plugin, ask: Any, cluster: Cluster) -> Rejections:
    """What one filter rejects; nothing where it has nothing to say."""
    found = (plugin.rejects(ask, cluster) if plugin.rejects and ask is not None else None) or {}
    if (fault := lost_state(profile, plugin, "filter")) is not None:
        found = {reason: mask for reason, mask in found.items() if reason in plugin.unaided}
        return found | {Reason(fault, error=True): ~any_of(found, cluster.size)}
    return found


BEFORE = {"filter": "preFilter", "preScore": "preFilter", "reserve": "preFilter", "score": "preScore"}


def lost_state(profile: Profile, plugin: Plugin, point: str) -> str | None:
    """Why the plugin fails at a point of this profile: the point before, which prepares for it, is left out."""
    fault = plugin.stateless.get(point)
    before = "preFilter" if point == "score" and plugin.recalls else BEFORE[point]
    return fault if fault and plugin.name in profile.points[point] and plugin.name not in profile.points[before] else None


def forgets(profile: Profile, plugin: Plugin) -> bool:
    """Whether the plugin would score and reserve what its own filter has found, but the profile leaves that filter out."""
    return plugin.recalls and plugin.name not in profile.points["filter"]


def any_of(rejections: Mapping[Reason, Mask], size: int) -> Mask:
    """Rows that at least one reason rejects."""
    masks = list(rejections.values())
    if not masks:
        return np.zeros(size, dtype=np.bool_)
    if len(masks) == 1:
        return masks[0]
    found = masks[0] | masks[1]
    for mask in masks[2:]:
        found |= mask
    return found


def points(steps: int, unit: int) -> float:
    """Steps of a score as points: an integer where it is whole."""
    return round(steps / unit, 6) if steps % unit else steps // unit


@dataclass(slots=True)
class Scored:
    """One score plugin's answer over the rows of one view."""

    weight: float
    raw: Numbers
    """in steps of `unit`, as `normalised`"""
    normalised: Numbers
    unit: int = 1
    """steps of a point"""
    factor: int = 1
    """what a step counts in the total"""

    @property
    def weighted(self) -> Numbers:
        """The part of the total, in its steps."""
        return self.factor * self.normalised


@dataclass(slots=True)
class Scoring:
    """Every score plugin's answer; `error` ends the attempt unless there is a single feasible node."""

    skipped: dict[str, bool] = field(default_factory=dict)
    """PreScore by plugin, in order: True where it was skipped"""
    scores: dict[str, Scored] = field(default_factory=dict)
    totals: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    scale: int = 1
    """steps of a point in the totals"""
    error: str | None = None


def score_rows(profile: Profile, asks: Mapping[str, Any], cluster: Cluster, feasible: Feasible) -> Scoring:
    """Score every row of the view, all of them feasible. A profile without score plugins gives each node 1."""
    scoring = Scoring(scale=profile.scale)
    if not profile.points["score"]:
        scoring.totals = np.ones(cluster.size, dtype=np.int64)
        return scoring
    raws: dict[str, Numbers | None] = {}
    try:
        for name in profile.points["preScore"]:
            raws[name] = raw_scores(profile, profile.plugins[name], asks[name], cluster, feasible)
        scoring.skipped = {name: raw is None for name, raw in raws.items()}
        for name in profile.points["score"]:
            if name not in raws:
                raws[name] = raw_scores(profile, profile.plugins[name], asks[name], cluster, feasible)
    except ScoringError as error:
        scoring.error = str(error)
        return scoring
    scoring.totals = np.zeros(cluster.size, dtype=np.int64)
    for name in profile.points["score"]:
        raw = raws[name]
        if raw is None:
            continue
        plugin = profile.plugins[name]
        normalised = normalise(plugin, asks[name], raw, feasible)
        scored = Scored(profile.weights[name], np.where(raw == IGNORED, 0, raw), normalised, plugin.unit, profile.factor(plugin))
        scoring.scores[name] = scored
        scoring.totals += scored.weighted
    return scoring


def normalise(plugin: Plugin, ask: Any, raw: Numbers, feasible: Feasible) -> Numbers:
    """Scores of one plugin in 0..100; rows that take no part get 0."""
    if plugin.normalise is None:
        return raw
    ignored = raw == NOTHING
    scores = plugin.normalise(ask, raw, feasible)
    return np.where(ignored, 0, scores) if np.count_nonzero(ignored) else scores


def raw_scores(profile: Profile, plugin: Plugin, ask: Any, cluster: Cluster, feasible: Feasible) -> Numbers | None:
    """Raw scores of one plugin; None where it skips. Raises ScoringError with the text of the whole attempt's failure."""
    if (fault := lost_state(profile, plugin, "preScore")) is not None:
        raise ScoringError(f'running PreScore plugin "{plugin.name}": {fault}')
    try:
        raw = plugin.scores(ask, cluster, feasible) if plugin.scores and ask is not None else None
    except ScoringError as error:
        raise ScoringError(f'running PreScore plugin "{plugin.name}": {error}') from None
    if (fault := lost_state(profile, plugin, "score")) is not None:
        raise ScoringError(f'running Score plugins: plugin "{plugin.name}" failed with: {fault}')
    if raw is not None and forgets(profile, plugin):
        return np.zeros_like(raw)
    if raw is None and plugin.name not in profile.points["preScore"] and "preScore" in plugin.points:
        return np.zeros(cluster.size, dtype=np.int64)  # only PreScore can skip
    return raw
