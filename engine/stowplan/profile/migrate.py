"""Older configurations become `kubescheduler.config.k8s.io/v1`, one step for each version.

Steps change plain mappings and lists in place, so that they serve both a file that keeps its comments and a tree that keeps
its places. What they do they tell as `Change`s; what a step does not know it leaves alone, for the decoder to complain about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard

from stowplan.profile.legacy import from_policy
from stowplan.profile.rules import RULES
from stowplan.profile.versions import GROUP, KUBERNETES, POLICY, STOWPLAN
from stowplan.text import Path

Data: TypeAlias = MutableMapping[str, Any]

STRATEGIES = {
    "NodeResourcesLeastAllocated": "LeastAllocated",
    "NodeResourcesMostAllocated": "MostAllocated",
    "RequestedToCapacityRatio": "RequestedToCapacityRatio",
}
"""Plugins that became scoring strategies of NodeResourcesFit."""
FIT = "NodeResourcesFit"
_OLD_WEIGHTS = ("TaintToleration", "NodeAffinity", "InterPodAffinity")
_SCORED = ("score", "multiPoint")
_WEIGHED = (("multiPoint", "enabled"), ("score", "enabled"))
_GONE = {
    "NodeLabel": "addedAffinity of NodeAffinity comes close",
    "ServiceAffinity": "pod affinity comes close",
    "NodePreferAvoidPods": "taints of effect PreferNoSchedule do its work",
}
_LIMITS = dict.fromkeys(("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"), "NodeVolumeLimits does its work")


@dataclass(frozen=True, slots=True)
class Change:
    """What a step did at a path of the old file; `lost` if nothing in the new file does the same."""

    path: Path
    text: str
    lost: bool = False


Changes: TypeAlias = list[Change]


def migrate(data: Data) -> Changes:
    """Change a configuration of any known version to v1, in place; a Policy too."""
    changes: Changes = []
    if data.get("kind") == POLICY[1]:
        for path, text, lost in from_policy(data):
            changes.append(Change(path, text, lost))
    else:
        versions = [version for version, _ in MIGRATIONS]
        version = str(data.get("apiVersion"))
        for _, step in MIGRATIONS[versions.index(version) :] if version in versions else ():
            step(data, changes)
    for _, profile in _profiles(data):
        for entry in _list(profile, "pluginConfig"):
            args = entry.get("args") if _is_map(entry) else None
            if _is_map(args) and str(args.get("apiVersion", "")).startswith(f"{GROUP}/"):
                args["apiVersion"] = KUBERNETES[0]
    data["apiVersion"], data["kind"] = KUBERNETES
    return changes


def to_policy(data: Data) -> Changes:
    """Change a v1 configuration to a SchedulerPolicy, in place: rules leave pluginConfig, the rest stays."""
    changes: Changes = []
    for index, profile in _profiles(data):
        configs = _list(profile, "pluginConfig")
        for position in range(len(configs) - 1, -1, -1):
            if _name(configs[position]) != RULES:
                continue
            args = configs[position].get("args")
            del configs[position]
            for name in ("variables", "rules"):
                if _is_map(args) and _list(args, name):
                    profile[name] = args[name]
            changes.append(Change(("profiles", index, "pluginConfig", position), "rules move into the profile"))
        if "pluginConfig" in profile and not configs:
            del profile["pluginConfig"]
    data["apiVersion"], data["kind"] = STOWPLAN
    changes.append(Change(("kind",), f"{KUBERNETES[1]} becomes {STOWPLAN[1]}; kube-scheduler does not read that"))
    return changes


def _to_alpha(_data: Data, _changes: Changes) -> None:
    """The group of componentconfig only got another name."""


def _to_profiles(data: Data, changes: Changes) -> None:
    """v1alpha1: a single profile, spread over the top level."""
    profile = {name: data.pop(name) for name in ("schedulerName", "plugins", "pluginConfig") if name in data}
    changes += [Change((name,), f"{name} moves into profiles[0]") for name in profile]
    if "algorithmSource" in data:
        source = data.pop("algorithmSource")
        provider = source.get("provider") if _is_map(source) else None
        path = ("algorithmSource", "provider") if provider else ("algorithmSource",)
        if provider == "DefaultProvider":
            changes.append(Change(path, "the default provider converts to nothing: the defaults"))
        elif provider == "ClusterAutoscalerProvider":
            changes.append(Change(path, f"the provider becomes {FIT} with scoringStrategy.type MostAllocated"))
            _strategy(profile)["type"] = "MostAllocated"
        else:
            changes.append(Change(path, "a policy is a file of its own: convert that", lost=True))
    for old, plugin, new in (
        ("hardPodAffinitySymmetricWeight", "InterPodAffinity", "hardPodAffinityWeight"),
        ("bindTimeoutSeconds", "VolumeBinding", "bindTimeoutSeconds"),
    ):
        if old in data:
            _args(profile, plugin)[new] = data.pop(old)
            changes.append(Change((old,), f"{old} becomes {new} in the args of {plugin}"))
    if "failureDomains" in data:
        data.pop("failureDomains")
        changes.append(Change(("failureDomains",), "failureDomains did nothing"))
    if profile:
        data["profiles"] = [profile]


def _to_beta(data: Data, changes: Changes) -> None:
    """v1alpha2: the lock has another name, preemption a switch of its own, Unreserve a point of its own."""
    election = data.get("leaderElection")
    for old, new in (("lockObjectName", "resourceName"), ("lockObjectNamespace", "resourceNamespace")):
        if _is_map(election) and old in election:
            election[new] = election.pop(old)
            changes.append(Change(("leaderElection", old), f"{old} becomes {new}"))
    if "disablePreemption" in data:
        changes.append(Change(("disablePreemption",), "preemption is switched off at postFilter"))
        if data.pop("disablePreemption") is True:
            _made_profiles(data)
            for _, profile in _profiles(data):
                _entries(profile, "postFilter", "disabled").append({"name": "DefaultPreemption"})
    for index, profile in _profiles(data):
        plugins = profile.get("plugins")
        if _is_map(plugins) and "unreserve" in plugins:
            plugins.setdefault("reserve", plugins["unreserve"])
            del plugins["unreserve"]
            changes.append(Change(("profiles", index, "plugins", "unreserve"), "unreserve is part of reserve"))


def _to_beta2(data: Data, changes: Changes) -> None:
    """v1beta1: plugins that score by resources became strategies of one, and three plugins went."""
    for index, profile in _profiles(data):
        _merge_strategies(profile, ("profiles", index), changes)
        _drop(profile, ("profiles", index), _GONE, changes)


def _merge_strategies(profile: Data, path: Path, changes: Changes) -> None:
    chosen = _chosen_strategy(profile)
    for point, key, entries in _sets(profile):
        for position in range(len(entries) - 1, -1, -1):
            name = _name(entries[position])
            if name not in STRATEGIES:
                continue
            where: Path = (*path, "plugins", point, key, position)
            others = {_name(entry) for index, entry in enumerate(entries) if index != position}
            if key == "enabled" and name != chosen:
                changes.append(Change(where, f"{name} is left out: {FIT} has one strategy", lost=True))
            elif key == "enabled" and point in _SCORED:
                changes.append(Change(where, f"{name} becomes {FIT} with scoringStrategy.type {STRATEGIES[name]}"))
            if point not in _SCORED or FIT in others or (key == "enabled" and name != chosen):
                del entries[position]
            else:
                entries[position]["name"] = FIT
    if chosen is not None:
        _strategy(profile)["type"] = STRATEGIES[chosen]
    _merge_args(profile, path, chosen, changes)


def _merge_args(profile: Data, path: Path, chosen: str | None, changes: Changes) -> None:
    """Args of plugins that became strategies; `chosen` is the one that is enabled."""
    configs = _list(profile, "pluginConfig")
    for position in range(len(configs) - 1, -1, -1):
        name = _name(configs[position])
        args = configs[position].get("args") if name in STRATEGIES else ""
        if args is not None and not _is_map(args):
            continue
        del configs[position]
        if name == (chosen or "NodeResourcesLeastAllocated"):
            _take_args(_strategy(profile), STRATEGIES[name], args or {})
            changes.append(Change((*path, "pluginConfig", position), f"args of {name} move into scoringStrategy of {FIT}"))
        else:
            changes.append(Change((*path, "pluginConfig", position), f"args of {name} are left out", lost=True))


def _chosen_strategy(profile: Data) -> str | None:
    """The first of the plugins enabled to score that became strategies."""
    for point, key, entries in _sets(profile):
        if key == "enabled" and point in _SCORED:
            for entry in entries:
                if _name(entry) in STRATEGIES:
                    return _name(entry)
    return None


def _take_args(strategy: Data, kind: str, args: Data) -> None:
    strategy["type"] = kind
    if args.get("resources"):
        strategy["resources"] = args["resources"]
    if args.get("shape"):
        strategy["requestedToCapacityRatio"] = {"shape": args["shape"]}


def _to_beta3(data: Data, changes: Changes) -> None:
    """v1beta2: other default weights, and addresses that are flags now."""
    for name in ("healthzBindAddress", "metricsBindAddress"):
        if name in data:
            del data[name]
            changes.append(Change((name,), f"{name} is gone: use --bind-address and --secure-port"))
    _made_profiles(data)
    for index, profile in _profiles(data):
        entries = _entries(profile, "multiPoint", "enabled")
        known = {_name(entry) for point, key, listed in _sets(profile) for entry in listed if (point, key) in _WEIGHED}
        entries += [{"name": name, "weight": 1} for name in _OLD_WEIGHTS if name not in known]
        text = "the default weights of TaintToleration, NodeAffinity and InterPodAffinity were 1: written out"
        changes.append(Change(("profiles", index), text))


def _to_v1(data: Data, changes: Changes) -> None:
    """v1beta3: SelectorSpread became what PodTopologySpread does by default; one plugin counts volumes for all."""
    for index, profile in _profiles(data):
        path: Path = ("profiles", index)
        for point, key, entries in _sets(profile):
            others = {_name(entry) for entry in entries}
            for position in range(len(entries) - 1, -1, -1):
                if _name(entries[position]) == "SelectorSpread":
                    changes.append(Change((*path, "plugins", point, key, position), "SelectorSpread becomes PodTopologySpread"))
                    if "PodTopologySpread" in others:
                        del entries[position]
                    else:
                        entries[position]["name"] = "PodTopologySpread"
        _drop(profile, path, _LIMITS | {"SelectorSpread": "PodTopologySpread does its work"}, changes)


_Step: TypeAlias = Callable[[Data, Changes], None]
MIGRATIONS: tuple[tuple[str, _Step], ...] = (
    ("componentconfig/v1alpha1", _to_alpha),
    (f"{GROUP}/v1alpha1", _to_profiles),
    (f"{GROUP}/v1alpha2", _to_beta),
    (f"{GROUP}/v1beta1", _to_beta2),
    (f"{GROUP}/v1beta2", _to_beta3),
    (f"{GROUP}/v1beta3", _to_v1),
)
"""The step that each version takes to the next."""


def _drop(profile: Data, path: Path, names: dict[str, str], changes: Changes) -> None:
    """Remove every mention of plugins that are gone."""
    lists: list[tuple[Path, list[Any]]] = [(("plugins", point, key), entries) for point, key, entries in _sets(profile)]
    lists.append((("pluginConfig",), _list(profile, "pluginConfig")))
    for where, entries in lists:
        for position in range(len(entries) - 1, -1, -1):
            name = _name(entries[position])
            if name in names:
                lost = "comes close" in names[name]
                changes.append(Change((*path, *where, position), f"{name} is gone: {names[name]}", lost))
                del entries[position]


def _is_map(value: Any) -> TypeGuard[Data]:
    return isinstance(value, MutableMapping)


def _name(entry: Any) -> str:
    return str(entry.get("name")) if _is_map(entry) else ""


def _list(data: Any, name: str) -> list[Any]:
    """The list under a name; an empty one that belongs to nobody if there is none."""
    found = data.get(name) if _is_map(data) else None
    return found if isinstance(found, list) else []


def _profiles(data: Data) -> Iterator[tuple[int, Data]]:
    for index, profile in enumerate(_list(data, "profiles")):
        if _is_map(profile):
            yield index, profile


def _made_profiles(data: Data) -> None:
    """What is done to every profile is done to the default one, if there is none."""
    if data.get("profiles") in (None, []):
        data["profiles"] = [{}]


def _sets(profile: Data) -> Iterator[tuple[str, str, list[Any]]]:
    """Every list of plugins of a profile with its point and key."""
    plugins = profile.get("plugins")
    for point, plugin_set in plugins.items() if isinstance(plugins, MutableMapping) else ():
        for key in ("enabled", "disabled"):
            if entries := _list(plugin_set, key):
                yield point, key, entries


def _entries(profile: Data, point: str, key: str) -> list[Any]:
    """The list of plugins at a point, made if need be."""
    plugins = _made(profile, "plugins", {})
    entries: list[Any] = _made(_made(plugins, point, {}), key, [])
    return entries


def _made(data: Data, name: str, empty: Any) -> Any:
    """What stands under a name, made if need be; if that has another type than `empty`, something that belongs to nobody."""
    if data.get(name) is None:
        data[name] = empty
    found = data[name]
    return found if isinstance(found, MutableMapping if empty == {} else list) else empty


def _args(profile: Data, plugin: str) -> Data:
    """The args of a plugin, made if need be."""
    configs = _made(profile, "pluginConfig", [])
    for entry in configs:
        if _name(entry) == plugin:
            break
    else:
        entry = {"name": plugin}
        configs.append(entry)
    args: Data = _made(entry, "args", {})
    return args


def _strategy(profile: Data) -> Data:
    strategy: Data = _made(_args(profile, FIT), "scoringStrategy", {})
    return strategy
