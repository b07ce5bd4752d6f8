"""Texts that a policy's ConfigMap says, good and bad, and what each of them means for where a pod may go, in plain words.

What a text means is written down here a second time, so that a scheduler is not judged by its own compiler.
"""

import json
from dataclasses import dataclass, field
from functools import cache

import yaml

from simulation.storage import BY_PLURAL
from stowplan import load_policy
from stowplan.edge.policies.configmap import Reference
from stowplan.policy.rollout import place_of

ZONE = "topology.kubernetes.io/zone"
CONFIGMAPS = BY_PLURAL["configmaps"]
REFERENCE = Reference("stowplan-system", "policy")
KEY, HISTORY = (REFERENCE.namespace, REFERENCE.name), (REFERENCE.namespace, f"{REFERENCE.name}-history")
STABLE, CANDIDATE = "stow", "stow (candidate)"
HEAD = {"apiVersion": "stowplan.io/v1alpha1", "kind": "SchedulerPolicy"}
PACKING = [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu"}]}}}]
ONLY = f'node.labels[?"{ZONE}"].orValue("") == "{{}}"'
PACK = {"schedulerName": "pack", "pluginConfig": PACKING}


@dataclass(frozen=True, eq=False)
class Text:
    """What a ConfigMap says. Of one that is not good the rest means nothing.

    slow      the lease lasts longer: a change that takes a restart
    lenient   taints and cordons do not count
    zones     by name of a profile, the only zone whose nodes are given to its pods; "" for none at all
    percent   share of the workloads that the candidate gets
    """

    name: str
    text: str
    good: bool = True
    slow: bool = False
    profiles: tuple[str, ...] = (STABLE, "pack")
    lenient: bool = False
    zones: dict[str, str] = field(default_factory=dict)
    percent: float = 0.0

    def admitted(self, started: "Text | None") -> bool:
        """May it come into force in a process that has started with that text?"""
        return self.good and (started is None or started.slow == self.slow)

    def fault(self, profile: str, pod, node) -> str:
        """Why a profile must not give the node to the pod under this text; "" if it may."""
        wanted = pod.spec.scheduler_name
        if wanted == STABLE and place_of(STABLE, pod.workload) < self.percent:
            wanted = CANDIDATE
        if profile != wanted or pod.spec.scheduler_name not in self.profiles:
            return f"that is for profile {wanted}, not {profile}"
        zone = self.zones.get(profile)
        if zone is not None and node.labels.get(ZONE) != zone:
            return f"that leaves only zone {zone or 'nowhere'}"
        if not self.lenient and node.unschedulable:
            return "the node is cordoned"
        if not self.lenient and any(taint.hard and not pod.spec.tolerations.tolerate(taint) for taint in node.taints):
            return "the node is tainted"
        return ""


def said(*profiles, **members) -> str:
    return json.dumps(HEAD | {"profiles": list(profiles)} | members, indent=1)


def zoned(zone: str, **profile):
    """A profile with a rule that leaves one zone."""
    return profile | {"rules": [{"name": "zone", "filter": ONLY.format(zone)}]}


def _texts():
    stow, both = {"schedulerName": STABLE}, ({"schedulerName": STABLE}, PACK)
    yield Text("plain", said(*both))
    yield Text("swapped", said({"schedulerName": STABLE, "pluginConfig": PACKING}, {"schedulerName": "pack"}))
    weighty = {"disabled": [{"name": "NodeResourcesFit"}], "enabled": [{"name": "NodeResourcesFit", "weight": 7}]}
    yield Text("weights", said(stow | {"plugins": {"score": weighty}}, PACK))
    fearless = {"filter": {"disabled": [{"name": "TaintToleration"}, {"name": "NodeUnschedulable"}]}}
    yield Text("lenient", said(*(each | {"plugins": fearless} for each in both)), lenient=True)
    for zone in ("z0", "z1", "z2", "nowhere"):
        yield Text(f"zone {zone}", said(zoned(zone, **stow), PACK), zones={STABLE: zone})
    for percent in (30, 70):
        rollout = {"profile": STABLE, "percent": percent, "candidate": zoned("z0")}
        text = said(zoned("z1", **stow), PACK, rollout=rollout)
        yield Text(f"rollout {percent}", text, zones={STABLE: "z1", CANDIDATE: "z0"}, percent=percent)
    lines = "".join(f"{name}: {value}\n" for name, value in HEAD.items())
    lines += f"profiles:\n- schedulerName: pack\n  pluginConfig: {json.dumps(PACKING)}\n"
    lines += f"- schedulerName: {STABLE}\n  rules:\n  - name: zone\n    filter: '{ONLY.format('z1')}'\n"
    yield Text("lines", lines, zones={STABLE: "z1"})  # half of it is a good policy too
    yield Text("stow alone", said(stow), profiles=(STABLE,))
    yield Text("slow", said(*both, leaderElection={"leaseDuration": "20s"}), slow=True)
    slow = said(zoned("z2", **stow), PACK, leaderElection={"leaseDuration": "20s"})
    yield Text("slow zone z2", slow, slow=True, zones={STABLE: "z2"})
    yield Text("syntax", "profiles: [\n", good=False)
    yield Text("unknown", said(stow | {"plugins": {"filter": {"enabled": [{"name": "NodeRessourcesFit"}]}}}), good=False)
    yield Text("mistyped", said(stow | {"rules": [{"name": "r", "filter": "node.allocatable.cpu + true"}]}), good=False)
    yield Text("empty", "", good=False)


TEXTS = {each.name: each for each in _texts()}
BY_TEXT = {each.text: each for each in TEXTS.values()}
PLAIN = TEXTS["plain"]
GOOD = tuple(name for name, text in TEXTS.items() if text.good and not text.slow)
BAD = tuple(name for name, text in TEXTS.items() if not text.good)
FIXED = tuple(name for name, text in TEXTS.items() if text.slow)


def text_in(configmap) -> Text | None:
    """What a ConfigMap says; None for no ConfigMap."""
    return None if configmap is None else BY_TEXT[configmap["data"]["policy.yaml"]]


def configmap(text: str):
    meta = {"namespace": REFERENCE.namespace, "name": REFERENCE.name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"policy.yaml": text}}


@cache
def compiled(text: Text):
    """The policy of a text, which no process shares."""
    return load_policy(yaml.safe_load(text.text))
