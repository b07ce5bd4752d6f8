"""Rules of a profile become plugins: expressions are compiled, and what is wrong with them is told where it was written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from stowplan.cel import Environment, Program, Struct, Type, compile_expression
from stowplan.cel.check import Checked
from stowplan.cel.environment import COST_LIMIT
from stowplan.cel.kinds import BOOL, TIMESTAMP, is_dyn
from stowplan.plugins.cel_rule import UNIT, Conduct, filter_rule, score_rule
from stowplan.plugins.cel_rule.allowance import Allowance
from stowplan.plugins.cel_rule.compiled import Expressions, Variable
from stowplan.plugins.cel_rule.functions import FUNCTIONS
from stowplan.plugins.cel_rule.reading import Reading
from stowplan.plugins.cel_rule.types import DOMAIN, namespace_type, node_type, pod_type, type_of_params
from stowplan.plugins.plugin import Plugin
from stowplan.policy.expand import Effective
from stowplan.policy.guards import NONE, Places, ensured, unguarded
from stowplan.policy.rule_lints import Lint, lints, missing
from stowplan.profile import Origin, PluginSet, Profile, Rule, params_of, rules_of
from stowplan.profile.embedded import part_of
from stowplan.profile.rules import NORMALIZE
from stowplan.text import Code, Diagnostic, Severity, Source, Span, show_path

WEIGHT_UNIT = 1000
"""Steps in which weights with fractions are kept."""
NUMBERS = ("int", "double")
SIZES = {
    ("node", "pods"): 512,
    ("node", "taints"): 32,
    ("node", "images"): 128,
    ("node", "status", "images"): 128,
    ("node", "status", "conditions"): 32,
    ("pod", "spec", "containers"): 32,
    ("pod", "spec", "containers", "[]", "env"): 128,
}
"""Greatest lengths that estimates of cost reckon with."""
NODE_NAMES = ("node", "cluster")
MATCH = "match"
"""Where the condition of a rollout is written."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """The rules of a profile as plugins, in order of writing."""

    plugins: tuple[Plugin, ...] = ()
    modes: Mapping[str, str] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()
    allowance: Allowance | None = None

    @property
    def audits(self) -> tuple[Plugin, ...]:
        """Those that only watch."""
        return tuple(plugin for plugin in self.plugins if self.modes[plugin.name] == "Audit")

    def unit(self, name: str) -> int:
        """Steps of a point in which a plugin scores."""
        return next((plugin.unit for plugin in self.plugins if plugin.name == name), 1)

    def scale(self, effective: Effective) -> int:
        """Steps of a point in totals: fine enough for all weights and scores to be integers."""
        return UNIT * WEIGHT_UNIT if any(self.unit(name) > 1 for name in effective.points["score"]) else 1

    def join(self, effective: Effective, profile: Profile) -> Effective:
        """The lists with the rules that act: those enabled by name stand where they were put, the others at the end.

        Disabling `*` is about the default plugins; a rule is disabled by its name.
        """
        sets = dict(profile.plugins.items())
        points = {point: self._running(point, names, sets) for point, names in effective.points.items()}
        weights = dict(effective.weights)
        for plugin in self.plugins:
            if plugin.name in points["score"]:
                given = [e.weight for point in ("score", "multiPoint") for e in sets[point].enabled if e.name == plugin.name]
                weights[plugin.name] = next(filter(None, given), self.weights[plugin.name])
        enabled = effective.enabled | {plugin.name for plugin in self.plugins}
        return replace(effective, points=points, weights={name: weights[name] for name in points["score"]}, enabled=enabled)

    def _running(self, point: str, names: tuple[str, ...], sets: Mapping[str, PluginSet]) -> tuple[str, ...]:
        running = [name for name in names if self.modes.get(name, "Enforce") == "Enforce"]
        for plugin in self.plugins:
            name, places = plugin.name, (*plugin.points, "multiPoint")
            disabled = any(entry.name == name for place in places for entry in sets[place].disabled)
            if point in plugin.points and self.modes[name] == "Enforce" and name not in running and not disabled:
                running.append(name)
        return tuple(running)


def compile_rules(profile: Profile, taken: Collection[str]) -> Compiled:
    """The plugins of the rules of a profile; `taken` are names that rules must not have. Rules that are off are compiled too."""
    found, wrong = rules_of(profile)
    compiler = _Compiler(profile, wrong)
    for variable in found.variables:
        compiler.variable(variable.name, variable.expression, variable.origin)
    plugins, names = [], set(taken)
    for rule in found.rules:
        if rule.name in taken:
            compiler.report(rule.origin, "name", Code.DUPLICATE, f'"{rule.name}" is the name of a plugin')
        plugin = compiler.rule(rule) if (rule.filter is None) != (rule.score is None) else None
        if plugin is not None and rule.name not in names:
            plugins.append(plugin)
        names.add(rule.name)
    compiler.unused()
    modes = {rule.name: rule.mode for rule in found.rules}
    weights = {rule.name: _weight(rule) for rule in found.rules}
    return Compiled(tuple(plugins), modes, weights, tuple(compiler.diagnostics), compiler.allowance)


def compile_match(text: str, origin: Origin | None) -> tuple[Expressions | None, tuple[Diagnostic, ...]]:
    """The condition `match` of a rollout, over a pod and its namespace alone, and what is wrong with it or strange about it.

    What changes by itself while a pod waits must not decide which version of a profile it gets.
    """
    compiler = _Compiler(Profile(), [])
    env = compiler.over({"pod": pod_type(), "namespace": namespace_type()})
    program = compiler.program(text, env, origin, MATCH)
    if program is None:
        return None, tuple(compiler.diagnostics)
    compiler.wants(origin, program, MATCH, ("bool",))
    for _, node, place in unguarded(program.checked, NONE, {}):
        compiler.remark(program, missing(node, place, "the pod then stays with the stable version"), origin, MATCH)
    reading = compiler.reading([program])
    fleeting = {".".join(("pod", *path[:1])) for path in reading.pod if path[:1] in ((), ("status",), ("age",))}
    for name in sorted(fleeting):
        message = f"{name} changes while a pod waits: a pod would change from one version to the other"
        compiler.report(origin, MATCH, Code.EXPRESSION, message, "go by labels, annotations, the owner, the spec or the namespace")
    return Expressions(MATCH, program, None, None, {}, {}, reading), tuple(compiler.diagnostics)


def compile_text(source: Source, profile: Profile | None = None) -> Expressions | tuple[Diagnostic, ...]:
    """An expression alone, with the variables of a profile; everything that is wrong with it if it is none."""
    compiler = _Compiler(profile or Profile(), [])
    for variable in rules_of(profile)[0].variables if profile else ():
        compiler.variable(variable.name, variable.expression, variable.origin)
    compiler.diagnostics.clear()  # a variable that is broken is told about where the policy is read
    program = compile_expression(source.text, compiler.environment({}), source)
    if not isinstance(program, Program):
        return tuple(replace(diagnostic, code=_code(diagnostic)) for diagnostic in program)
    return Expressions(source.name, program, None, None, compiler.used([program]), {}, compiler.reading([program]))


def _weight(rule: Rule) -> float:
    if rule.weight is None:
        return 1
    return int(rule.weight) if rule.weight.is_integer() else rule.weight


class _Compiler:
    """Compiles the expressions of one profile, collecting what is wrong."""

    def __init__(self, profile: Profile, diagnostics: list[Diagnostic]) -> None:
        self.profile, self.diagnostics = profile, diagnostics
        self.allowance = Allowance()
        self.variables: dict[str, Variable] = {}
        self.types: dict[str, Type] = {}
        self.readings: dict[str, Reading] = {}
        self.origins: dict[str, Origin | None] = {}
        self.visited: set[str] = set()
        """variables that rules use"""

    def report(self, origin: Origin | None, name: str, code: Code, message: str, *notes: str) -> None:
        self.warn(origin, name, code, Severity.ERROR, message, *notes)

    def warn(self, origin: Origin | None, name: str, code: Code, severity: Severity, message: str, *notes: str) -> None:
        if origin is None:
            self.diagnostics.append(Diagnostic(code, severity, message, None, name, notes))
        else:
            self.diagnostics.append(origin.under(name).diagnostic(code, message, severity, *notes))

    # Expressions

    def variable(self, name: str, text: str, origin: Origin | None) -> None:
        program = self.program(text, self.environment({}), origin, "expression")
        if program is None:
            self.types[name] = Type("dyn")  # so that one mistake gives one message
            return
        reading = self.reading([program])
        self.types[name] = program.type
        self.variables[name] = Variable(name, program, reading.of_node)
        self.readings[name] = reading
        self.origins[name] = origin

    def rule(self, rule: Rule) -> Plugin | None:
        params = self.params(rule)
        env = self.environment(params)
        when = None if rule.when is None else self.program(rule.when, self.environment(params, node=False), rule.origin, "when")
        value = self.program(str(rule.filter if rule.point == "filter" else rule.score), env, rule.origin, rule.point)
        text = rule.message_expression
        message = None if text is None else self.program(text, env, rule.origin, "messageExpression")
        for program, name, wanted in (
            (when, "when", ("bool",)),
            (value, rule.point, ("bool",) if rule.point == "filter" else NUMBERS),
            (message, "messageExpression", ("string",)),
        ):
            self.wants(rule.origin, program, name, wanted)
        self.guards(rule, value, when, message)
        if value is None:
            return None
        programs = [program for program in (value, when, message) if program is not None]
        reading = self.reading(programs)
        if reading.whole_node:
            self.report(
                rule.origin, rule.point, Code.EXPRESSION, "the node as a whole cannot be used: select the fields that matter"
            )
        if rule.point == "score" and not reading.of_node:
            message_text = "the score does not depend on the node, so it decides nothing"
            self.warn(rule.origin, rule.point, Code.IGNORES_NODE, Severity.WARNING, message_text)
        span = rule.origin.under(rule.point).span if rule.origin else None
        used = self.used(programs)
        return self.plugin(rule, Expressions(rule.name, value, when, message, used, params, reading, span, self.allowance))

    def plugin(self, rule: Rule, expressions: Expressions) -> Plugin:
        helps = expressions.reading.moves if rule.preemption_helps is None else rule.preemption_helps
        message = rule.message or f"node(s) did not pass rule {rule.name}"
        if rule.point == "filter":
            return filter_rule(expressions, Conduct(message, not helps, rule.on_error != "Admit"))
        normalize = rule.normalize if rule.normalize in NORMALIZE else "None"  # told about where rules are read
        whole = expressions.value.type.name == "int" and (rule.weight is None or rule.weight.is_integer())
        return score_rule(expressions, Conduct("", True, rule.on_error == "Reject", 1 if whole else UNIT), normalize)

    def program(self, text: str, env: Environment, origin: Origin | None, name: str) -> Program | None:
        """The compiled expression; None after a report."""
        if not text.strip():
            self.report(origin, name, Code.REQUIRED, "Required value: an expression")
            return None
        found = compile_expression(text, env, Source(name, text))
        if isinstance(found, Program):
            for lint in lints(found):
                self.remark(found, lint, origin, name)
            return found
        self.diagnostics += [_placed(diagnostic, text, origin, name) for diagnostic in found]
        return None

    def remark(self, program: Program, lint: Lint, origin: Origin | None, name: str) -> None:
        """Tell of a finding, once."""
        span = Span(program.source, lint.start, lint.end)
        strange = Diagnostic(lint.code, lint.severity, lint.message, span, "", (lint.note,))
        self.diagnostics.append(_placed(strange, program.source.text, origin, name))

    def guards(self, rule: Rule, value: Program | None, when: Program | None, message: Program | None) -> None:
        """Tell of labels and annotations that may be missing where the rule reads them."""
        variables = self.checked()
        given = NONE if when is None else ensured(when.checked, variables)
        told: dict[Any, None] = {}
        for program, name, known in ((when, "when", NONE), (value, rule.point, given), (message, "messageExpression", given)):
            if program is not None:
                self.reads(program, name, known, rule, told)

    def reads(self, program: Program, name: str, known: Places, rule: Rule, told: dict[Any, None]) -> None:
        """The same for one expression of a rule; `told` are nodes that were told of."""
        homes = {id(variable.program.checked): one for one, variable in self.variables.items()}
        self.visited |= self.used([program]).keys()
        for where, node, place in unguarded(program.checked, known, self.checked()):
            if node in told:
                continue
            told[node] = None
            lint = missing(node, place, _outcome(rule, name, place[0]))
            variable = homes.get(id(where))
            if variable is None:
                self.remark(program, lint, rule.origin, name)
            else:
                self.remark(self.variables[variable].program, lint, self.origins[variable], "expression")

    def unused(self) -> None:
        """Tell the same of variables that no rule uses."""
        for name, variable in self.variables.items():
            for where, node, place in unguarded(variable.program.checked, NONE, {}) if name not in self.visited else ():
                if where is variable.program.checked:
                    lint = missing(node, place, "the variable then has no value")
                    self.remark(variable.program, lint, self.origins[name], "expression")

    def checked(self) -> dict[str, Checked]:
        """The variables as trees."""
        return {name: variable.program.checked for name, variable in self.variables.items()}

    def wants(self, origin: Origin | None, program: Program | None, name: str, wanted: Sequence[str]) -> None:
        if program is not None and program.type.name not in wanted and not is_dyn(program.type):
            message = f"must give {' or '.join(wanted)}, this gives {program.type}"
            remedy = ("for points where it is true, write: (...) ? 100 : 0",) if program.type == BOOL else ()
            self.report(origin, name, Code.EXPRESSION, message, *remedy)

    def environment(self, params: Mapping[str, Any], *, node: bool = True) -> Environment:
        variables: dict[str, Type] = {"pod": pod_type(), "namespace": namespace_type(), "now": TIMESTAMP}
        if params:
            variables["params"] = Struct("Params", fields={name: type_of_params(value) for name, value in params.items()})
        if node:
            variables |= {"node": node_type(), "cluster": DOMAIN}
        known = {name: kind for name, kind in self.types.items() if node or not self.of_node(name)}
        if known:
            variables["variables"] = Struct("Variables", fields=known)
        return self.over(variables)

    def over(self, variables: Mapping[str, Type]) -> Environment:
        """Where expressions know these variables and nothing else."""
        return Environment(variables, extra=FUNCTIONS, estimate_limit=COST_LIMIT, sizes=SIZES, constant_errors=True)

    def of_node(self, name: str) -> bool:
        return name in self.variables and self.variables[name].of_node

    def reading(self, programs: Iterable[Program]) -> Reading:
        """What some expressions read, through the variables that they use."""
        found = Reading()
        for program in programs:
            found.add(program)
        for name in found.variables:
            if name in self.readings:
                found.join(self.readings[name])
        return found

    def used(self, programs: Iterable[Program]) -> dict[str, Variable]:
        """The variables that some expressions use, also through other variables."""
        direct = Reading()
        for program in programs:
            direct.add(program)
        found: dict[str, Variable] = {}
        for name in sorted(direct.variables & self.variables.keys()):
            found[name] = self.variables[name]
            found |= self.used([self.variables[name].program])
        return found

    # Parameters

    def params(self, rule: Rule) -> dict[str, Any]:
        own = params_of(replace(self.profile, plugin_config=()), rule)
        for index, config in enumerate(self.profile.plugin_config):
            if config.name == rule.name and config.args is not None:
                origin = self.profile.origin and self.profile.origin.under("pluginConfig", index, "args")
                given = self.profile.args_of(rule.name)
                for name in given if isinstance(given, dict) else ():
                    if name not in own:
                        close = get_close_matches(name, own, 1)
                        hint = (f'did you mean "{close[0]}"?',) if close else ()
                        self.report(origin, name, Code.UNKNOWN_FIELD, f'rule {rule.name} has no parameter "{name}"', *hint)
        return params_of(self.profile, rule)


def _outcome(rule: Rule, name: str, whose: str) -> str:
    """What happens where an expression of a rule has no value because a key of the pod or the node is missing."""
    which = "every node" if whose in ("pod", "namespace") else "the node"
    if name == "messageExpression":
        return "the message is then the plain one"
    if rule.point == "filter":
        return f"the filter then lets {which} pass" if rule.on_error == "Admit" else f"the filter then rejects {which}"
    return f"the rule then rejects {which}" if rule.on_error == "Reject" else f"the score of {which} is then 0"


def _placed(diagnostic: Diagnostic, text: str, origin: Origin | None, name: str) -> Diagnostic:
    """A finding about an expression as one about the file that it stands in."""
    notes = diagnostic.notes
    if name in ("when", MATCH) and any(f"'{missing}'" in diagnostic.message for missing in NODE_NAMES):
        notes = (f"{name} is decided once for a pod, before any node is looked at",)
    if name == "expression" and "undeclared reference to 'params'" in diagnostic.message:
        notes = ("params are those of one rule, variables are there for all of them: use params in the rules themselves",)
    code = _code(diagnostic)
    if origin is None:
        return replace(diagnostic, code=code, path=name, notes=notes)
    place = origin.under(name)
    span = place.span
    if span is not None and diagnostic.span is not None:
        span = part_of(span, text, diagnostic.span.start, diagnostic.span.end)
    return Diagnostic(code, diagnostic.severity, diagnostic.message, span, show_path(place.path), notes)


def _code(diagnostic: Diagnostic) -> Code:
    known = {Code.UNKNOWN_FIELD: Code.UNKNOWN_NAME, Code.SYNTAX: Code.EXPRESSION, Code.INVALID: Code.EXPRESSION}
    return known.get(diagnostic.code, diagnostic.code)
