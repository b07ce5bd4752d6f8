"""Plugins that reach beyond a row, asked about one representative row of each group; each answer is kept until it may change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stowplan.plugins.plugin import Plugin
from stowplan.policy.evaluate import any_of, normalise
from stowplan.policy.groups import Groups
from stowplan.policy.layers import REJECTED, Layer, Plan, Score
from stowplan.state import Cluster, CodeSource, Feasible, Mask, Numbers, Reach, Store, Watch


@dataclass(slots=True)
class Verdict:
    """What one filter says of the groups."""

    plugin: Plugin
    ask: Any
    watch: Watch
    rejected: Mask | None = None
    """None where it rejects nothing"""


@dataclass(slots=True)
class Answer:
    """What one score adds to the groups."""

    score: Score
    component: int | None
    """component of the groups that holds its raw values; None where the plugin is asked for them"""
    watch: Watch
    values: Numbers | None = None
    """weighted; None where it skips"""
    even: bool = False
    """whether its raw values are the same for all groups: which of them are feasible then makes no difference"""


class Wide:
    """Scores of the groups of one class."""

    def __init__(self, plan: Plan, asks: Mapping[str, Any], store: Store, layers: tuple[Layer, ...]) -> None:
        self._store = store
        self.codes: dict[CodeSource, None] = {}
        """everything that plugins touched and that tells rows apart"""
        self._filters = plan.filters(Reach.DOMAIN, asks)
        self._kept = [score for layer in layers for score in layer.normalised]
        scores = (plan.scores(Reach.DOMAIN, asks, normalised=normalised) for normalised in (False, True))
        self._asked = [score for found in scores for score in found]
        self.faulty = False
        self._rejected: Mask = np.zeros(0, dtype=np.bool_)

    def start(self, groups: Groups) -> None:
        """Ask everything anew, about these groups."""
        self._groups = groups

        def watch() -> Watch:
            return Watch(self.codes, groups.census)

        self._verdicts = [Verdict(plugin, ask, watch()) for plugin, ask in self._filters]
        self._answers = [Answer(score, place, watch()) for place, score in enumerate(self._kept)]
        self._answers += [Answer(score, None, watch()) for score in self._asked]
        self._watches = [verdict.watch for verdict in self._verdicts] + [answer.watch for answer in self._answers]
        for verdict in self._verdicts:
            self._judge(verdict)
        self._combine()
        for answer in self._answers:
            self._answer(answer)
        self._sum()

    def refresh(self, *, stirred: bool) -> bool:
        """Bring the scores up to date; `stirred`: a group is new, or came to or lost all its rows. True if scores changed."""
        if not stirred and not any(watch.stale() for watch in self._watches):
            return False
        new = len(self.scores) != len(self._groups)
        different = stirred
        for verdict in self._verdicts:
            if new or verdict.watch.stale():
                different = self._judge(verdict) or different
        different = different and self._combine()
        changed = different or new
        for answer in self._answers:
            if new or (different and not answer.even) or answer.watch.stale():
                changed = self._answer(answer) or changed
        if changed:
            self._sum()
        return changed

    def _combine(self) -> bool:
        """Which groups the filters reject, together. True if that has changed."""
        rejected = self._groups.weights == 0
        for verdict in self._verdicts:
            if verdict.rejected is not None:
                rejected |= verdict.rejected
        if len(rejected) == len(self._rejected) and not np.count_nonzero(rejected != self._rejected):
            return False
        self._rejected = rejected
        self.accepted: Numbers = (~rejected).astype(np.int64)
        """1 for the groups that pass"""
        return True

    def _sum(self) -> None:
        total = np.zeros(len(self._groups), dtype=np.int64)
        for answer in self._answers:
            if answer.values is not None:
                total += answer.values
        total[self._rejected] = REJECTED
        self.scores: Numbers = total
        """total of each group, REJECTED where a filter rejects it or none of its rows is acceptable"""

    def _view(self, watch: Watch) -> Cluster:
        watch.restart()
        return Cluster(self._store, self._groups.representatives, watch=watch)

    def _judge(self, verdict: Verdict) -> bool:
        """Ask a filter. True if its answer has changed."""
        assert verdict.plugin.rejects is not None
        found = verdict.plugin.rejects(verdict.ask, self._view(verdict.watch))
        before, now = verdict.rejected, any_of(found, len(self._groups)) if found else None
        verdict.rejected = now
        for reason, mask in (found or {}).items():
            if reason.error and np.count_nonzero(mask):
                self.faulty = True
        return before is not now and not _same(before, now)

    def _answer(self, answer: Answer) -> bool:
        """Ask a score. True if its answer has changed."""
        score, cluster = answer.score, self._view(answer.watch)
        feasible = Feasible(self._groups.weights * self.accepted, answer.watch)
        if answer.component is None:
            raw = score.raw(cluster, feasible)
        else:
            raw = self._groups.values(answer.component)
            answer.even = not np.count_nonzero(raw != raw[:1]) and bool(np.count_nonzero(self.accepted))
        before, now = answer.values, None if raw is None else score.factor * normalise(score.plugin, score.ask, raw, feasible)
        answer.values = now
        return before is not now and not _same(before, now)


def _same(before: NDArray[Any] | None, now: NDArray[Any] | None) -> bool:
    return before is not None and now is not None and len(before) == len(now) and not np.count_nonzero(before != now)
