"""Which plugins run at which extension point, in which order and with which weights.

A profile says how it differs from the default set; this is kube-scheduler's way to the effective lists, in two stages:
what the user wrote is merged into the defaults (`mergePlugins`), then `multiPoint` is spread over the extension points
(`expandMultiPointPlugins`). Texts are those of `frameworkruntime.NewFramework`; every mistake is reported, not the first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from stowplan.policy.names import misspelt, project_of, replacement
from stowplan.policy.releases import gate_of, lifetime, points_of
from stowplan.profile import POINTS, RULES, PluginSet, Profile
from stowplan.profile.versions import NEWEST
from stowplan.text import Code, Diagnostic, Edit, Path, Severity, did_you_mean, show_path

MULTI_POINT = "multiPoint"
REMOVED = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
_NEVER_CHECKED_FOR_REMOVED = frozenset({MULTI_POINT, "placementGenerate", "placementScore"})
_STAND_INS = {"queueSort": "PrioritySort", "bind": "DefaultBinder"}
"""What runs where something must, when a plugin of another project is left out there."""
_HIGHEST_SCORE = 100
_MOST_GUESSES = 100
_INT64 = 2**64


class Pluggable(Protocol):
    """What must be known of a plugin here."""

    @property
    def name(self) -> str: ...
    @property
    def points(self) -> frozenset[str]: ...
    @property
    def weight(self) -> int: ...
    @property
    def default(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Effective:
    """The lists that run. `points` has every extension point; the weights are those of the plugins that score."""

    points: Mapping[str, tuple[str, ...]]
    weights: Mapping[str, float]
    placement_weights: Mapping[str, int]
    enabled: frozenset[str]
    """Every plugin that is listed anywhere, also if it ends up nowhere."""

    def led_by(self, plugin: Pluggable) -> Effective:
        """The lists with one more plugin, the first wherever it runs."""
        points = {point: (plugin.name, *names) if point in plugin.points else names for point, names in self.points.items()}
        return dataclasses.replace(self, points=points, enabled=self.enabled | {plugin.name})


@dataclass(frozen=True, slots=True)
class _Entry:
    """A plugin in a list, and where the list was written."""

    name: str
    weight: int
    path: Path


def expand(
    profile: Profile, plugins: Sequence[Pluggable], *, compat: bool = True, minor: int = NEWEST
) -> tuple[Effective, list[Diagnostic]]:
    """The effective lists of a profile, and what is wrong with them; `plugins` are all that exist, in default order.

    They are those of kube-scheduler 1.`minor`; what only a feature gate gives something to do may be missing among them.

    A plugin that does not exist is an error, as it is to kube-scheduler. Without `compat` it is only a warning if it is likely
    to be one of another project, which the user builds in and which is left out here.
    """
    return _Expansion(profile, plugins, compat, minor).run()


def interface(point: str) -> str:
    """Kubernetes' name of what a plugin implements to run at a point: `preFilter` -> `PreFilterPlugin`."""
    return f"{point[0].upper()}{point[1:]}Plugin"


def report(profile: Profile, path: Path, code: Code, message: str, *notes: str, severity: Severity = Severity.ERROR) -> Diagnostic:
    """A finding at a path inside a profile."""
    if profile.origin is None:
        return Diagnostic(code, severity, message, None, show_path(path), notes)
    return profile.origin.under(*path).diagnostic(code, message, severity, *notes)


class _Expansion:
    def __init__(self, profile: Profile, plugins: Sequence[Pluggable], compat: bool, minor: int) -> None:
        self._minor = minor
        self._profile = profile
        self._compat = compat
        self._known = {plugin.name: plugin for plugin in plugins}
        self._sets = dict(profile.plugins.items())
        self._everywhere = _merged(self._sets[MULTI_POINT], [plugin for plugin in plugins if plugin.default])
        self._diagnostics: list[Diagnostic] = []
        self._blamed: set[str] = set()
        self._foreign: set[str] = set()
        self._listed: set[Path] = set()
        """where the name that holds rules stands"""

    def run(self) -> tuple[Effective, list[Diagnostic]]:
        self._check_removed()
        explicit = {point: self._explicit(point) for point in POINTS}
        self._check_everywhere()
        points = {point: self._spread(point, explicit[point]) for point in POINTS}
        self._check_rivals(points["queueSort"])
        points |= {point: (name,) for point, name in _STAND_INS.items() if not points[point] and self._left_out(point)}
        self._check_structure(points)
        effective = Effective(
            points,
            self._weights("score", points["score"], "score plugins"),
            self._weights("placementScore", points["placementScore"], "placement score plugins"),
            frozenset(e.name for e in self._everywhere) | {e.name for s in self._sets.values() for e in s.enabled},
        )
        return effective, self._diagnostics

    def _report(self, path: Path, code: Code, message: str, *notes: str) -> None:
        self._diagnostics.append(report(self._profile, path, code, message, *notes))

    def _check_removed(self) -> None:
        version = "kubescheduler.config.k8s.io/v1"
        sentence = f'was invalid in version "{version}" (KubeSchedulerConfiguration is version "{version}")'
        written = [e for p, s in self._sets.items() if p not in _NEVER_CHECKED_FOR_REMOVED for e in _entries(p, s)]
        written += [_Entry(config.name, 0, ("pluginConfig", index)) for index, config in enumerate(self._profile.plugin_config)]
        for entry in written:
            if entry.name in REMOVED and entry.name not in self._known:
                message = f'Invalid value: "{entry.name}": {sentence}'
                self._report(entry.path, Code.REMOVED_PLUGIN, message, "NodeVolumeLimits does its work")

    def _exists(self, entry: _Entry, point: str) -> bool:
        if gate_of(entry.name) and self._is_of_release(entry.name):
            self._gated(entry)
            if entry.name not in self._known and MULTI_POINT not in entry.path and point not in points_of(entry.name, self._minor):
                self._wrong_point(entry, point)
            return entry.name in self._known
        if entry.name in self._known:
            return True
        if entry.name == RULES and not self._compat:
            self._ours(entry)
            return False
        if entry.name in REMOVED and point not in _NEVER_CHECKED_FOR_REMOVED and MULTI_POINT not in entry.path:
            return False
        self._missing(entry, point)
        return False

    def _is_of_release(self, name: str) -> bool:
        first, last = lifetime(name) or (0, -1)
        return first <= self._minor <= last

    def _gated(self, entry: _Entry) -> None:
        """Tell, once, of a plugin that has nothing to do by default."""
        if entry.name not in self._blamed:
            self._blamed.add(entry.name)
            message = f'plugin "{entry.name}" is left out of explanations and simulations'
            note = f"it has something to do only with feature gate {gate_of(entry.name)}, which is off by default"
            path: Path = (*entry.path, "name")
            self._diagnostics.append(report(self._profile, path, Code.FOREIGN_PLUGIN, message, note, severity=Severity.WARNING))

    def _ours(self, entry: _Entry) -> None:
        """The name that holds rules, in a list of plugins: it is no plugin and changes nothing there, so a weight would be lost."""
        if entry.path in self._listed:
            return
        self._listed.add(entry.path)
        if entry.weight:
            message = f"{RULES} is no score: each of its rules has a weight of its own"
            note = "write weight: in the rule, or list the rule by its name under score"
            self._report((*entry.path, "weight"), Code.INVALID, message, note)
        elif not any(config.name == RULES for config in self._profile.plugin_config):
            message, path = f"there is no pluginConfig of {RULES}: no rules are added", (*entry.path, "name")
            self._diagnostics.append(report(self._profile, path, Code.NO_EFFECT, message, severity=Severity.WARNING))

    def _missing(self, entry: _Entry, point: str) -> None:
        """Report a plugin that does not exist; one of another project only once."""
        message = f'{interface(point)} "{entry.name}" does not exist'
        path: Path = (*entry.path, "name")
        gone, life = replacement(entry.name), lifetime(entry.name)
        guess = did_you_mean(entry.name, self._known) if len(self._diagnostics) < _MOST_GUESSES else None
        owner = project_of(entry.name)
        if gone:
            self._report(path, Code.REMOVED_PLUGIN, message, gone)
        elif life:
            self._report(path, Code.NO_SUCH_PLUGIN, message, f"kube-scheduler has it from 1.{life[0]} to 1.{life[1]}")
        elif self._compat or not entry.name or entry.name == "*" or (guess and misspelt(entry.name, self._known)):
            other = f"it belongs to {owner}" if owner else "it is not one of kube-scheduler's own plugins"
            self._report(path, Code.NO_SUCH_PLUGIN, message, (None if owner else guess) or other)
            self._mend(entry.name)
        elif entry.name not in self._foreign:
            self._foreign.add(entry.name)
            message = f'plugin "{entry.name}" is not part of kube-scheduler: explanations and simulations leave it out'
            notes = [f"it belongs to {owner}" if owner else "a scheduler that has it built in accepts this"]
            notes += [guess] if guess and not owner else []
            if any(part in _STAND_INS for part in entry.path):
                notes.append(f"{_STAND_INS[point]} stands in for it")
            self._diagnostics.append(report(self._profile, path, Code.FOREIGN_PLUGIN, message, *notes, severity=Severity.WARNING))

    def _left_out(self, point: str) -> bool:
        """Whether a plugin of another project was left out that may have run at a point."""
        listed = (*self._sets[point].enabled, *self._sets[MULTI_POINT].enabled)
        return any(entry.name in self._foreign for entry in listed)

    def _check_rivals(self, sorts: tuple[str, ...]) -> None:
        """A queueSort of another project beside one that runs here: where it is built in, there are two."""
        for index, entry in enumerate(self._sets["queueSort"].enabled):
            if sorts and entry.name in self._foreign:
                path, note = ("plugins", "queueSort", "enabled", index, "name"), 'write disabled: [{name: "*"}] beside it'
                message = f"only one queue sort plugin may run: a scheduler that has {entry.name} refuses it beside {sorts[0]}"
                self._diagnostics.append(report(self._profile, path, Code.QUEUE_SORT, message, note, severity=Severity.WARNING))

    def _mend(self, name: str) -> None:
        """Give the last finding the edit that corrects a misspelt name."""
        finding = self._diagnostics[-1]
        meant = misspelt(name, self._known) if len(self._diagnostics) < _MOST_GUESSES else None
        if meant and finding.span and finding.span.text.strip("\"'") == name:
            edit = Edit(finding.span, finding.span.text.replace(name, meant))
            self._diagnostics[-1] = dataclasses.replace(finding, edits=(edit,))

    def _explicit(self, point: str) -> list[str]:
        """The names that a profile lists at a point itself (`updatePluginList`)."""
        names: list[str] = []
        for entry in _entries(point, self._sets[point]):
            path: Path = (*entry.path, "name")
            if not self._exists(entry, point):
                continue
            if point not in self._known[entry.name].points:
                self._wrong_point(entry, point)
            elif entry.name in names:
                message = f'plugin "{entry.name}" already registered as "{interface(point)}"'
                self._report(path, Code.ENABLED_TWICE, message, *self._first(point, entry))
            else:
                names.append(entry.name)
        return names

    def _first(self, point: str, entry: _Entry) -> list[str]:
        """Where a plugin that is listed twice was listed first."""
        earlier = next(other for other in _entries(point, self._sets[point]) if other.name == entry.name)
        span = self._profile.origin.under(*earlier.path, "name").span if self._profile.origin else None
        return [f"first enabled in line {span.line}"] if span else []

    def _wrong_point(self, entry: _Entry, point: str) -> None:
        message = f'plugin "{entry.name}" does not extend {interface(point)} plugin'
        known = self._known.get(entry.name)
        runs = points_of(entry.name, self._minor) if known is None else known.points
        note = f"it runs at {', '.join(point for point in POINTS if point in runs)}"
        self._report((*entry.path, "name"), Code.WRONG_POINT, message, note)

    def _check_everywhere(self) -> None:
        """Names in multiPoint that exist nowhere, once each; upstream stops at the first point, PreFilter."""
        open_points = [p for p in ("preFilter", *POINTS) if not _closed(self._sets[p])]
        for entry in self._everywhere:
            self._exists(entry, open_points[0] if open_points else "preFilter")

    def _spread(self, point: str, explicit: list[str]) -> tuple[str, ...]:
        """The final list of a point: overrides of multiPoint, the rest of multiPoint, the rest of the explicit list."""
        if not self._everywhere or _closed(self._sets[point]):
            return tuple(explicit)
        disabled = {entry.name for entry in self._sets[point].disabled}
        listed = {entry.name for entry in self._sets[point].enabled}
        overridden: set[str] = set()
        spread: list[str] = []
        for entry in self._everywhere:
            plugin = self._known.get(entry.name)
            if plugin is None or point not in plugin.points or entry.name in disabled:
                continue
            if entry.name in listed:
                overridden.add(entry.name)
            elif entry.name in spread:
                self._twice(entry, point)
            else:
                spread.append(entry.name)
        first = [name for name in explicit if name in overridden]
        return (*first, *spread, *(name for name in explicit if name not in overridden))

    def _twice(self, entry: _Entry, point: str) -> None:
        if entry.name not in self._blamed:
            self._blamed.add(entry.name)
            message = f'plugin "{entry.name}" already registered as "{interface(point)}"'
            self._report((*entry.path, "name"), Code.ENABLED_TWICE, message)

    def _weights(self, point: str, running: tuple[str, ...], subject: str) -> dict[str, int]:
        """Weights of the plugins running at a point; the point's own list comes before multiPoint (`getValidScoreWeights`)."""
        weights: dict[str, int] = {}
        total = 0
        for entry in (*_entries(point, self._sets[point]), *self._everywhere):
            plugin = self._known.get(entry.name)
            if plugin is None or point not in plugin.points or entry.name in weights:
                continue
            weight = weights[entry.name] = entry.weight or 1
            # int64 as upstream: after a negative sum the difference wraps, which is what refuses negative weights
            if weight * _HIGHEST_SCORE > _wrap(_INT64 // 2 - 1 - total):
                message = f"{subject}: total score of Score plugins could overflow"
                notes = ["a negative weight must not come first"] if total < 0 else []
                self._report(entry.path, Code.WEIGHT_OVERFLOW, message, *notes)
                break
            total += weight * _HIGHEST_SCORE
        return {name: weights.get(name, 1) for name in running}

    def _check_structure(self, points: Mapping[str, tuple[str, ...]]) -> None:
        named = f'profile with scheduler name "{self._profile.scheduler_name or ""}"'
        sorts = len(points["queueSort"])
        if sorts != 1:
            message = f"only one queue sort plugin required for {named}, but got {sorts}"
            self._report(("plugins", "queueSort"), Code.QUEUE_SORT, message)
        if not points["bind"]:
            self._report(("plugins", "bind"), Code.NO_BIND, f"at least one bind plugin is needed for {named}")
        if len(points["placementGenerate"]) > 1:
            message = f"at most one placement generate plugin is allowed for {named}"
            self._report(("plugins", "placementGenerate"), Code.PLACEMENT_GENERATE, message)


def _entries(point: str, plugins: PluginSet) -> list[_Entry]:
    return [_Entry(entry.name, entry.weight, ("plugins", point, "enabled", index)) for index, entry in enumerate(plugins.enabled)]


def _closed(plugins: PluginSet) -> bool:
    return any(entry.name == "*" for entry in plugins.disabled)


def _merged(written: PluginSet, defaults: Iterable[Pluggable]) -> list[_Entry]:
    """What runs at multiPoint: the defaults, replaced in place where re-configured, then what else is enabled."""
    entries = _entries(MULTI_POINT, written)
    if _closed(written):
        return entries
    disabled = {entry.name for entry in written.disabled}
    # of a name that is written twice only the last replaces the default; the other is appended and found to be one too many
    last = {entry.name: entry for entry in entries}
    merged, consumed = [], set()
    for plugin in defaults:
        if plugin.name in disabled:
            continue
        replacement = last.get(plugin.name)
        if replacement is not None:
            consumed.add(replacement.path)
        merged.append(replacement or _Entry(plugin.name, plugin.weight, ("plugins", MULTI_POINT)))
    return merged + [entry for entry in entries if entry.path not in consumed]


def _wrap(number: int) -> int:
    """As a signed integer of 64 bits."""
    return (number + _INT64 // 2) % _INT64 - _INT64 // 2
