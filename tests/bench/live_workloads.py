"""Nodes and pods of the live benchmark: shapes and sizes of kube-scheduler's scheduler_perf."""

from rules import RULES, VARIABLES

ZONES = 3
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
NAMESPACE = "bench"
COLOR = {"color": "blue"}
SELECTOR = {"matchLabels": COLOR}
IGNORED = "DuringSchedulingIgnoredDuringExecution"


def node(number: int, prefix: str = "node"):
    name = f"{prefix}-{number:05}"
    room = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOST: name, ZONE: f"zone-{number % ZONES}"}},
        "status": {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True", "reason": "Ready"}]},
    }


def spreading(action: str):
    return {
        "topologySpreadConstraints": [{"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": action, "labelSelector": SELECTOR}]
    }


def near(kind: str, key: str, *, required: bool):
    term = {"labelSelector": SELECTOR, "topologyKey": key}
    said = {f"required{IGNORED}": [term]} if required else {f"preferred{IGNORED}": [{"weight": 1, "podAffinityTerm": term}]}
    return {"affinity": {kind: said}}


def in_zones(*zones: str):
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}
    return {"affinity": {"nodeAffinity": {f"required{IGNORED}": {"nodeSelectorTerms": [term]}}}}


FEATURES = {
    "": {},
    "node-affinity": in_zones("zone-0", "zone-1"),
    "hard-spreading": spreading("DoNotSchedule"),
    "soft-spreading": spreading("ScheduleAnyway"),
    "anti-affinity": near("podAntiAffinity", HOST, required=True),
    "preferred-anti-affinity": near("podAntiAffinity", HOST, required=False),
    "affinity": near("podAffinity", ZONE, required=True),
    "preempting": {"priority": None, "priorityClassName": "bench-high"},
}


def pod(name: str, scheduler: str, feature: str = "", requests=None, **spec):
    container = {"name": "main", "image": "registry.example/pause:1"}
    container["resources"] = {"requests": requests or {"cpu": "100m", "memory": "500Mi"}}
    asked = {key: value for key, value in FEATURES[feature].items() if value is not None}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": COLOR},
        "spec": {"schedulerName": scheduler, "terminationGracePeriodSeconds": 0, "containers": [container], **asked, **spec},
    }


def bound_before(workload, nodes: int):
    """Pods that run when the measurement begins: of the same kind, spread evenly, or filling all nodes."""
    for number in range(workload["before"][nodes]):
        where = {"nodeName": f"node-{number % nodes:05}"}
        if workload.get("full"):
            yield pod(f"before-{number:05}", "nobody", requests={"cpu": "900m", "memory": "500Mi"}, **where)
        else:
            yield pod(f"before-{number:05}", "nobody", workload.get("feature", ""), **where)


def measured(workload, nodes: int, scheduler: str):
    """The pods to be bound, and in between those that fit nowhere."""
    count, share = workload["pods"][nodes], workload.get("unschedulable", 0)
    requests = {"cpu": "3", "memory": "500Mi"} if workload.get("full") else None
    misfits = 0
    for number in range(count):
        yield pod(f"pod-{number:05}", scheduler, workload.get("feature", ""), requests)
        if misfits < share * (number + 1):
            yield pod(f"misfit-{misfits:05}", scheduler, requests={"cpu": "100"})
            misfits += 1


def priority_class():
    meta = {"name": "bench-high"}
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": meta, "value": 1000}


def churned(number: int, scheduler: str):
    """What comes and goes meanwhile: a node, a pod that fits nowhere, a Service."""
    service = {
        "metadata": {"name": f"churn-{number}", "namespace": NAMESPACE},
        "spec": {"selector": COLOR, "ports": [{"port": 80}]},
    }
    return (
        node(number, "churn"),
        pod(f"churn-{number}", scheduler, requests={"cpu": "100"}),
        {"apiVersion": "v1", "kind": "Service", **service},
    )


def five_rules():
    """Members of a profile."""
    return {"variables": list(VARIABLES), "rules": list(RULES)}
