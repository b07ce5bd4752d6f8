"""Rules: filters and scores written in CEL, compiled to the same `Plugin` value as the built-in ones.

rejects  a node for which a filter is false; with onError Reject also one for which it has no value
scores   a node by the value of the score; one without a value gets 0
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from stowplan.cel import CelError
from stowplan.objects import Pod
from stowplan.plugins.cel_rule.compiled import Ask, Expressions
from stowplan.plugins.cel_rule.rows import Judge, answers
from stowplan.plugins.plugin import FILTERS, FILTERS_AND_SCORES, MAX_SCORE, Normalise, Plugin, Reason, Rejections
from stowplan.state import Cluster, Feasible, Numbers

UNIT = 1_000_000
"""Steps of a point in which scores with fractions are kept."""
MOST = 1_000_000.0
"""Largest score of a rule, and with the other sign the smallest."""
MOST_TEXTS = 256
"""Distinct messages of one rule for one pod; further nodes get the last of them."""
LONGEST = 1024
"""Characters of a message that an expression makes."""


@dataclass(frozen=True, slots=True, eq=False)
class Conduct:
    """What a rule does with the values of its expressions."""

    message: str
    final: bool
    """evicting pods cannot help"""
    fails_closed: bool
    """a node without a value is rejected"""
    unit: int = 1
    """steps of a point"""


def filter_rule(expressions: Expressions, conduct: Conduct) -> Plugin:
    """The plugin of a filter."""
    return Plugin(
        expressions.name,
        FILTERS,
        default=False,
        reads=expressions.reading.columns,
        asks=partial(_asks, expressions),
        rejects=partial(_rejects, expressions, conduct, partial(_verdict, expressions, conduct)),
        personal=expressions.reading.personal,
    )


def score_rule(expressions: Expressions, conduct: Conduct, normalize: str) -> Plugin:
    """The plugin of a score; with `fails_closed` it also rejects the nodes that have none."""
    judge = partial(_unscored, expressions, conduct)
    return Plugin(
        expressions.name,
        FILTERS_AND_SCORES if conduct.fails_closed else FILTERS_AND_SCORES - FILTERS,
        default=False,
        reads=expressions.reading.columns,
        asks=partial(_asks, expressions),
        rejects=partial(_rejects, expressions, conduct, judge) if conduct.fails_closed else None,
        scores=partial(_scores, expressions, partial(_point, conduct.unit)),
        normalise=_NORMALISE[normalize](conduct.unit),
        unit=conduct.unit,
        personal=expressions.reading.personal,
    )


def _asks(expressions: Expressions, pod: Pod, _: object, cluster: Cluster) -> Ask | None:
    side = expressions.view(pod, cluster)
    failure = None
    if expressions.when is not None:
        applies = expressions.when.evaluate(side.bindings)
        if isinstance(applies, CelError):
            failure = f"when: {applies.message}"
        elif applies is not True:
            return None
    return Ask(expressions.name, side.key(), failure, side)


def _rejects(expressions: Expressions, conduct: Conduct, judge: Judge, ask: Ask, cluster: Cluster) -> Rejections:
    if not cluster.size:
        return {}
    if ask.failure is not None:
        return {_failed(expressions, conduct, ask.failure): np.full(cluster.size, conduct.fails_closed)}
    assert ask.side is not None
    reasons, of = answers(expressions.value, judge, ask.side, cluster)
    numbers = _numbered(reasons, Reason(conduct.message, conduct.final))
    if len(numbers) == 1:
        return {}
    codes = np.array([numbers[reason] for reason in reasons], dtype=np.int64)[of]
    return {reason: codes == number for reason, number in _texts(numbers)}


def _numbered(reasons: list[Reason | None], plain: Reason) -> dict[Reason | None, int]:
    """A number for each reason, 0 for none; reasons beyond the limit share one."""
    numbers: dict[Reason | None, int] = {None: 0}
    for reason in reasons:
        if len(numbers) >= MOST_TEXTS and reason not in numbers:
            numbers[reason] = numbers.setdefault(plain, len(numbers))
        else:
            numbers.setdefault(reason, len(numbers))
    return numbers


def _texts(numbers: dict[Reason | None, int]) -> list[tuple[Reason, int]]:
    """The reasons with their numbers, without those that share one with the plain reason."""
    found: dict[int, Reason] = {}
    for reason, number in numbers.items():
        if reason is not None:
            found.setdefault(number, reason)
    return [(reason, number) for number, reason in found.items()]


def _verdict(expressions: Expressions, conduct: Conduct, value: Any, bindings: Mapping[str, Any]) -> Reason | None:
    """Why a node is rejected for which the filter has this value; None if it is not."""
    if value is True:
        return None
    if isinstance(value, CelError):
        return _failed(expressions, conduct, value.message) if conduct.fails_closed else None
    if value is not False:
        return _failed(expressions, conduct, "the filter is neither true nor false") if conduct.fails_closed else None
    text = None if expressions.message is None else expressions.message.evaluate(bindings)
    return Reason(printable(text) if isinstance(text, str) and text.strip() else conduct.message, conduct.final)


def _unscored(expressions: Expressions, conduct: Conduct, value: Any, _: Mapping[str, Any]) -> Reason | None:
    """Why a node is rejected that has no score."""
    if _point(conduct.unit, value, _) is not None:
        return None
    return _failed(expressions, conduct, value.message if isinstance(value, CelError) else "the score is no number in range")


def printable(text: str) -> str:
    """A text made by an expression, cut and without characters that a terminal would act upon."""
    return "".join(c if c.isprintable() else " " for c in text[:LONGEST]).strip()


def _failed(expressions: Expressions, conduct: Conduct, why: str) -> Reason:
    return Reason(f"rule {expressions.name} failed: {printable(why)}", conduct.final)


def _point(unit: int, value: Any, _: Mapping[str, Any]) -> int | None:
    """A score in steps of the unit; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or abs(value) > MOST:
        return None
    return int(value) if unit == 1 else round(value * unit)


def _scores(expressions: Expressions, judge: Judge, ask: Ask, cluster: Cluster, _: Feasible) -> Numbers | None:
    if ask.failure is not None or not cluster.size:
        return np.zeros(cluster.size, dtype=np.int64)
    assert ask.side is not None
    points, of = answers(expressions.value, judge, ask.side, cluster)
    return np.array([point or 0 for point in points], dtype=np.int64)[of]


# Normalisation: from raw scores to 0..100, in steps of the unit


def _none(_: int) -> Normalise | None:
    return None


def _min_max(unit: int) -> Normalise:
    """The lowest score becomes 0, the highest 100; all equal scores become 0."""

    def normalise(_: object, raw: Numbers, feasible: Feasible) -> Numbers:
        lowest = feasible.lowest(raw)
        return _share(raw - lowest, feasible.highest(raw) - lowest, unit)

    return normalise


def _max_to_hundred(unit: int) -> Normalise:
    """The highest score becomes 100, 0 stays 0; what is below 0 stays in proportion."""
    return lambda _, raw, feasible: _share(raw, feasible.highest(raw, initial=0), unit)


def _reverse(unit: int) -> Normalise:
    """The highest score becomes 0, 0 becomes 100."""
    return lambda _, raw, feasible: MAX_SCORE * unit - _share(raw, feasible.highest(raw, initial=0), unit)


def _share(part: Numbers, whole: int, unit: int) -> Numbers:
    if whole <= 0:
        return np.zeros_like(part)
    if unit == 1:
        return part * MAX_SCORE // whole
    return np.rint(part / whole * (MAX_SCORE * unit)).astype(np.int64)


_NORMALISE: dict[str, Callable[[int], Normalise | None]] = {
    "None": _none,
    "MinMax": _min_max,
    "MaxToHundred": _max_to_hundred,
    "Reverse": _reverse,
}

__all__ = ["UNIT", "Conduct", "filter_rule", "score_rule"]
