"""`kind: Policy`, the configuration of predicates and priorities that kube-scheduler read until 1.22.

Translation of the table in kube-scheduler's `legacy_registry`: a predicate or priority becomes plugins at points. What a
Policy leaves out it switches off, so the profile begins with nothing but what always ran.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any, TypeAlias

from stowplan.text import Path

Told: TypeAlias = Iterator[tuple[Path, str, bool]]

_FILTERS = ("preFilter", "filter")
_SCORES = ("preScore", "score")
_ALWAYS = (("PrioritySort", ("queueSort",)), ("DefaultPreemption", ("postFilter",)), ("DefaultBinder", ("bind",)))
_MANDATORY = ("PodToleratesNodeTaints", "CheckNodeUnschedulable")
_PREDICATES = {
    "CheckNodeUnschedulable": (("NodeUnschedulable", ("filter",)),),
    "GeneralPredicates": tuple((name, _FILTERS) for name in ("NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity")),
    "HostName": (("NodeName", ("filter",)),),
    "PodFitsHost": (("NodeName", ("filter",)),),
    "PodFitsHostPorts": (("NodePorts", _FILTERS),),
    "PodFitsPorts": (("NodePorts", _FILTERS),),
    "MatchNodeSelector": (("NodeAffinity", _FILTERS),),
    "PodFitsResources": (("NodeResourcesFit", _FILTERS),),
    "NoDiskConflict": (("VolumeRestrictions", _FILTERS),),
    "PodToleratesNodeTaints": (("TaintToleration", ("filter",)),),
    "MaxCSIVolumeCountPred": (("NodeVolumeLimits", _FILTERS),),
    "CheckVolumeBinding": (("VolumeBinding", (*_FILTERS, "reserve", "preBind")),),
    "NoVolumeZoneConflict": (("VolumeZone", _FILTERS),),
    "EvenPodsSpread": (("PodTopologySpread", _FILTERS),),
    "MatchInterPodAffinity": (("InterPodAffinity", _FILTERS),),
    **dict.fromkeys(
        ("MaxEBSVolumeCount", "MaxGCEPDVolumeCount", "MaxAzureDiskVolumeCount", "MaxCinderVolumeCount"),
        (("NodeVolumeLimits", _FILTERS),),
    ),
    **dict.fromkeys(
        ("CheckNodeCondition", "CheckNodeMemoryPressure", "CheckNodeDiskPressure", "CheckNodePIDPressure"),
        (("TaintToleration", ("filter",)),),
    ),
}
_DEFAULT_PREDICATES = (
    "NoVolumeZoneConflict", "MaxCSIVolumeCountPred", "MatchInterPodAffinity", "NoDiskConflict", "GeneralPredicates",
    "PodToleratesNodeTaints", "CheckVolumeBinding", "CheckNodeUnschedulable", "EvenPodsSpread",
)  # fmt: skip
_PRIORITIES = {
    "SelectorSpreadPriority": "PodTopologySpread",
    "ServiceSpreadingPriority": "PodTopologySpread",
    "InterPodAffinityPriority": "InterPodAffinity",
    "LeastRequestedPriority": "NodeResourcesFit",
    "MostRequestedPriority": "NodeResourcesFit",
    "RequestedToCapacityRatioPriority": "NodeResourcesFit",
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "NodeAffinityPriority": "NodeAffinity",
    "TaintTolerationPriority": "TaintToleration",
    "ImageLocalityPriority": "ImageLocality",
    "EvenPodsSpreadPriority": "PodTopologySpread",
}
_DEFAULT_PRIORITIES = (
    "InterPodAffinityPriority", "LeastRequestedPriority", "BalancedResourceAllocation", "NodeAffinityPriority",
    "TaintTolerationPriority", "ImageLocalityPriority", "EvenPodsSpreadPriority",
)  # fmt: skip
_STRATEGIES = {"MostRequestedPriority": "MostAllocated", "RequestedToCapacityRatioPriority": "RequestedToCapacityRatio"}
_NOTHING = {
    "NodePreferAvoidPodsPriority": "its annotation is gone; taints of effect PreferNoSchedule do its work",
    "EqualPriority": "it did nothing",
    "ResourceLimitsPriority": "nothing does its work",
    "CheckNodeLabelPresence": "addedAffinity of NodeAffinity comes close",
    "CheckServiceAffinity": "pod affinity comes close",
}


def from_policy(data: MutableMapping[str, Any]) -> Told:
    """Turn a Policy into a configuration, in place, telling (path in the Policy, what was done, whether something is lost)."""
    lists: dict[str, dict[str, int]] = {}
    for plugin, points in _ALWAYS:
        _add(lists, plugin, points)
    args: dict[str, Any] = {}
    yield from _predicates(data.pop("predicates", None), lists)
    yield from _priorities(data.pop("priorities", None), lists, args)
    weight = data.pop("hardPodAffinitySymmetricWeight", None)
    if weight is not None:
        args["InterPodAffinity"] = {"hardPodAffinityWeight": weight}
        yield ("hardPodAffinitySymmetricWeight",), "becomes hardPodAffinityWeight in the args of InterPodAffinity", False
    if "alwaysCheckAllPredicates" in data:
        del data["alwaysCheckAllPredicates"]
        yield ("alwaysCheckAllPredicates",), "nothing does the same: filtering stops at the first refusal", True
    extenders = data.pop("extenders", None)
    data["profiles"] = [_profile(lists, args)]
    if extenders is not None:
        yield from _extenders(extenders)
        data["extenders"] = extenders


def _add(lists: dict[str, dict[str, int]], plugin: str, points: tuple[str, ...], weight: int = 0) -> None:
    for point in points:
        entries = lists.setdefault(point, {})
        entries[plugin] = entries.get(plugin, 0) + (weight if point == "score" else 0)


def _profile(lists: dict[str, dict[str, int]], args: dict[str, Any]) -> dict[str, Any]:
    plugins: dict[str, Any] = {"multiPoint": {"disabled": [{"name": "*"}]}}
    for point, entries in lists.items():
        plugins[point] = {
            "enabled": [{"name": name, "weight": weight} if weight else {"name": name} for name, weight in entries.items()]
        }
    profile: dict[str, Any] = {"schedulerName": "default-scheduler", "plugins": plugins}
    if args:
        profile["pluginConfig"] = [{"name": name, "args": given} for name, given in args.items()]
    return profile


def _named(entries: Any, key: str) -> Iterator[tuple[Path, str, MutableMapping[str, Any]]]:
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        if isinstance(entry, MutableMapping):
            yield (key, index), str(entry.get("name", "")), entry


def _predicates(entries: Any, lists: dict[str, dict[str, int]]) -> Told:
    names = list(_DEFAULT_PREDICATES) if entries is None else []
    if entries is None:
        yield ("kind",), "no predicates were listed: the default ones are written out", False
    for path, name, entry in _named(entries, "predicates"):
        argument = next(iter(entry["argument"]), "") if isinstance(entry.get("argument"), MutableMapping) else ""
        known = {"labelsPresence": "CheckNodeLabelPresence", "serviceAffinity": "CheckServiceAffinity"}.get(argument, name)
        if known in _PREDICATES:
            names.append(known)
            plugins = ", ".join(dict.fromkeys(plugin for plugin, _ in _PREDICATES[known]))
            yield path, f"predicate {name} becomes {plugins}", False
        else:
            yield path, f"predicate {name} is left out: {_NOTHING.get(known, 'it is not known')}", True
    for name in dict.fromkeys([*names, *_MANDATORY]):
        for plugin, points in _PREDICATES[name]:
            _add(lists, plugin, points)


def _priorities(entries: Any, lists: dict[str, dict[str, int]], args: dict[str, Any]) -> Told:
    if entries is None:
        yield ("kind",), "no priorities were listed: the default ones are written out", False
        entries = [{"name": n, "weight": 2 if n == "EvenPodsSpreadPriority" else 1} for n in _DEFAULT_PRIORITIES]
        for _, name, entry in _named(entries, "priorities"):
            _add(lists, _PRIORITIES[name], _points(_PRIORITIES[name]), entry["weight"])
        return
    strategy: str | None = None
    for path, name, entry in _named(entries, "priorities"):
        argument = entry.get("argument") if isinstance(entry.get("argument"), MutableMapping) else {}
        ratio = argument.get("requestedToCapacityRatioArguments") if argument else None
        known = "RequestedToCapacityRatioPriority" if ratio else name
        plugin = _PRIORITIES.get(known)
        if plugin is None or (argument and not ratio):
            yield path, f"priority {name} is left out: {_NOTHING.get(name, 'nothing does its work')}", True
            continue
        kind = _STRATEGIES.get(known, "LeastAllocated") if plugin == "NodeResourcesFit" else None
        if kind and strategy and kind != strategy:
            yield path, f"priority {name} is left out: NodeResourcesFit has one strategy", True
            continue
        weight = entry.get("weight", 1)
        _add(lists, plugin, _points(plugin), weight if isinstance(weight, int) else 1)
        yield path, f"priority {name} becomes {plugin}" + (f" with scoringStrategy.type {kind}" if kind else ""), False
        if kind:
            strategy = kind
            _set_strategy(args, kind, ratio)


def _set_strategy(args: dict[str, Any], kind: str, ratio: Any) -> None:
    if kind == "LeastAllocated":
        return
    strategy: dict[str, Any] = {"type": kind}
    if isinstance(ratio, MutableMapping):
        if ratio.get("resources"):
            strategy["resources"] = ratio["resources"]
        strategy["requestedToCapacityRatio"] = {"shape": ratio.get("shape", [])}
    args["NodeResourcesFit"] = {"scoringStrategy": strategy}


def _points(plugin: str) -> tuple[str, ...]:
    return ("score",) if plugin == "ImageLocality" else _SCORES


def _extenders(extenders: Any) -> Told:
    for index, extender in enumerate(extenders if isinstance(extenders, list) else ()):
        if not isinstance(extender, MutableMapping):
            continue
        if "enableHttps" in extender:
            extender["enableHTTPS"] = extender.pop("enableHttps")
            yield ("extenders", index, "enableHttps"), "enableHttps is enableHTTPS now", False
        timeout = extender.get("httpTimeout")
        if isinstance(timeout, int) and not isinstance(timeout, bool):
            extender["httpTimeout"] = f"{timeout}ns"
            yield ("extenders", index, "httpTimeout"), "nanoseconds are a duration now", False
