"""A configuration and plugins become a `Policy`, an immutable value that holds all that decisions need.

Compilation is also the validation: it collects everything that is wrong, from the YAML to the args of a plugin, each
finding at the place where it was written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, cast

from stowplan import profile as written
from stowplan.plugins.arguments import ARGS, NodeResourcesFitArgs, finish, written_form
from stowplan.policy.expand import Effective, Pluggable, expand, report
from stowplan.profile import RULES, Configuration, Origin, PluginConfig, Table, Tree, plain
from stowplan.profile.versions import NEWEST
from stowplan.profile.yaml_tree import at
from stowplan.text import Code, Diagnostic, Path, Problem, Severity, Source, has_errors, render_all, show_path

if TYPE_CHECKING:
    from stowplan.objects import Pod
    from stowplan.plugins import Plugin  # evaluation code, which checking a file does not need
    from stowplan.plugins.cel_rule.allowance import Allowance
    from stowplan.policy.rollout import Compiled as Divided
    from stowplan.policy.rollout import Rollout
    from stowplan.policy.rules import Compiled
    from stowplan.state import Store

GROUP = "kubescheduler.config.k8s.io"
FIT = "NodeResourcesFit"
_MOST_PROFILES, _MOST_PROBLEMS = 200, 2000


class PolicyError(Exception):
    """The configuration cannot be used. `diagnostics` has at least one error; the text is all of them, rendered."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(render_all(self.diagnostics))


@dataclass(frozen=True, slots=True)
class Profile:
    """The plugins that decide for the pods of one scheduler name, or for those of them that a rollout gives to its candidate."""

    scheduler_name: str
    points: Mapping[str, tuple[str, ...]]
    """Names in running order, by extension point (`preFilter`)."""
    weights: Mapping[str, float]
    """Of the plugins at `score`; only rules have fractions and negative ones."""
    args: Mapping[str, object]
    """By plugin name: a frozen args value, plain data for plugins that are not known here."""
    plugins: Mapping[str, Plugin]
    """All plugins that run somewhere, by name."""
    placement_weights: Mapping[str, int] = field(default_factory=dict)
    """Of the plugins at `placementScore`."""
    scale: int = 1
    """Steps of a point in totals: 1 unless some rule scores in fractions, so that sums are exact integers in any case."""
    audits: tuple[Plugin, ...] = ()
    """Rules that are evaluated and reported but never act."""
    allowance: Allowance | None = None
    """What its rules may use together for one decision; None if it has none."""

    def begin(self, nodes: int) -> None:
        """A decision begins, among so many nodes."""
        if self.allowance is not None:
            self.allowance.renew(nodes)

    def factor(self, plugin: Plugin) -> int:
        """What a step of a plugin's score counts in totals, in their steps."""
        weight = self.weights[plugin.name]
        return int(weight) if self.scale == 1 else round(weight * self.scale / plugin.unit)


@dataclass(frozen=True, slots=True, repr=False)
class Policy:
    """A compiled configuration; `warnings` are the findings that did not refuse it."""

    profiles: Mapping[str, Profile]
    """by name; the candidate of a rollout has a name of its own"""
    configuration: Configuration
    warnings: tuple[Diagnostic, ...]
    rollout: Rollout | None = None

    def __repr__(self) -> str:
        return f"<Policy with {', '.join(self.profiles) or 'no profiles'}>"

    def serves(self, pod: Pod) -> bool:
        """Whether some profile schedules the pod."""
        name = pod.spec.scheduler_name
        return name in self.profiles and (self.rollout is None or name != self.rollout.candidate)

    def profile_of(self, pod: Pod, store: Store) -> str | None:
        """The name of the profile that schedules the pod, which is the one place that says so; None if none does."""
        name, rollout = pod.spec.scheduler_name, self.rollout
        if rollout is not None:
            if name == rollout.stable and rollout.takes(pod, store):
                return rollout.candidate
            if name == rollout.candidate:
                return None
        return name if name in self.profiles else None

    def serving(self, pod: Pod, store: Store) -> Profile:
        """The profile that schedules a pod. KeyError for one that none schedules."""
        return self.profiles[self.profile_of(pod, store) or ""]


class Declared(Pluggable, Protocol):
    """What must be known of a plugin to check what a file says about it: a `Plugin` or an outline of one."""

    @property
    def args(self) -> Callable[[], object]: ...


@dataclass(frozen=True, slots=True)
class Examined:
    """A configuration, and all findings in the order of the text. Without a configuration at least one is an error."""

    configuration: Configuration | None
    profiles: tuple[Profile, ...]
    """in the order of `Configuration.versions`"""
    diagnostics: tuple[Diagnostic, ...]
    rollout: Rollout | None = None


def load(
    source: Source | Table | Mapping[str, Any] | None, plugins: Sequence[Plugin] | None = None, *, compat: bool = True
) -> Policy:
    """The policy that a YAML or JSON text, a parsed document or (None) the default configuration describes.

    Raises PolicyError with every finding if any of them is an error. With `compat` that is exactly where kube-scheduler fails;
    without, older versions are read as well and plugins of other projects are left out, with warnings.
    """
    return _policy(examine(source, _in_tree() if plugins is None else plugins, compat=compat))


def compile_policy(configuration: Configuration, plugins: Sequence[Plugin] | None = None) -> Policy:
    """The policy of a configuration that was read without errors. Raises PolicyError with every finding."""
    divided = _divided(configuration)
    profiles, diagnostics = _compile(configuration, _in_tree() if plugins is None else plugins, True, divided=divided)
    return _policy(Examined(configuration, tuple(profiles), _ordered(diagnostics), None if divided is None else divided.rollout))


def examine(
    source: Source | Table | Mapping[str, Any] | None, plugins: Sequence[Declared], *, compat: bool = True, minor: int = NEWEST
) -> Examined:
    """Everything that compiling a configuration finds out. If any of it is an error, the profiles are for messages only.

    `plugins` are those of kube-scheduler 1.`minor`; `compat` as for `load`.
    """
    configuration, diagnostics = written.read(source, compat=compat, minor=minor)
    if configuration is None:
        return Examined(None, (), _ordered(diagnostics))
    if not compat and len(configuration.profiles) > _MOST_PROFILES:
        profile = configuration.profiles[_MOST_PROFILES]
        message = f"profiles from here on are not checked: {_MOST_PROFILES} are enough for any scheduler"
        diagnostics.append(report(profile, (), Code.TOO_MANY, message, severity=Severity.WARNING))
        configuration = dataclasses.replace(configuration, profiles=configuration.profiles[:_MOST_PROFILES])
    # what could not be read was replaced by a default, which is not to blame for what is wrong with it
    unread = {diagnostic.span for diagnostic in diagnostics if diagnostic.code is Code.WRONG_TYPE and diagnostic.span}
    divided = _divided(configuration)
    profiles, found = _compile(configuration, plugins, compat, minor, divided)
    diagnostics += [finding for finding in found if finding.span not in unread]
    return Examined(configuration, tuple(profiles), _ordered(diagnostics), None if divided is None else divided.rollout)


def _in_tree() -> Sequence[Plugin]:
    from stowplan.plugins import IN_TREE  # noqa: PLC0415 - evaluation code, which checking a file does not need

    return IN_TREE


def _ordered(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    return tuple(sorted(diagnostics, key=lambda d: d.span.start if d.span else -1))


def _policy(examined: Examined) -> Policy:
    if examined.configuration is None or has_errors(examined.diagnostics):
        raise PolicyError(examined.diagnostics)
    by_name = {profile.scheduler_name: profile for profile in examined.profiles}
    return Policy(MappingProxyType(by_name), examined.configuration, examined.diagnostics, examined.rollout)


def _divided(configuration: Configuration) -> Divided | None:
    """The compiled rollout; None if there is none."""
    written = configuration.rollout
    if written is None:
        return None
    from stowplan.policy.rollout import compile_rollout  # noqa: PLC0415 - few files have one, and CEL takes long to import

    stable = (profile for profile in configuration.profiles if profile.scheduler_name == written.profile)
    return compile_rollout(written, next(stable, None))


def _compile(
    configuration: Configuration,
    plugins: Sequence[Declared],
    compat: bool,
    minor: int = NEWEST,
    divided: Divided | None = None,
) -> tuple[list[Profile], list[Diagnostic]]:
    diagnostics = [_left_out(extender.origin, i) for i, extender in enumerate(configuration.extenders)]
    ignored = tuple(r.name for e in configuration.extenders for r in e.managed_resources if r.ignored_by_scheduler)
    diagnostics += () if divided is None else divided.diagnostics
    profiles: list[Profile] = []
    for profile in configuration.versions:
        rules = _rules(profile, plugins)
        known = plugins if rules is None else (*plugins, *rules.plugins)
        effective, found = expand(profile, known, compat=compat, minor=minor)
        if rules is not None:
            found += rules.diagnostics
            effective = rules.join(effective, profile)
        arguments = _Arguments(profile, effective, known, frozenset(rules.modes) if rules else frozenset())
        args = arguments.read(ignored)
        diagnostics += found + arguments.diagnostics
        if divided is not None and divided.nodes is not None and len(profiles) == len(configuration.profiles):
            known, effective, args = (*known, divided.nodes), effective.led_by(divided.nodes), {**args, divided.nodes.name: None}
        profiles.append(_profile(profile.scheduler_name or "", effective, args, known, rules))
    return profiles, diagnostics + _queue_sort_differences(configuration, profiles)


def _rules(profile: written.Profile, plugins: Sequence[Declared]) -> Compiled | None:
    """The compiled rules of a profile; None if it has none."""
    if not (profile.rules or profile.variables or any(config.name == RULES for config in profile.plugin_config)):
        return None
    from stowplan.policy.rules import compile_rules  # noqa: PLC0415 - most files have no rules, and CEL takes long to import

    return compile_rules(profile, [plugin.name for plugin in plugins])


def _profile(
    name: str, effective: Effective, args: dict[str, object], known: Sequence[Declared], rules: Compiled | None
) -> Profile:
    running = {name for names in effective.points.values() for name in names}
    # outlines are enough to examine; a policy is compiled from plugins
    plugins = {plugin.name: cast("Plugin", plugin) for plugin in known if plugin.name in running}
    return Profile(
        name,
        MappingProxyType(effective.points),
        MappingProxyType(effective.weights),
        MappingProxyType(args),
        MappingProxyType(plugins),
        MappingProxyType(effective.placement_weights),
        1 if rules is None else rules.scale(effective),
        () if rules is None else rules.audits,
        None if rules is None else rules.allowance,
    )


def _left_out(origin: Origin | None, index: int) -> Diagnostic:
    message = "kube-scheduler asks this extender too; verdicts given here leave it out"
    if origin is None:
        return Diagnostic(Code.EXTENDER, Severity.WARNING, message, None, f"extenders[{index}]")
    return origin.diagnostic(Code.EXTENDER, message, Severity.WARNING)


def _queue_sort_differences(configuration: Configuration, profiles: list[Profile]) -> list[Diagnostic]:
    """All profiles share one queue (`cfgValidator` of pkg/scheduler/profile)."""
    found = []
    first = profiles[0].points["queueSort"][:1]
    for source, profile in zip(configuration.versions[1:], profiles[1:], strict=True):
        mine = profile.points["queueSort"][:1]
        if not mine or not first:
            continue  # reported already
        if mine != first:
            message = f'different queue sort plugins for profile "{profile.scheduler_name}": "{mine[0]}", first: "{first[0]}"'
            found.append(report(source, ("plugins", "queueSort"), Code.QUEUE_SORT, message))
        elif source.args_of(mine[0]) != configuration.profiles[0].args_of(mine[0]):
            message = f'different queue sort plugin args for profile "{profile.scheduler_name}"'
            found.append(report(source, ("pluginConfig",), Code.QUEUE_SORT, message))
    return found


class _Arguments:
    """Reads the args of one profile's plugins."""

    def __init__(self, profile: written.Profile, effective: Effective, plugins: Sequence[Declared], rules: frozenset[str]) -> None:
        self._rules = rules
        self.diagnostics: list[Diagnostic] = []
        self._profile = profile
        self._effective = effective
        self._plugins = {plugin.name: plugin for plugin in plugins}

    def read(self, ignored: tuple[str, ...]) -> dict[str, object]:
        """Args by plugin name: as configured, else the defaults. Resources `ignored` by extenders replace the Fit plugin's."""
        args: dict[str, object] = {name: plugin.args() for name, plugin in self._plugins.items() if name in self._effective.enabled}
        for index, config in enumerate(self._profile.plugin_config):
            args[config.name] = self._entry(index, config, ignored)
        if ignored and isinstance(fit := args.get(FIT), NodeResourcesFitArgs):
            args[FIT] = dataclasses.replace(fit, ignored_resources=ignored)
        elif ignored:
            message = "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config"
            note = "an extender manages resources that are ignored by the scheduler, so the plugin must be configured"
            self.diagnostics.append(report(self._profile, ("pluginConfig",), Code.NO_FIT_ARGS, message, note))
        return args

    def _entry(self, index: int, config: PluginConfig, ignored: tuple[str, ...]) -> object:
        path: Path = ("pluginConfig", index)
        kind = ARGS.get(config.name)
        if kind is None:
            return self._opaque(path, config)
        tree = self._of_kind((*path, "args"), config.name, config.args)
        form, found = written.decode(written_form(kind), self._origin((*path, "args")), tree)
        self.diagnostics += found
        args, problems = finish(form)
        # upstream overwrites the names before it looks at them
        relevant = [p for p in problems if not (ignored and p.path[0] == "ignoredResources")][:_MOST_PROBLEMS]
        # upstream registers the validation of this plugin under a wrong name: unless the plugin runs, nobody notices
        unnoticed = config.name == FIT and FIT not in self._effective.enabled
        severity = Severity.WARNING if unnoticed else Severity.ERROR
        wanted = [p for p in relevant if not self._meant((*path, "args", *p.path), found)]
        self.diagnostics += [self._problem(problem.under(*path, "args"), severity) for problem in wanted]
        return args

    def _meant(self, path: Path, found: Sequence[Diagnostic]) -> bool:
        """Whether a field is missing only because its name is misspelt."""
        if at(self._origin(()).tree, self._origin(path).path) is not None:
            return False
        return any(f'did you mean "{path[-1]}"?' in one.notes for one in found if one.code is Code.UNKNOWN_FIELD)

    def _origin(self, path: Path) -> Origin:
        return self._profile.origin.under(*path) if self._profile.origin else Origin(written.Leaf(None, None), path)

    def _problem(self, problem: Problem, severity: Severity) -> Diagnostic:
        if self._profile.origin is None:
            return Diagnostic(problem.kind.code, severity, problem.message, None, show_path(problem.path))
        return self._profile.origin.problem(problem, severity)

    def _opaque(self, path: Path, config: PluginConfig) -> object:
        """Args that nobody here understands; kube-scheduler keeps them for a plugin that may be built in elsewhere."""
        plugin = self._plugins.get(config.name)
        if config.name == RULES or config.name in self._rules:
            return None  # rules have read what is theirs
        if plugin is not None and config.args is not None:
            self._warn((*path, "name"), f'plugin "{config.name}" takes no args: these are ignored')
        elif plugin is None:
            self._warn((*path, "name"), f'plugin "{config.name}" is not known here: its args are not checked')
        if plugin is not None:
            return plugin.args()
        return plain(config.args) if config.args is not None else None

    def _warn(self, path: Path, message: str) -> None:
        self.diagnostics.append(self._origin(path).diagnostic(Code.UNUSED_ARGS, message, Severity.WARNING))

    def _of_kind(self, path: Path, name: str, tree: Tree | None) -> Tree | None:
        """The args without `apiVersion` and `kind`, which may be left out and must be right if they are not."""
        if not isinstance(tree, Table):
            return tree
        mine = {"apiVersion": f"{GROUP}/v1", "kind": f"{name}Args"}
        given = {key: str((plain(tree.fields[key]) if key in tree.fields else None) or mine[key]) for key in mine}
        if given["kind"] != mine["kind"] and given["kind"].removesuffix("Args") in ARGS:
            message = f"args for plugin {name} were not of type {mine['kind']}.{GROUP}, got {given['kind']}.{GROUP}"
            self.diagnostics.append(self._origin((*path, "kind")).diagnostic(Code.ARGS_KIND, message))
        elif given != mine:
            wrong = "kind" if given["kind"] != mine["kind"] else "apiVersion"
            message = f'no kind "{given["kind"]}" is registered for version "{given["apiVersion"]}"'
            self.diagnostics.append(self._origin((*path, wrong)).diagnostic(Code.ARGS_KIND, message))
        return tree.without(*mine)
