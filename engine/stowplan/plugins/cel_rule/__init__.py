"""Rules: filters and scores written in CEL, compiled to the same `Plugin` value as the built-in ones.

rejects  a node for which a filter is false; with onError Reject also one for which it has no value
scores   a node by the value of the score; one without a value gets 0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from stowplan.cel import CelError, Program
from stowplan.cel.column import Column
from stowplan.cel.meter import ExhaustedError
from stowplan.objects import Pod
from stowplan.plugins.cel_rule.columns import bindings_of, suits
from stowplan.plugins.cel_rule.compiled import Ask, Expressions, PodSide, Texts
from stowplan.plugins.cel_rule.faults import NUMBERS, column_errors, failed_rows, no_bool, no_score, point, printable, why_failed
from stowplan.plugins.cel_rule.rows import SOME, Judge, answers, budget
from stowplan.plugins.plugin import FILTERS, FILTERS_AND_SCORES, MAX_SCORE, Normalise, Plugin, Reason, Rejections
from stowplan.state import Cluster, Feasible, Mask, Numbers, Rows

UNIT = 1_000_000
"""Steps of a point in which scores with fractions are kept."""
Verdict: TypeAlias = tuple[Reason | None, str | None]
"""Why a row is rejected, if it is; why the rule has no value for it, if it has none."""
MOST_TEXTS = 256
"""Distinct messages of one rule for one pod; further nodes get the last of them."""


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


@dataclass(frozen=True, slots=True, eq=False)
class _Rule:
    expressions: Expressions
    conduct: Conduct


def filter_rule(expressions: Expressions, conduct: Conduct) -> Plugin:
    """The plugin of a filter."""
    return Plugin(
        expressions.name,
        FILTERS,
        default=False,
        reads=expressions.reading.columns,
        asks=partial(_asks, expressions),
        rejects=partial(_rejects, _Rule(expressions, conduct), partial(_verdict, expressions, conduct)),
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
        rejects=partial(_rejects, _Rule(expressions, conduct), judge) if conduct.fails_closed else None,
        scores=partial(_scores, expressions, conduct.unit, partial(_scored, conduct.unit)),
        normalise=_NORMALISE[normalize](conduct.unit),
        unit=conduct.unit,
        personal=expressions.reading.personal,
    )


def expressions_of(plugin: Plugin) -> Expressions | None:
    """The expressions of a plugin that was written in CEL; None for any other."""
    if not isinstance(plugin.asks, partial) or plugin.asks.func is not _asks:
        return None
    found: Expressions = plugin.asks.args[0]
    return found


def _asks(expressions: Expressions, pod: Pod, _: object, cluster: Cluster) -> Ask | None:
    side = expressions.view(pod, cluster)
    failure = None
    if expressions.when is not None:
        applies = _applies(expressions.when, side)
        if isinstance(applies, CelError):
            failure = f"when: {applies.message}"
        elif applies is not True:
            return None
    return Ask(expressions.name, side.key(), failure, side)


def _applies(when: Program, side: PodSide) -> Any:
    try:
        return side.once(when, side.bindings)
    except ExhaustedError as exhausted:
        side.exhausted = exhausted.error.message
        return exhausted.error


def _remember(ask: Ask, exhausted: ExhaustedError, cluster: Cluster) -> str:
    """A rule that needs too much for all nodes has no value on some of them either: answers must not depend on who else asks.

    What was only supposed leaves nothing behind.
    """
    assert ask.side is not None
    if cluster.changes is None:
        ask.side.exhausted = exhausted.error.message
    return exhausted.error.message


def _column(expressions: Expressions, side: PodSide, cluster: Cluster) -> Column:
    """The values of all rows; ExhaustedError where they take too much work."""
    total = budget(side, cluster)
    column = expressions.value.evaluate_rows(bindings_of(side, cluster, total), cluster.size, total).column
    if total.exhausted:
        raise total.exceeded()
    return column


def _rejects(rule: _Rule, judge: partial[Verdict], ask: Ask, cluster: Cluster) -> Rejections:
    if not cluster.size:
        return {}
    failure = ask.missing
    if failure is None:
        try:
            return _judged(rule, judge, ask, cluster)
        except ExhaustedError as exhausted:
            failure = _remember(ask, exhausted, cluster)
    return {_failed(rule.expressions, rule.conduct, failure): np.full(cluster.size, rule.conduct.fails_closed)}


def _judged(rule: _Rule, judge: partial[Verdict], ask: Ask, cluster: Cluster) -> Rejections:
    expressions, conduct = rule.expressions, rule.conduct
    assert ask.side is not None
    if judge.func is _verdict and _in_columns(expressions, cluster):
        column = _column(expressions, ask.side, cluster)
        if column.kind == "bool":
            refused = ~column.data if column.failures is None else ~column.data & ~column.failures.mask
            ask.side.looked(cluster, failed_rows(column), partial(why_failed, column))
            found = _refusing(rule, judge, ask, cluster, refused)
            return {**found, **_failing(expressions, conduct, column)}
    return _by_rows(rule, judge, ask, cluster)


def _in_columns(expressions: Expressions, cluster: Cluster) -> bool:
    """Whether columns are the faster way; where rows are few, answers are remembered unless they depend on other rows."""
    many = cluster.size > SOME or (expressions.reading.beyond and cluster.size > 1)
    return many and cluster.changes is None and suits(expressions.reading)


def _failing(expressions: Expressions, conduct: Conduct, column: Column) -> Rejections:
    """Rows for which the filter has no value."""
    found: dict[Reason, Mask] = {}
    if column.failures is None or not conduct.fails_closed:
        return found
    for number, error in enumerate(column.failures.table, 1):
        reason, mask = _failed(expressions, conduct, error.message), column.failures.codes == number
        found[reason] = found[reason] | mask if reason in found else mask
    return {reason: mask for reason, mask in found.items() if mask.any()}


def _refusing(rule: _Rule, judge: Judge, ask: Ask, cluster: Cluster, refused: Mask) -> Rejections:
    """Rows for which the filter is false."""
    if not refused.any():
        return {}
    if rule.expressions.message is None:
        return {Reason(rule.conduct.message, rule.conduct.final): refused}
    places = refused.nonzero()[0]
    found: dict[Reason, Mask] = {}
    for reason, mask in _by_rows(rule, judge, ask, cluster.rows(cluster.asked[places])).items():
        found[reason] = np.zeros(cluster.size, dtype=np.bool_)
        found[reason][places[mask]] = True
    return found


def _by_rows(rule: _Rule, judge: Judge, ask: Ask, cluster: Cluster) -> Rejections:
    assert ask.side is not None
    conduct = rule.conduct
    reasons, of = _answered(rule.expressions, judge, ask.side, cluster)
    if reasons.count(None) == len(reasons):
        return {}
    numbers = _numbered(reasons, Reason(conduct.message, conduct.final))
    codes = np.array([numbers[reason] for reason in reasons], dtype=np.int64)[of]
    return {reason: codes == number for reason, number in _texts(numbers)}


def _answered(expressions: Expressions, judge: Judge, side: PodSide, cluster: Cluster) -> tuple[list[Any], Rows]:
    """Answers row by row, and for each asked row which of them it gets."""
    found, of = answers(expressions.value, judge, side, cluster)
    failed = [why is not None for _, why in found]
    side.looked(cluster, np.array(failed)[of] if True in failed else None, lambda place: found[of[place]][1] or "")
    return [answer for answer, _ in found], of


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


def _verdict(expressions: Expressions, conduct: Conduct, value: Any, bindings: Mapping[str, Any], texts: Texts) -> Verdict:
    """Why a node is rejected for which the filter has this value; None if it is not. And why that is no value."""
    if value is True:
        return None, None
    if value is not False:
        why = no_bool(value) or ""
        return (_failed(expressions, conduct, why) if conduct.fails_closed else None), why
    text = None if expressions.message is None else texts.say(expressions.message, bindings)
    return Reason(printable(text) if isinstance(text, str) and text.strip() else conduct.message, conduct.final), None


def _unscored(expressions: Expressions, conduct: Conduct, value: Any, *_: Any) -> Verdict:
    """Why a node is rejected that has no score."""
    why = no_score(value)
    return (None if why is None else _failed(expressions, conduct, why)), why


def _scored(unit: int, value: Any, *_: Any) -> tuple[int, str | None]:
    """A score in steps of the unit, 0 for what is none."""
    return point(unit, value) or 0, no_score(value)


def _failed(expressions: Expressions, conduct: Conduct, why: str) -> Reason:
    return Reason(f"rule {expressions.name} failed: {printable(why)}", conduct.final)


def _steps(column: Column, failed: Mask, unit: int) -> Numbers:
    """Scores in steps of the unit, 0 for what is none."""
    points: Numbers = np.where(failed, 0, column.data)
    return points.astype(np.int64) if unit == 1 else np.rint(points * unit).astype(np.int64)


def _scores(expressions: Expressions, unit: int, judge: Judge, ask: Ask, cluster: Cluster, _: Feasible) -> Numbers | None:
    if ask.missing is not None or not cluster.size:
        return np.zeros(cluster.size, dtype=np.int64)
    assert ask.side is not None
    try:
        if _in_columns(expressions, cluster):
            column = _column(expressions, ask.side, cluster)
            if column.kind in NUMBERS:
                failed = failed_rows(column)
                ask.side.looked(cluster, failed, partial(why_failed, column))
                return _steps(column, failed, unit)
        points, of = _answered(expressions, judge, ask.side, cluster)
    except ExhaustedError as exhausted:
        _remember(ask, exhausted, cluster)
        return np.zeros(cluster.size, dtype=np.int64)
    return np.array(points, dtype=np.int64)[of]


# Errors, for explanations: where a rule has no value, whatever that leads to


def errors(plugin: Plugin, ask: Ask, cluster: Cluster) -> Mapping[str, Mask]:
    """Rows for which the expression of a rule has no value, by the error."""
    expressions = expressions_of(plugin)
    if expressions is None or not cluster.size:
        return {}
    failure = ask.missing
    if failure is None:
        try:
            return _errors(plugin, expressions, ask, cluster)
        except ExhaustedError as exhausted:
            failure = _remember(ask, exhausted, cluster)
    return {failure: np.ones(cluster.size, dtype=np.bool_)}


def _errors(plugin: Plugin, expressions: Expressions, ask: Ask, cluster: Cluster) -> Mapping[str, Mask]:
    assert ask.side is not None
    if _in_columns(expressions, cluster):
        column = _column(expressions, ask.side, cluster)
        if column.kind == ("bool" if plugin.scores is None else column.kind if column.kind in NUMBERS else ""):
            return column_errors(column)
    found, of = answers(expressions.value, _no_bool if plugin.scores is None else _no_score, ask.side, cluster)
    texts = [why for _, why in found]
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    codes = np.array([numbers[text] for text in texts], dtype=np.int64)[of]
    return {text: codes == number for text, number in numbers.items() if text is not None}


def _no_bool(value: Any, *_: Any) -> tuple[None, str | None]:
    return None, no_bool(value)


def _no_score(value: Any, *_: Any) -> tuple[None, str | None]:
    return None, no_score(value)


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

__all__ = ["UNIT", "Conduct", "errors", "expressions_of", "filter_rule", "score_rule"]
