"""A rule over the rows of a view: rows that look the same to it are evaluated once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from stowplan.cel import Program
from stowplan.cel.environment import COST_LIMIT
from stowplan.cel.meter import Total
from stowplan.plugins.cel_rule.allowance import SEAT, SIGHT, START, Purpose
from stowplan.plugins.cel_rule.compiled import PodSide, Texts
from stowplan.plugins.cel_rule.nodeview import Scene
from stowplan.state import Cluster, Numbers, Rows, domain_of

FEW = 16
"""So few rows are evaluated one by one where domains matter."""
SOME = 200
"""So many rows are faster compared one by one than sorted, and their answers are remembered."""
MOST_REMEMBERED = 4096

ROW = 20
"""Units of a row besides what its expressions cost."""

Judge: TypeAlias = Callable[[Any, Mapping[str, Any], Texts], tuple[Any, str | None]]
"""(value or CelError, variables, makes messages) -> the rule's answer, and why it has no value if it has none; hashable."""


def answers(program: Program, judge: Judge, side: PodSide, cluster: Cluster) -> tuple[list[tuple[Any, str | None]], Rows]:
    """Answers of a rule, and for each asked row which of them it gets; ExhaustedError where that takes too much work."""
    reading, size = side.expressions.reading, cluster.size
    arrays = list(reading.apart(cluster))  # also where they are not needed: a watch must learn of them
    ask = _Evaluation(program, judge, side, cluster)
    worlds = cluster.changes is not None and (reading.beyond or reading.pods)
    if worlds or (reading.beyond and size <= FEW):  # each row is a world of its own, or sorting does not pay
        return [ask.at(place) for place in range(size)], np.arange(size, dtype=np.intp)
    if reading.beyond:
        return _refined(arrays, ask)
    if size > SOME:
        first, of = _sorted(arrays, size)
        return [ask.at(place) for place in first.tolist()], of
    return _remembered(arrays, ask, side.answers.setdefault(judge, {}))


def budget(side: PodSide, cluster: Cluster) -> Total:
    """The budget of one evaluation over the asked rows. ExhaustedError where nothing is left."""
    total = side.expressions.allowance.share(cluster.size, purpose_of(cluster), pods=side.expressions.reading.pods)
    total.spend(START)
    return total


def purpose_of(cluster: Cluster) -> Purpose:
    """What a look at the rows is for."""
    return Purpose.DECIDING if cluster.changes is None else Purpose.SUPPOSING


class _Evaluation:
    """The rule at one place after the other."""

    def __init__(self, program: Program, judge: Judge, side: PodSide, cluster: Cluster) -> None:
        self._program, self._judge, self._side = program, judge, side
        self.scene: Scene | None = None
        self.cluster, self.size = cluster, cluster.size

    def begin(self) -> Scene:
        """What places are looked at with, made for the first of them: often all answers are known."""
        side, cluster = self._side, self.cluster
        self._total, self._purpose = budget(side, cluster), purpose_of(cluster)
        self._texts = Texts(side.expressions.allowance, cluster.size)
        self.scene = Scene(cluster, side.expressions.reading, side.pod.pod.namespace, side.now)
        return self.scene

    def at(self, place: int) -> Any:
        """The answer for one of the asked rows."""
        side = self._side
        scene = self.begin() if self.scene is None else self.scene
        seats = len(self.cluster.pods_at(place)) if side.expressions.reading.pods else 0
        side.expressions.allowance.charge(SIGHT + SEAT * seats, self._purpose)
        meter = self._total.part(COST_LIMIT)
        bindings = side.at(scene, place, meter)
        value = self._program.evaluate(bindings, meter)
        self._total.settle(meter, ROW)
        return self._judge(value, bindings, self._texts)


def _remembered(arrays: list[Numbers], ask: _Evaluation, known: dict[Any, Any]) -> tuple[list[Any], Rows]:
    """Rows are told apart by their codes, which mean the same for as long as the cluster lives."""
    if len(known) > MOST_REMEMBERED:
        known.clear()
    parts: list[list[int]] = [array.tolist() for array in arrays]
    keys: list[Any] = parts[0] if len(parts) == 1 else list(zip(*parts, strict=True)) if parts else [()] * ask.size
    found = list(map(known.get, keys))
    if None in found:
        for place, key in enumerate(keys):
            if key not in known:
                known[key] = ask.at(place)
            found[place] = known[key]
    return found, np.arange(ask.size, dtype=np.intp)


def _refined(arrays: list[Numbers], ask: _Evaluation) -> tuple[list[Any], Rows]:
    """Which labels make domains shows while evaluating; each one found tells more rows apart."""
    known: dict[int, Any] = {}
    keys: set[str] = set()
    while True:
        first, of = _sorted(arrays, ask.size)
        known |= {place: ask.at(place) for place in first.tolist() if place not in known}
        found = ask.scene.domains() - keys if ask.scene is not None else set()
        if not found:
            return [known[place] for place in first.tolist()], of
        arrays = [*arrays, *(ask.cluster[domain_of(key)].codes for key in sorted(found))]
        keys |= found


def _sorted(arrays: list[Numbers], size: int) -> tuple[Rows, Rows]:
    """Places of rows that differ, and for each row which of them stands for it."""
    if not size:
        return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
    code = np.zeros(size, dtype=np.int64)
    first, groups = np.zeros(1, dtype=np.intp), 1
    for array in arrays:
        if groups == size or (array == array[0]).all():
            continue
        _, part = np.unique(array, return_inverse=True)
        _, first, code = np.unique(code * (int(part.max()) + 1) + part, return_index=True, return_inverse=True)
        groups = len(first)
    return first.astype(np.intp), code.astype(np.intp)
