"""Names of plugins that kube-scheduler does not have: those of other projects, those it had once, and misspelt ones."""

from __future__ import annotations

from collections.abc import Iterable

_PROJECTS = {
    "scheduler-plugins (kubernetes-sigs)": (
        "CapacityScheduling", "CrossNodePreemption", "DiskIO", "LoadVariationRiskBalancing", "LowRiskOverCommitment",
        "NetworkOverhead", "NodeMetadata", "NodeResourceTopologyMatch", "NodeResourcesAllocatable", "Peaks", "PodState",
        "PreemptionToleration", "QOSSort", "SySched", "TargetLoadPacking", "TopologicalSort",
    ),
    "scheduler-plugins (kubernetes-sigs) or Koordinator": ("Coscheduling",),
    "Koordinator": (
        "DefaultPreBind", "DeviceShare", "ElasticQuota", "LoadAwareScheduling", "NodeNUMAResource", "NodeResourcesFitPlus",
        "Reservation", "ScarceResourceAvoidance",
    ),
    "Volcano, which reads a configuration of its own": (
        "binpack", "conformance", "drf", "gang", "nodeorder", "predicates", "priority", "proportion",
    ),
    "Katalyst": ("NodeOvercommitment", "QoSAwareNodeResourcesBalancedAllocation", "QoSAwareNodeResourcesFit"),
    "Crane": ("Dynamic", "NodeResourceTopology"),
    "Apache YuniKorn": ("YuniKornPlugin",),
    "Fluence": ("Fluence",),
    "Open-Local": ("Open-Local",),
    "kube-scheduler-simulator": ("NodeNumber",),
}  # fmt: skip
_PROJECT_OF = {name: project for project, names in _PROJECTS.items() for name in names}

_STRATEGY = "NodeResourcesFit with scoringStrategy.type {} does its work"
_REPLACED = {
    "NodeResourcesLeastAllocated": (22, _STRATEGY.format("LeastAllocated")),
    "NodeResourcesMostAllocated": (22, _STRATEGY.format("MostAllocated")),
    "RequestedToCapacityRatio": (22, _STRATEGY.format("RequestedToCapacityRatio")),
    "NodeLabel": (22, "NodeAffinity with addedAffinity comes close"),
    "ServiceAffinity": (22, "nothing does its work; pod affinity comes close"),
    "NodePreferAvoidPods": (23, "taints of effect PreferNoSchedule do its work"),
    "NodeResourceLimits": (20, "nothing does its work"),
    "SelectorSpread": (24, "PodTopologySpread with defaultingType System does its work"),
    "DefaultPodTopologySpread": (19, "PodTopologySpread with defaultingType System does its work"),
    **dict.fromkeys(("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"), (31, "NodeVolumeLimits does its work")),
}
_STRATEGIES = {
    "NodeResourcesLeastAllocated": "LeastAllocated",
    "NodeResourcesMostAllocated": "MostAllocated",
    "RequestedToCapacityRatio": "RequestedToCapacityRatio",
}
_ALIKE, _FARTHEST = 0.88, 3


def project_of(name: str) -> str | None:
    """The project that is known to have a plugin of this name."""
    return _PROJECT_OF.get(name)


def replacement(name: str) -> str | None:
    """When a plugin left kube-scheduler and what does its work now; None for a name that kube-scheduler never had."""
    known = _REPLACED.get(name)
    return f"it left kube-scheduler after 1.{known[0]}: {known[1]}" if known else None


def strategy_of(name: str) -> str | None:
    """The scoring strategy of NodeResourcesFit that a removed plugin became."""
    return _STRATEGIES.get(name)


def misspelt(name: str, known: Iterable[str]) -> str | None:
    """The known name that was meant, if hardly anything else can have been.

    A known name with something added in front or behind (`NodeResourcesFitV2`) is how people call a plugin of their own.
    """
    if not name or name in _PROJECT_OF or name in _REPLACED:
        return None
    from difflib import SequenceMatcher  # noqa: PLC0415 - only after a mistake, and slow to import

    best, likeness = None, _ALIKE
    for candidate in known:
        if candidate.lower() == name.lower():
            return candidate
        if abs(len(candidate) - len(name)) > _FARTHEST:
            continue
        longer = name.removeprefix(candidate)
        if candidate[0].lower() != name[0].lower() or (longer != name and (longer[0].isupper() or not longer[0].isalpha())):
            continue
        ratio = SequenceMatcher(None, name.lower(), candidate.lower()).ratio()
        if ratio >= likeness:
            best, likeness = candidate, ratio
    return best
