"""A mixed cluster and mixed pods, the same for a seed: what two schedulers are compared on."""

import random

from controlplane.objects import node, pod

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
APPS = tuple(f"app-{at}" for at in range(8))
SIZES = (("4", "16Gi"), ("8", "32Gi"), ("16", "64Gi"))
IMAGES = tuple(f"registry.example/{app}:1" for app in APPS)
SIZE = {name: (50 + 110 * at) * 10**6 for at, name in enumerate(IMAGES)}
"""of one size everywhere: a live kube-scheduler counts with what the first node has told"""


def mixed_nodes(count: int, rng: random.Random) -> list[dict]:
    made = []
    for at in range(count):
        cpu, memory = SIZES[at % len(SIZES)]
        taints = [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}] if at % 10 == 3 else []
        taints += [{"key": "busy", "effect": "PreferNoSchedule"}] if at % 7 == 2 else []
        each = node(f"node-{at:03}", f"zone-{at % 3}", {"cpu": cpu, "memory": memory, "pods": "40"}, taints=taints)
        each["metadata"]["labels"]["disk"] = rng.choice(("ssd", "hdd"))
        names = rng.sample(IMAGES, 2)
        each["status"]["images"] = [{"names": [name], "sizeBytes": SIZE[name]} for name in names]
        made.append(each)
    return made


def services() -> list[dict]:
    """For half of the apps: their pods are spread by default."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": app},
            "spec": {"selector": {"app": app}, "ports": [{"port": 80}]},
        }
        for app in APPS[::2]
    ]


def spread(app, key, action, skew):
    selector = {"matchLabels": {"app": app}}
    constraint = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": selector}
    return {"topologySpreadConstraints": [constraint]}


def near(app, key, kind, *, required):
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    when = "DuringSchedulingIgnoredDuringExecution"
    return {
        "affinity": {
            kind: {f"required{when}": [term]} if required else {f"preferred{when}": [{"weight": 50, "podAffinityTerm": term}]}
        }
    }


def disk(value, *, required):
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": [value]}]}
    when = "DuringSchedulingIgnoredDuringExecution"
    said = (
        {f"required{when}": {"nodeSelectorTerms": [term]}}
        if required
        else {f"preferred{when}": [{"weight": 10, "preference": term}]}
    )
    return {"affinity": {"nodeAffinity": said}}


def wishes(rng: random.Random, app: str, other: str):
    """Members of a pod's spec; some of them cannot be met."""
    return rng.choice(
        (
            {},
            {},
            spread(app, ZONE, "DoNotSchedule", 1),
            spread(app, HOST, "DoNotSchedule", 2),
            spread(app, ZONE, "ScheduleAnyway", 1),
            near(app, HOST, "podAntiAffinity", required=True),
            near(app, HOST, "podAntiAffinity", required=False),
            near(other, ZONE, "podAffinity", required=True),
            near(other, ZONE, "podAffinity", required=False),
            near(other, ZONE, "podAntiAffinity", required=True),
            disk("ssd", required=True),
            disk("hdd", required=False),
            disk("tape", required=True),
            {"tolerations": [{"key": "dedicated", "operator": "Exists"}]},
            {"nodeSelector": {ZONE: "zone-1"}},
            {"nodeSelector": {HOST: "node-003"}},
        )
    )


def mixed_pod(name: str, rng: random.Random):
    app, other = rng.sample(APPS, 2)
    requests = {"cpu": f"{rng.choice((50, 250, 1000, 3000))}m", "memory": f"{rng.choice((64, 512, 4096))}Mi"}
    if rng.random() < 0.03:
        requests["cpu"] = "20"
    made = pod(name, labels={"app": app}, requests=requests, **wishes(rng, app, other))
    [container] = made["spec"]["containers"]
    container["image"] = f"registry.example/{app}:1"
    if rng.random() < 0.1:
        container["ports"] = [{"containerPort": 80, "hostPort": 8000 + APPS.index(app)}]
    return made
