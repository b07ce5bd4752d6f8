"""What kube-scheduler accepts and hardly anybody means: names that mean nothing, weights that do something else, promises broken.

Each check is a generator over one profile; `lint` runs them all. Nothing here refuses what compiles, except for names that are
misspelt or gone and would be ignored without a word.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stowplan.plugins.arguments import NodeResourcesBalancedAllocationArgs, NodeResourcesFitArgs, PodTopologySpreadArgs
from stowplan.policy.compile import Declared, Profile
from stowplan.policy.expand import MULTI_POINT
from stowplan.policy.names import misspelt, project_of, replacement, strategy_of
from stowplan.policy.releases import lifetime
from stowplan.policy.strange import strange
from stowplan.profile import Configuration, Leaf, Origin, PluginEntry, Tree
from stowplan.profile import Profile as Written
from stowplan.profile.rules import RULES
from stowplan.profile.yaml_tree import at
from stowplan.text import Code, Diagnostic, Edit, Path, Severity

WEIGHED = ("score", "placementScore")
_PROMISES = {
    "NodeUnschedulable": "pods may be placed on cordoned nodes",
    "TaintToleration": "taints of effect NoSchedule are ignored",
    "NodeAffinity": "nodeSelector and required node affinity of pods are ignored",
    "NodeName": "pods that name a node may be placed on another",
    "NodePorts": "host ports that are taken are ignored: such pods fail on the node",
    "NodeResourcesFit": "requests of pods are ignored: nodes may be given more than they have",
    "PodTopologySpread": "topologySpreadConstraints of pods are ignored by this profile, hard ones too",
    "InterPodAffinity": "pod affinity and anti-affinity are ignored by this profile, required terms too",
    "VolumeBinding": "pods may be placed where their volumes cannot be bound",
    "VolumeZone": "pods may be placed in zones where their volumes are not",
    "VolumeRestrictions": "volumes that only one pod or node may use are not protected",
    "NodeVolumeLimits": "nodes may be given more volumes than they can attach",
    "DynamicResources": "resource claims of pods are ignored",
}
_MOST = 200
"""entries of a profile that are looked at"""
_BASIC = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class _Entry:
    """A plugin in a list of a profile, and where it stands."""

    plugin: PluginEntry
    point: str
    key: str
    origin: Origin

    def written(self, field: str) -> Tree | None:
        """What was written for a field of the entry."""
        return at(self.origin.tree, (*self.origin.path, field))


def lint(configuration: Configuration, profiles: Sequence[Profile], plugins: Sequence[Declared]) -> list[Diagnostic]:
    """Findings about a configuration that was read from a text, in no particular order."""
    known = {plugin.name: plugin for plugin in plugins}
    found = list(strange(configuration))
    for written, profile in zip(configuration.versions, profiles, strict=True):
        if written.origin is None:
            continue
        entries = list(_entries(written, written.origin))
        for entry in entries[:_MOST]:
            found += _disabled(entry, known) if entry.key == "disabled" else _weight(entry, known)
        found += _names_of_args(written, written.origin, profile, known)
        found += _promises(entries, profile)
        found += _inert(written, written.origin, profile)
    return found


def _entries(written: Written, origin: Origin) -> Iterator[_Entry]:
    for point, plugins in written.plugins.items():
        for key, entries in (("enabled", plugins.enabled), ("disabled", plugins.disabled)):
            for index, entry in enumerate(entries):
                yield _Entry(entry, point, key, origin.under("plugins", point, key, index))


def _weight(entry: _Entry, known: dict[str, Declared]) -> Iterator[Diagnostic]:
    """Weights of an enabled plugin that are not what they seem."""
    plugin, weight = known.get(entry.plugin.name), entry.written("weight")
    place = entry.origin.under("weight" if weight is not None else "name")
    scores = plugin is None or any(point in plugin.points for point in WEIGHED)
    if weight is not None and (entry.point not in (*WEIGHED, MULTI_POINT) or not scores):
        who = f"{entry.plugin.name} does not score" if not scores else f"nothing is weighed at {entry.point}"
        yield place.diagnostic(Code.POINTLESS_WEIGHT, f"{who}: the weight is ignored", Severity.WARNING)
    elif entry.plugin.weight < 0:
        refused = ", though not under score" if entry.point == MULTI_POINT else ""
        message = f"kube-scheduler takes a negative weight here{refused}: what {entry.plugin.name} likes counts against a node"
        yield place.diagnostic(Code.NEGATIVE_WEIGHT, message, Severity.WARNING)
    elif weight is not None and entry.plugin.weight == 0:
        remedy = f"to switch the score off, list {entry.plugin.name} under disabled of score"
        yield place.diagnostic(Code.ZERO_WEIGHT, "0 means 1", Severity.WARNING, remedy)
    elif weight is None and plugin is not None and plugin.weight > 1 and entry.point in (*WEIGHED, MULTI_POINT):
        message = f"without a weight {plugin.name} has weight 1 here, not its default {plugin.weight}"
        yield place.diagnostic(Code.WEIGHT_RESET, message, Severity.WARNING, f"write weight: {plugin.weight} to keep it")


def _disabled(entry: _Entry, known: dict[str, Declared]) -> Iterator[Diagnostic]:
    """Entries of `disabled` that disable nothing."""
    name, place = entry.plugin.name, entry.origin.under("name")
    plugin = known.get(name)
    if entry.written("weight") is not None:
        message = "what is disabled is not weighed: the weight is ignored"
        yield entry.origin.under("weight").diagnostic(Code.POINTLESS_WEIGHT, message, Severity.WARNING)
    if name == "*" or not name:
        return
    if name == RULES:
        note = 'list the rules that are not meant by their names, or write mode: "Off" in them'
        yield place.diagnostic(Code.NO_EFFECT, f"{RULES} is no plugin: nothing is disabled", Severity.WARNING, note)
    elif plugin is None:
        yield from _unknown(name, place, known, "nothing is disabled")
    elif entry.point != MULTI_POINT and entry.point not in plugin.points:
        points = ", ".join(sorted(plugin.points))
        message = f"{name} does not run at {entry.point}: nothing is disabled"
        yield place.diagnostic(Code.NO_EFFECT, message, Severity.WARNING, f"it runs at {points}")


def _unknown(name: str, place: Origin, known: Iterable[str], effect: str) -> Iterator[Diagnostic]:
    """A name that kube-scheduler ignores."""
    meant, gone = misspelt(name, known), replacement(name)
    if meant:
        message = f'there is no plugin "{name}": {effect}'
        finding = place.diagnostic(Code.MISSPELT, message, Severity.ERROR, f'did you mean "{meant}"?')
        yield _mended(finding, place, meant)
    elif gone:
        yield place.diagnostic(Code.NO_EFFECT, f'"{name}" is no plugin any more: {effect}', Severity.WARNING, gone)
    elif project_of(name) is None and lifetime(name) is None:
        message = f'kube-scheduler has no plugin "{name}": {effect} unless it is built in'
        yield place.diagnostic(Code.MISSPELT, message, Severity.WARNING)


def _mended(finding: Diagnostic, place: Origin, text: str) -> Diagnostic:
    """The finding with the edit that replaces a scalar."""
    written = at(place.tree, place.path)
    if not isinstance(written, Leaf) or written.span is None:
        return finding
    raw = written.span.text
    quote = raw[0] if raw[:1] in "\"'" else ""
    edit = Edit(written.span, f"{quote}{text}{quote}")
    return dataclasses.replace(finding, edits=(edit,))


def _names_of_args(written: Written, origin: Origin, profile: Profile, known: dict[str, Declared]) -> Iterator[Diagnostic]:
    """Args of plugins that do not run, do not exist, or do not exist any more."""
    running = {name for names in profile.points.values() for name in names}
    rules = {rule.name for rule in written.rules}
    for index, config in enumerate(written.plugin_config[:_MOST]):
        place = origin.under("pluginConfig", index, "name")
        if config.name in known:
            if config.name not in running:
                message = f"{config.name} is not enabled in this profile: its args are not used"
                yield place.diagnostic(Code.UNUSED_ARGS, message, Severity.WARNING)
        elif replacement(config.name):
            message = f"{config.name} was removed: kube-scheduler ignores its args"
            notes = [str(replacement(config.name)), *_block(config.name, config.args)]
            yield place.diagnostic(Code.REMOVED_PLUGIN, message, Severity.ERROR, *notes)
        elif config.name != RULES and config.name not in rules and misspelt(config.name, known):
            yield from _unknown(config.name, place, known, "its args are ignored")


def _block(name: str, args: Tree | None) -> list[str]:
    """What to write instead of the args of a plugin that became a scoring strategy."""
    kind = strategy_of(name)
    if kind is None:
        return []
    lines = ["write instead:", "- name: NodeResourcesFit", "  args:", "    scoringStrategy:", f"      type: {kind}"]
    for field, indent in (("resources", 6), ("shape", 8)):
        written = at(args, (field,)) if args is not None else None
        if written is None or written.span is None:
            continue
        if field == "shape":
            lines.append("      requestedToCapacityRatio:")
        lines += [f"{' ' * indent}{field}:", *_indented(written, indent + 2)]
    return ["\n".join(lines)]


def _indented(tree: Tree, indent: int) -> list[str]:
    """A small tree as YAML in flow style, an item a line."""
    from stowplan.profile import Items, Table, plain  # noqa: PLC0415 - only after a mistake

    items = tree.items if isinstance(tree, Items) else (tree,)
    shown = [
        ", ".join(f"{k}: {v}" for k, v in plain(item).items()) if isinstance(item, Table) else str(plain(item)) for item in items
    ]
    return [f"{' ' * indent}- {{{text}}}" for text in shown]


def _promises(entries: list[_Entry], profile: Profile) -> Iterator[Diagnostic]:
    """Filters that are off, so that what pods and nodes demand is ignored; once for each entry that switches some off."""
    off = [name for name in _PROMISES if name not in profile.points["filter"]]
    blamed: dict[Path, tuple[Origin, list[str]]] = {}
    for name in off:
        for entry in entries:
            if entry.key == "disabled" and entry.point in ("filter", MULTI_POINT) and entry.plugin.name in (name, "*"):
                blamed.setdefault(entry.origin.path, (entry.origin, []))[1].append(name)
                break
    for origin, names in blamed.values():
        code = Code.CORDONED if names == ["NodeUnschedulable"] else Code.UNENFORCED
        if len(names) == 1:
            yield origin.under("name").diagnostic(code, _PROMISES[names[0]], Severity.WARNING)
            continue
        message = f"{len(names)} filters are off: {_PROMISES[names[0]]}, and more"
        notes = [f"{name}: {_PROMISES[name]}" for name in names[1:]]
        yield origin.under("name").diagnostic(code, message, Severity.WARNING, *notes)


def _inert(written: Written, origin: Origin, profile: Profile) -> Iterator[Diagnostic]:
    """Args of scores that make no difference, for some pods or for all."""
    for index, config in enumerate(written.plugin_config):
        args, place = profile.args.get(config.name), origin.under("pluginConfig", index, "args")
        scores = config.name in profile.points["score"]
        if isinstance(args, NodeResourcesFitArgs) and at(origin.tree, (*place.path, "scoringStrategy")) is not None:
            yield from _strategy(args, place.under("scoringStrategy"), scores)
        elif isinstance(args, NodeResourcesBalancedAllocationArgs) and scores and len(args.resources) == 1:
            message = f"a single resource is always in balance: {config.name} gives every node the same"
            yield place.under("resources").diagnostic(Code.INERT, message, Severity.WARNING)
        elif isinstance(args, PodTopologySpreadArgs) and args.default_constraints and config.name in profile.points["filter"]:
            hard = [c for c in args.default_constraints if c.when_unsatisfiable == "DoNotSchedule"]
            if not hard and not scores:
                message = "ScheduleAnyway only counts in the score, which is disabled"
                yield place.under("defaultConstraints").diagnostic(Code.INERT, message, Severity.WARNING)


def _strategy(args: NodeResourcesFitArgs, place: Origin, scores: bool) -> Iterator[Diagnostic]:
    strategy = args.scoring_strategy
    if not scores:
        message = "NodeResourcesFit does not score in this profile: the strategy decides nothing"
        yield place.diagnostic(Code.INERT, message, Severity.WARNING)
        return
    shape = strategy.requested_to_capacity_ratio
    if shape and len({point.score for point in shape}) == 1:
        message = "the shape is flat: every node gets the same"
        yield place.under("requestedToCapacityRatio", "shape").diagnostic(Code.INERT, message, Severity.WARNING)
    names = [resource.name for resource in strategy.resources]
    if all(names) and not any(name in _BASIC for name in names):
        message = f"only {' and '.join(names)} count: pods that ask for none of them get the same score on every node"
        note = "cpu and memory are scored only if they are listed"
        yield place.under("resources").diagnostic(Code.INERT, message, Severity.WARNING, note)
