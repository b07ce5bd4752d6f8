"""Scheduler configurations that are slightly wrong, or right in an unusual way: seeds with a few random changes."""

import copy
import random

from stowplan.profile import POINTS

ODD = (
    None,
    0,
    1,
    -1,
    2,
    50,
    100,
    101,
    2**31,
    2**63,
    1.5,
    2.0,
    "",
    "x",
    "*",
    "0s",
    "5s",
    "-1s",
    "true",
    True,
    False,
    [],
    {},
    [None],
    "a b/c",
)
NAMES = (
    "NodeResourcesFit", "NodeResourceFit", "ImageLocality", "TaintToleration", "PodTopologySpread", "InterPodAffinity",
    "NodeAffinity", "NodeName", "NodePorts", "VolumeBinding", "DefaultPreemption", "DefaultBinder", "PrioritySort",
    "SchedulingGates", "DynamicResources", "NodeResourcesBalancedAllocation", "NodeDeclaredFeatures", "NodeUnschedulable",
    "EBSLimits", "NodeResourcesLeastAllocated", "Coscheduling", "*", "",
)  # fmt: skip
ARGS = {
    "NodeResourcesFit": {
        "ignoredResources": ["example.com/gpu"],
        "scoringStrategy": {
            "type": "RequestedToCapacityRatio",
            "resources": [{"name": "cpu", "weight": 3}],
            "requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]},
        },
    },
    "PodTopologySpread": {
        "defaultingType": "List",
        "defaultConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
    },
    "InterPodAffinity": {"hardPodAffinityWeight": 5},
    "VolumeBinding": {"bindTimeoutSeconds": 30, "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]},
    "DefaultPreemption": {"minCandidateNodesPercentage": 20},
    "NodeResourcesBalancedAllocation": {"resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]},
    "DynamicResources": {"filterTimeout": "3s", "bindingTimeout": "60s"},
    "NodeAffinity": {
        "addedAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
            }
        }
    },
    "Other": {"anything": [1, {"goes": True}]},
}
EXTENDER = {
    "urlPrefix": "http://127.0.0.1:1",
    "filterVerb": "filter",
    "prioritizeVerb": "rank",
    "weight": 2,
    "httpTimeout": "1s",
    "managedResources": [{"name": "example.com/x", "ignoredByScheduler": False}],
    "tlsConfig": {"insecure": True},
}


def mutated(seed, config):
    """The configuration with one to four changes; the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311 - a repeatable one is wanted
    config = copy.deepcopy(config) or {}
    config.setdefault("apiVersion", "kubescheduler.config.k8s.io/v1")
    config.setdefault("kind", "KubeSchedulerConfiguration")
    for _ in range(chance.randint(1, 4)):
        chance.choice(CHANGES)(chance, config)
    return config


def _places(value, path=()):
    """Every (container, key) below a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield value, key
        yield from _places(child, (*path, key))


def _some(chance, config):
    places = [(box, key) for box, key in _places(config) if key not in ("apiVersion", "kind")]
    return chance.choice(places) if places else (config, "parallelism")


def _odd_value(chance, config):
    box, key = _some(chance, config)
    box[key] = copy.deepcopy(chance.choice(ODD))


def _removed(chance, config):
    box, key = _some(chance, config)
    if isinstance(box, list) or key in box:
        del box[key]


def _misspelt(chance, config):
    box, key = _some(chance, config)
    if isinstance(box, dict) and key in box:
        new = chance.choice((key[:-1], key.capitalize(), key + "s", key.lower(), key))
        box[new] = box.pop(key)


def _again(chance, config):
    box, key = _some(chance, config)
    if isinstance(box, list):
        box.append(copy.deepcopy(box[key]))


def _profile(chance, config):
    profiles = config.get("profiles")
    if not isinstance(profiles, list) or not profiles:
        config["profiles"] = profiles = [{"schedulerName": "a"}]
    profile = chance.choice(profiles)
    return profile if isinstance(profile, dict) else {}


def _plugin(chance, config):
    plugins = _profile(chance, config).setdefault("plugins", {})
    point = chance.choice((*POINTS, "multiPoint", "multiPoint", "score", "score", "filter"))
    if not isinstance(plugins, dict) or not isinstance(plugins.setdefault(point, {}), dict):
        return
    entries = plugins[point].setdefault(chance.choice(("enabled", "enabled", "disabled")), [])
    entry = {"name": chance.choice(NAMES)}
    if chance.random() < 0.5:
        entry["weight"] = chance.choice((0, 1, 5, 100, -1, 2**31 - 1))
    if isinstance(entries, list):
        entries.append(entry)


def _args(chance, config):
    configs = _profile(chance, config).setdefault("pluginConfig", [])
    name = chance.choice(list(ARGS))
    if isinstance(configs, list):
        configs.append({"name": name, "args": copy.deepcopy(ARGS[name])})


def _another_profile(chance, config):
    _profile(chance, config)
    profiles = config["profiles"]
    extra = copy.deepcopy(chance.choice(profiles))
    if isinstance(extra, dict):
        extra["schedulerName"] = chance.choice(("a", "b", "c", ""))
    profiles.append(extra)


def _extender(_chance, config):
    extenders = config.setdefault("extenders", [])
    if isinstance(extenders, list):
        extenders.append(copy.deepcopy(EXTENDER))


def _top(chance, config):
    name, value = chance.choice(
        (
            ("parallelism", 8),
            ("leaderElection", {"leaderElect": True, "leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s"}),
            ("clientConnection", {"qps": 10, "burst": 5, "contentType": "application/json"}),
            ("podInitialBackoffSeconds", 3),
            ("podMaxBackoffSeconds", 2),
            ("percentageOfNodesToScore", 30),
            ("enableProfiling", False),
            ("delayCacheUntilActive", True),
        )
    )
    config[name] = copy.deepcopy(value)


CHANGES = (
    _odd_value,
    _odd_value,
    _removed,
    _misspelt,
    _again,
    _plugin,
    _plugin,
    _plugin,
    _args,
    _args,
    _another_profile,
    _extender,
    _top,
)
