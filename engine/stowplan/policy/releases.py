"""The plugins of kube-scheduler by release, as far as files are concerned: names, points, weights and args, no evaluation.

`plugins_of(37)` is the outline of `stowplan.plugins.IN_TREE` and of what a feature gate adds; a test compares them. What a
release has is told by when plugins, points and fields came and went (upstream: `NewInTreeRegistry`, `getDefaultPlugins`, and the
expanded defaults of the tests of its configuration); feature gates count as in a default installation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stowplan.plugins.arguments import ARGS
from stowplan.profile.versions import NEWEST, OLDEST

_NEVER = NEWEST + 1


def nothing() -> None:
    """Args of a plugin that takes none."""


@dataclass(frozen=True, slots=True)
class Outline:
    """What must be known of a plugin to check a file that names it."""

    name: str
    points: frozenset[str]
    weight: int = 0
    default: bool = True
    args: Callable[[], object] = nothing


@dataclass(frozen=True, slots=True)
class _Plugin:
    """A plugin from the first release that had it to the last, with its points; `default` are those that run it unasked."""

    name: str
    points: tuple[str, ...]
    weight: int = 0
    has: tuple[int, int] = (OLDEST, NEWEST)
    default: tuple[int, int] = (OLDEST, NEWEST)
    later: Mapping[str, int] = field(default_factory=dict)
    """points that it has only from a release on"""

    def points_in(self, minor: int) -> frozenset[str]:
        """Where it runs in a release that has it."""
        since = {**_POINT_SINCE, **self.later}
        return frozenset(point for point in self.points if since.get(point, 0) <= minor)


_FILTERS = ("preFilter", "filter")
_SCORES = ("preScore", "score")
_POINT_SINCE = {"preEnqueue": 26, "placementGenerate": 36, "placementScore": 36, "podGroupPostFilter": 37}
_OFF = (_NEVER, _NEVER)


def _cloud_limits(name: str, default: tuple[int, int]) -> _Plugin:
    """A plugin that counts the volumes of one cloud, which NodeVolumeLimits does since they are all CSI."""
    return _Plugin(name, _FILTERS, has=(OLDEST, 31), default=default, later={"preFilter": 28})


_HISTORY = (
    _Plugin("SchedulingGates", ("preEnqueue",), has=(26, NEWEST), default=(27, NEWEST)),
    _Plugin("PrioritySort", ("queueSort",)),
    _Plugin("NodeName", _FILTERS, later={"preFilter": 37}),
    _Plugin("NodeUnschedulable", _FILTERS, later={"preFilter": 37}),
    _Plugin("TaintToleration", (*_FILTERS, *_SCORES), 3, later={"preFilter": 37}),
    _Plugin("NodeAffinity", (*_FILTERS, *_SCORES), 2),
    _Plugin("NodePorts", _FILTERS),
    _Plugin("DeferredPodScheduling", (*_FILTERS, "permit"), has=(37, NEWEST), default=_OFF),
    _Plugin("NodeResourcesFit", (*_FILTERS, *_SCORES, "placementScore"), 1, later={"preScore": 27}),
    _Plugin("VolumeRestrictions", _FILTERS),
    _cloud_limits("EBSLimits", (OLDEST, 30)),
    _cloud_limits("GCEPDLimits", (OLDEST, 30)),
    _Plugin("NodeVolumeLimits", _FILTERS, later={"preFilter": 28}),
    _cloud_limits("AzureDiskLimits", (OLDEST, 30)),
    _cloud_limits("CinderLimits", _OFF),
    _Plugin("VolumeBinding", (*_FILTERS, *_SCORES, "reserve", "preBind"), later={"preScore": 29}),
    _Plugin("VolumeZone", _FILTERS, later={"preFilter": 27}),
    _Plugin("PodTopologySpread", (*_FILTERS, *_SCORES), 2),
    _Plugin("InterPodAffinity", (*_FILTERS, *_SCORES), 2),
    _Plugin(
        "DynamicResources",
        ("preEnqueue", *_FILTERS, "postFilter", "podGroupPostFilter", "score", "reserve", "preBind"),
        2,
        has=(26, NEWEST),
        default=(34, NEWEST),
        later={"score": 35},
    ),
    _Plugin("DefaultPreemption", ("preEnqueue", "postFilter", "podGroupPostFilter"), later={"preEnqueue": 32}),
    _Plugin("NodeResourcesBalancedAllocation", _SCORES, 1, later={"preScore": 27}),
    _Plugin("ImageLocality", ("score",), 1),
    _Plugin("DefaultBinder", ("bind",)),
    _Plugin("NodeDeclaredFeatures", _FILTERS, has=(35, NEWEST), default=(36, NEWEST)),
    _Plugin("GangScheduling", ("preEnqueue", "permit"), has=(35, NEWEST), default=_OFF),
    _Plugin("TopologyPlacementGenerator", ("placementGenerate",), has=(36, NEWEST), default=_OFF),
    _Plugin("PodGroupPodsCount", ("placementScore",), 1, has=(36, NEWEST), default=_OFF),
)
_GATES = {
    "DeferredPodScheduling": "InPlacePodVerticalScalingSchedulerPreemption",
    "GangScheduling": "GenericWorkload",
    "TopologyPlacementGenerator": "TopologyAwareWorkloadScheduling",
    "PodGroupPodsCount": "TopologyAwareWorkloadScheduling",
}
_GATES_LAST, _NAME_FIRST = 30, 37
"""releases from which on SchedulingGates comes first, and NodeName before NodeUnschedulable"""
_FIELD_SINCE: dict[tuple[str, ...], int] = {
    ("profiles", "*", "percentageOfNodesToScore"): 26,
    ("delayCacheUntilActive",): 28,
    **{("profiles", "*", "plugins", point): since for point, since in _POINT_SINCE.items()},
}
_ARGS_SINCE = {
    ("InterPodAffinity", "ignorePreferredTermsOfExistingPods"): 27,
    ("DynamicResources", "filterTimeout"): 34,
    ("DynamicResources", "bindingTimeout"): 36,
    ("VolumeBinding", "shape"): 37,
}
_ARGS_CHECKED = {"DynamicResources": 34}
"""releases from which on kube-scheduler knows the args of a plugin at all; before, it ignores them"""


def plugins_of(minor: int) -> tuple[Outline, ...]:
    """The plugins of kube-scheduler 1.`minor` in default order. Raises ValueError for a release that is not known."""
    if not OLDEST <= minor <= NEWEST:
        raise ValueError(f"known are kube-scheduler 1.{OLDEST} to 1.{NEWEST}")
    return tuple(
        Outline(
            plugin.name,
            points := plugin.points_in(minor),
            plugin.weight if points & {"score", "placementScore"} else 0,
            plugin.default[0] <= minor <= plugin.default[1],
            ARGS.get(plugin.name, nothing),
        )
        for plugin in _ordered(minor)
        if plugin.has[0] <= minor <= plugin.has[1]
    )


def _ordered(minor: int) -> list[_Plugin]:
    """All plugins in the default order of a release."""
    plugins = {plugin.name: plugin for plugin in _HISTORY}
    names = list(plugins)
    if minor < _GATES_LAST:
        names.append(names.pop(names.index("SchedulingGates")))
    if minor < _NAME_FIRST:
        names.remove("NodeUnschedulable")
        names.insert(names.index("NodeName"), "NodeUnschedulable")
    return [plugins[name] for name in names]


def lifetime(name: str) -> tuple[int, int] | None:
    """The first and last known release with a plugin; None for a name that no known release has."""
    return next((plugin.has for plugin in _HISTORY if plugin.name == name), None)


def points_of(name: str, minor: int) -> frozenset[str]:
    """Where a plugin of kube-scheduler 1.`minor` runs; empty for one that it does not have."""
    return next((plugin.points_in(minor) for plugin in _HISTORY if plugin.name == name), frozenset())


def gate_of(name: str) -> str | None:
    """The feature gate, off by default, without which a plugin of kube-scheduler has nothing to do."""
    return _GATES.get(name)


def fields_since() -> Mapping[tuple[str, ...], int]:
    """Fields that came later than 1.25, by path (`*` for any position), with the release in which they came."""
    return _FIELD_SINCE


def args_since(minor: int, *, compat: bool) -> Mapping[tuple[str, str], int]:
    """Fields of args that kube-scheduler 1.`minor` does not take, by plugin and name, with the release from which on it does.

    With `compat` only those for which it refuses a file.
    """
    return {
        key: since for key, since in _ARGS_SINCE.items() if since > minor and not (compat and minor < _ARGS_CHECKED.get(key[0], 0))
    }
