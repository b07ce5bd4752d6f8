"""The plugins of kube-scheduler by release, as far as files are concerned: names, points, weights and args, no evaluation.

`plugins_of(37)` is the outline of `stowplan.plugins.IN_TREE`; a test compares them. What a release has is told by when a
plugin or a point came and went; feature gates count as in a default installation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from stowplan.plugins.arguments import ARGS
from stowplan.profile.versions import NEWEST, OLDEST

_FILTERS = ("preFilter", "filter")
_SCORES = ("preScore", "score")


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
class _Span:
    """A plugin from the release in which it came to the last that had it."""

    name: str
    points: tuple[str, ...]
    weight: int = 0
    since: int = OLDEST
    until: int = NEWEST
    default: bool = True


_HISTORY = (
    _Span("SchedulingGates", ("preEnqueue",), since=27),
    _Span("PrioritySort", ("queueSort",)),
    _Span("NodeName", _FILTERS),
    _Span("NodeUnschedulable", _FILTERS),
    _Span("TaintToleration", (*_FILTERS, *_SCORES), 3),
    _Span("NodeAffinity", (*_FILTERS, *_SCORES), 2),
    _Span("NodePorts", _FILTERS),
    _Span("NodeResourcesFit", (*_FILTERS, *_SCORES, "placementScore"), 1),
    _Span("VolumeRestrictions", _FILTERS),
    _Span("EBSLimits", ("filter",), until=30),
    _Span("GCEPDLimits", ("filter",), until=30),
    _Span("NodeVolumeLimits", _FILTERS),
    _Span("AzureDiskLimits", ("filter",), until=30),
    _Span("CinderLimits", ("filter",), until=30, default=False),
    _Span("VolumeBinding", (*_FILTERS, *_SCORES, "reserve", "preBind")),
    _Span("VolumeZone", _FILTERS),
    _Span("PodTopologySpread", (*_FILTERS, *_SCORES), 2),
    _Span("InterPodAffinity", (*_FILTERS, *_SCORES), 2),
    _Span(
        "DynamicResources",
        ("preEnqueue", *_FILTERS, "postFilter", "podGroupPostFilter", "score", "reserve", "preBind"),
        2,
        since=34,
    ),
    _Span("DefaultPreemption", ("preEnqueue", "postFilter", "podGroupPostFilter")),
    _Span("NodeResourcesBalancedAllocation", _SCORES, 1),
    _Span("ImageLocality", ("score",), 1),
    _Span("DefaultBinder", ("bind",)),
    _Span("NodeDeclaredFeatures", _FILTERS, since=36),
)
_POINT_SINCE = {"preEnqueue": 26, "placementGenerate": 36, "placementScore": 36, "podGroupPostFilter": 37}
_FIELD_SINCE: dict[tuple[str, ...], int] = {
    ("profiles", "*", "percentageOfNodesToScore"): 26,
    ("delayCacheUntilActive",): 28,
    **{("profiles", "*", "plugins", point): since for point, since in _POINT_SINCE.items()},
}


def plugins_of(minor: int) -> tuple[Outline, ...]:
    """The plugins of kube-scheduler 1.`minor` in default order. Raises ValueError for a release that is not known."""
    if not OLDEST <= minor <= NEWEST:
        raise ValueError(f"known are kube-scheduler 1.{OLDEST} to 1.{NEWEST}")
    return tuple(
        Outline(
            plugin.name,
            frozenset(point for point in plugin.points if _POINT_SINCE.get(point, 0) <= minor),
            plugin.weight,
            plugin.default,
            ARGS.get(plugin.name, nothing),
        )
        for plugin in _HISTORY
        if plugin.since <= minor <= plugin.until
    )


def lifetime(name: str) -> tuple[int, int] | None:
    """The first and last known release with a plugin; None for a name that no known release has."""
    return next(((plugin.since, plugin.until) for plugin in _HISTORY if plugin.name == name), None)


def fields_since() -> Mapping[tuple[str, ...], int]:
    """Fields that came later than 1.25, by path (`*` for any position), with the release in which they came."""
    return _FIELD_SINCE
