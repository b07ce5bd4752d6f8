"""Clusters for benchmarks, as Kubernetes objects: the same sizes and shapes every time."""

import json

ZONES = 10
TAINT_SETS = 5
SIZES = ((8000, 32), (16000, 64), (32000, 128))


def node(number, feature=None):
    cpu, memory = SIZES[number % 3]
    amounts = {"cpu": f"{cpu}m", "memory": f"{memory}Gi", "pods": "110", "ephemeral-storage": "200Gi"}
    name = f"node-{number:06}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % ZONES}", "kubernetes.io/os": "linux"}
    pool = number // ZONES % (TAINT_SETS + 1)  # in every zone
    tainted = feature in ("taints", "several") and pool < TAINT_SETS
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": labels},
        "spec": {"taints": [{"key": "pool", "value": f"pool-{pool}", "effect": "NoSchedule"}]} if tainted else {},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def pod(name, app, *, on=None, feature=None, priority=0):
    requests = {"cpu": f"{100 + 50 * (app % 5)}m", "memory": f"{128 + 64 * (app % 7)}Mi"}
    spec = {
        "schedulerName": "default-scheduler",
        "priority": priority,
        "containers": [{"name": "c", "image": f"registry.example/app-{app}:1", "resources": {"requests": requests}}],
    }
    if on is not None:
        spec["nodeName"] = on
    labels = {"app": f"app-{app}"}
    spec |= FEATURES.get(feature, lambda _: {})({"matchLabels": labels})
    if feature in ("taints", "several"):
        spec["tolerations"] = [{"key": "pool", "operator": "Equal", "value": f"pool-{app % TAINT_SETS}", "effect": "NoSchedule"}]
    own = int(name.rpartition("-")[2])
    if feature in FULL:
        wanted = {"cpu": "2" if feature == "full" else f"{2000 + own}m", "memory": "1Gi"}
        share = {"cpu": f"{SIZES[int(on[-6:]) % 3][0] // 10}m", "memory": "1Gi"} if on else wanted
        spec["containers"][0]["resources"]["requests"] = share
    if feature == "different" and on is None:
        spec["containers"][0]["resources"]["requests"] = {"cpu": f"{100 + own}m", "memory": f"{128 + own}Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "bench", "uid": name, "generation": 1, "labels": labels},
        "spec": spec,
        "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"} if on else {"phase": "Pending"},
    }


FULL = ("full", "full-different")
"""Features where running pods of low priority leave no room: only preemption helps."""


def _spread(selector, key, action):
    return {"maxSkew": 5, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": selector}


def _near(selector, kind, *, required, key="kubernetes.io/hostname"):
    term = {"labelSelector": selector, "topologyKey": key}
    if required:
        return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}


def _zonal(selector):
    return _spread(selector, "topology.kubernetes.io/zone", "DoNotSchedule")


def _several(selector):
    soft = _spread(selector, "kubernetes.io/hostname", "ScheduleAnyway")
    return {"topologySpreadConstraints": [_zonal(selector), soft], **_near(selector, "podAntiAffinity", required=False)}


FEATURES = {
    "hard-zone": lambda selector: {"topologySpreadConstraints": [_zonal(selector)]},
    "preferred-anti": lambda selector: _near(selector, "podAntiAffinity", required=False),
    "required-anti": lambda selector: _near(selector, "podAntiAffinity", required=True),
    "affinity": lambda selector: _near(selector, "podAffinity", required=True, key="topology.kubernetes.io/zone"),
    "several": _several,
}


def objects(workload):
    """All objects of a workload, nodes first."""
    feature, apps = workload.get("feature"), workload["apps"]
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench", "uid": "ns"}}
    if feature == "default-spread":
        for app in range(apps):
            selector = {"app": f"app-{app}"}
            spec = {"selector": selector, "ports": [{"port": 80}]}
            yield {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"app-{app}", "namespace": "bench"}, "spec": spec}
    for number in range(workload["nodes"]):
        yield node(number, feature)
    for number in range(workload["nodes"]):
        for seat in range(workload["running"]):
            app = apps + (number * workload["running"] + seat) % apps  # other apps: they must not be in each other's way
            priority = -10 if feature in FULL else 0
            yield pod(f"run-{number}-{seat}", app, on=f"node-{number:06}", feature=feature, priority=priority)
    for number in range(workload["pods"]):
        yield pod(f"wait-{number:06}", number * 7919 % apps, feature=feature)


def kubectl_dump(path, nodes, pods):
    """Write what `kubectl get nodes,pods -A -o json` prints for a cluster of this size, noise included."""
    noise = {"managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": {f"f:part-{i}": {} for i in range(12)}}]}
    conditions = [{"type": f"Condition{i}", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"} for i in range(5)]
    with path.open("w", encoding="utf-8") as out:
        out.write('{\n    "apiVersion": "v1",\n    "items": [\n')
        for number in range(nodes + pods):
            item = node(number) if number < nodes else pod(f"run-{number}", number % 500, on=f"node-{number % nodes:06}")
            item["metadata"] |= noise
            item["status"] |= {"conditions": conditions, "images": []}
            if number >= nodes:
                mounts = [{"name": f"kube-api-access-{number}", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]
                item["spec"]["containers"][0] |= {
                    "volumeMounts": mounts,
                    "env": [{"name": f"V{i}", "value": "x"} for i in range(10)],
                }
                item["spec"]["volumes"] = [{"name": f"kube-api-access-{number}", "projected": {"sources": []}}]
            text = json.dumps(item, indent=4).replace("\n", "\n        ")
            out.write(f"        {text}{',' if number + 1 < nodes + pods else ''}\n")
        out.write('    ],\n    "kind": "List"\n}\n')
