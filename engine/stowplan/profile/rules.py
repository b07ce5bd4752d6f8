"""Rules and variables of a profile: filters and scores written as expressions, not compiled yet.

In a SchedulerPolicy they stand in the profile itself, in a KubeSchedulerConfiguration under the pluginConfig of
`stowplan.io/Rules`, which kube-scheduler ignores.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stowplan.profile.decode import decode
from stowplan.profile.yaml_tree import Leaf, Origin, Table, Tree, plain
from stowplan.text import Diagnostic, Kind, Path, Problem, Severity, show_path, unsupported

if TYPE_CHECKING:
    from stowplan.profile.model import Profile

RULES = "stowplan.io/Rules"
"""The plugin name under which a KubeSchedulerConfiguration holds rules."""
MODES = ("Enforce", "Audit", "Off")
NORMALIZE = ("None", "MinMax", "MaxToHundred", "Reverse")
ON_ERROR = {"filter": ("Reject", "Admit"), "score": ("Zero", "Reject")}
MOST_RULES = 64
MOST_WEIGHT = 10_000
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9._]{0,61}[A-Za-z0-9])?")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_ONLY_FOR = {
    "filter": ("message", "messageExpression", "preemptionHelps"),
    "score": ("normalize", "weight"),
}


@dataclass(frozen=True, slots=True)
class Variable:
    """A named expression that rules, and variables after it, use as `variables.name`."""

    name: str = ""
    expression: str = ""
    origin: Origin | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Rule:
    """A filter or a score as it was written; exactly one of the two is set. None and "" stand for what was left out."""

    name: str = ""
    when: str | None = None
    filter: str | None = None
    score: str | None = None
    message: str = ""
    message_expression: str | None = None
    preemption_helps: bool | None = None
    on_error: str = ""
    mode: str = "Enforce"
    normalize: str = "None"
    weight: float | None = None
    params: Tree | None = field(default=None, compare=False)
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def point(self) -> str:
        """`filter` or `score`."""
        return "filter" if self.filter is not None else "score"


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules of one profile."""

    variables: tuple[Variable, ...] = ()
    rules: tuple[Rule, ...] = ()


def rules_of(profile: Profile) -> tuple[RuleSet, list[Diagnostic]]:
    """The rules of a profile wherever they are written, and everything wrong with them but the expressions."""
    found = RuleSet(profile.variables, profile.rules)
    diagnostics = [_report(profile.origin, problem) for problem in _problems(found, fractional=True)]
    for index, config in enumerate(profile.plugin_config):
        if config.name == RULES and config.args is not None:
            path: Path = ("pluginConfig", index, "args")
            origin = profile.origin.under(*path) if profile.origin else Origin(Leaf(None, None), path)
            tree = config.args.without("apiVersion", "kind") if isinstance(config.args, Table) else config.args
            more, wrong = decode(RuleSet, origin, tree)
            diagnostics += wrong
            diagnostics += [_report(profile.origin, problem.under(*path)) for problem in _problems(more, fractional=False)]
            found = RuleSet((*found.variables, *more.variables), (*found.rules, *more.rules))
    return found, diagnostics


def params_of(profile: Profile, rule: Rule) -> dict[str, Any]:
    """The parameters of a rule: its own, and over them those in the pluginConfig of its name."""
    own = plain(rule.params) if isinstance(rule.params, Table) else {}
    given = profile.args_of(rule.name)
    return {**own, **given} if isinstance(given, dict) else dict(own)


def _report(origin: Origin | None, problem: Problem) -> Diagnostic:
    if origin is None:
        return Diagnostic(problem.kind.code, Severity.ERROR, problem.message, None, show_path(problem.path))
    return origin.problem(problem)


def _problems(found: RuleSet, *, fractional: bool) -> Iterator[Problem]:
    if len(found.rules) > MOST_RULES:
        yield Problem(("rules",), Kind.INVALID, f"a profile may have {MOST_RULES} rules", len(found.rules))
    seen: set[str] = set()
    for index, variable in enumerate(found.variables):
        yield from (problem.under("variables", index) for problem in _variable(variable, seen))
        seen.add(variable.name)
    seen = set()
    for index, rule in enumerate(found.rules):
        yield from (problem.under("rules", index) for problem in _rule(rule, seen, fractional=fractional))
        seen.add(rule.name)


def _variable(variable: Variable, seen: set[str]) -> Iterator[Problem]:
    if not variable.name:
        yield Problem(("name",), Kind.REQUIRED)
    elif not _IDENTIFIER.fullmatch(variable.name):
        yield Problem(("name",), Kind.INVALID, "must be letters, digits and _, and not begin with a digit", variable.name)
    elif variable.name in seen:
        yield Problem(("name",), Kind.DUPLICATE, value=variable.name)
    if not variable.expression.strip():
        yield Problem(("expression",), Kind.REQUIRED)


def _rule(rule: Rule, seen: set[str], *, fractional: bool) -> Iterator[Problem]:
    if not rule.name:
        yield Problem(("name",), Kind.REQUIRED)
    elif not _NAME.fullmatch(rule.name):
        yield Problem(("name",), Kind.INVALID, "must be at most 63 letters, digits, -, _ and .", rule.name)
    elif rule.name in seen:
        yield Problem(("name",), Kind.DUPLICATE, value=rule.name)
    if (rule.filter is None) == (rule.score is None):
        what = "a rule is a filter or a score" if rule.filter is None else "a rule cannot be a filter and a score, write two"
        yield Problem(("filter",), Kind.REQUIRED if rule.filter is None else Kind.FORBIDDEN, what)
    else:
        yield from _misplaced(rule)
    yield from _enumerations(rule)
    if rule.message and rule.message_expression is not None:
        yield Problem(("message",), Kind.FORBIDDEN, "messageExpression says it already")
    if rule.weight is not None:
        yield from _weight(rule.weight, fractional=fractional)
    if rule.params is not None and not isinstance(rule.params, Table):
        yield Problem(("params",), Kind.INVALID, "must be a mapping", plain(rule.params))


def _enumerations(rule: Rule) -> Iterator[Problem]:
    choices = (
        ("mode", rule.mode, MODES),
        ("normalize", rule.normalize, NORMALIZE),
        ("onError", rule.on_error or ON_ERROR[rule.point][0], ON_ERROR[rule.point]),
    )
    for name, value, known in choices:
        if value not in known:
            yield unsupported((name,), value, known)


def _misplaced(rule: Rule) -> Iterator[Problem]:
    written = {
        "message": bool(rule.message),
        "messageExpression": rule.message_expression is not None,
        "preemptionHelps": rule.preemption_helps is not None,
        "normalize": rule.normalize != "None",
        "weight": rule.weight is not None,
    }
    other = "score" if rule.point == "filter" else "filter"
    for name in _ONLY_FOR[other]:
        if written[name]:
            yield Problem((name,), Kind.FORBIDDEN, f"only a {other} has it")


def _weight(weight: float, *, fractional: bool) -> Iterator[Problem]:
    if weight == 0 or abs(weight) > MOST_WEIGHT or math.isnan(weight):
        detail = f"must not be 0 (write mode: Off) and at most {MOST_WEIGHT}"
        yield Problem(("weight",), Kind.INVALID, detail, weight)
    elif not fractional and (weight < 0 or not weight.is_integer()):
        detail = "must be a positive integer here; fractions and negative weights need a SchedulerPolicy"
        yield Problem(("weight",), Kind.INVALID, detail, weight)
