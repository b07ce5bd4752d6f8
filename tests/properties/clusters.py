"""Small random clusters as API objects: few names, labels and sizes, so that much of them meets.

A node or pod is its name and a handful of fragments, each of which adds one thing that matters to scheduling. Fragments are
merged: mappings join, lists are put together, and the later of two plain values wins.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Object = dict[str, Any]
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
NAMESPACES = ("default", "web")
IMAGES = {"nginx:1": 150 << 20, "model:2": 3 << 30}
"""one size per name: of several sizes the first that is seen counts, which depends on the order of nodes"""


def merged(base: Any, fragment: Any) -> Any:
    if isinstance(base, dict) and isinstance(fragment, dict):
        return base | {key: merged(base[key], value) if key in base else value for key, value in fragment.items()}
    if isinstance(base, list) and isinstance(fragment, list):
        return base + fragment
    return fragment


def labelled(**labels: str) -> Object:
    return {"metadata": {"labels": labels}}


def taint(key: str, effect: str) -> Object:
    return {"spec": {"taints": [{"key": key, "value": "", "effect": effect}]}}


def holding(*names: str) -> Object:
    return {"status": {"images": [{"names": [name], "sizeBytes": IMAGES[name]} for name in names]}}


NODE_FRAGMENTS: tuple[Object, ...] = (
    {"metadata": {"labels": {ZONE: "a"}}},
    {"metadata": {"labels": {ZONE: "b"}}},
    {"metadata": {"labels": {ZONE: "c"}}},
    labelled(disk="ssd"),
    labelled(disk="hdd", generation="3"),
    labelled(generation="10"),
    taint("team", "NoSchedule"),
    taint("old", "PreferNoSchedule"),
    taint("fire", "NoExecute"),
    {"spec": {"unschedulable": True}},
    holding("nginx:1"),
    holding("nginx:1", "model:2"),
    {"status": {"allocatable": {"cpu": "1500m", "memory": "2Gi"}}},
    {"status": {"allocatable": {"cpu": "16", "memory": "64Gi", "example.com/gpu": "4"}}},
    {"status": {"allocatable": {"pods": "2"}}},
    {"status": {"allocatable": {"ephemeral-storage": "10Gi", "hugepages-2Mi": "64Mi"}}},
    {"status": {"declaredFeatures": ["RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"]}},
)


def node(name: str, fragments: tuple[Object, ...]) -> Object:
    found: Object = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOST: name}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }
    for fragment in fragments:
        found = merged(found, fragment)
    return found


def requests(**amounts: str) -> Object:
    return {"requests": {name.replace("_", "-"): amount for name, amount in amounts.items()}}


def port(number: int, **more: str) -> Object:
    return {"ports": [{"containerPort": number, "hostPort": number, **more}]}


def selector(**labels: str) -> Object:
    return {"matchLabels": labels}


def near(side: str, key: str, weight: int = 0, **term: Any) -> Object:
    """A term of pod affinity or anti-affinity; required unless it has a weight."""
    term = {"topologyKey": key, "labelSelector": selector(app="x"), **term}
    if weight:
        preferred = [{"weight": weight, "podAffinityTerm": term}]
        return {"spec": {"affinity": {side: {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}}
    return {"spec": {"affinity": {side: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}}


def on_nodes(expression: Object, weight: int = 0) -> Object:
    """A requirement on the labels of nodes; required unless it has a weight."""
    term = {"matchExpressions": [expression]}
    if weight:
        preferred = [{"weight": weight, "preference": term}]
        return {"spec": {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}}
    terms = {"nodeSelectorTerms": [term]}
    return {"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}}


def spread(key: str, when: str, skew: int = 1, **more: Any) -> Object:
    constraint = {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": when, "labelSelector": selector(app="x"), **more}
    return {"spec": {"topologySpreadConstraints": [constraint]}}


HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
TOLERATES_ALL = {"spec": {"tolerations": [{"operator": "Exists"}]}}


def claiming(*names: str) -> Object:
    return {"spec": {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]}}


POD_FRAGMENTS: tuple[Object, ...] = (
    labelled(app="x"),
    labelled(app="x", track="new"),
    labelled(app="y"),
    {"metadata": {"namespace": "web"}},
    requests(cpu="500m", memory="1Gi"),
    requests(cpu="1", memory="256Mi"),
    requests(cpu="3"),
    {"requests": {"example.com/gpu": "1"}},
    requests(ephemeral_storage="2Gi"),
    port(80),
    port(80, hostIP="10.0.0.1"),
    port(53, protocol="UDP"),
    {"spec": {"tolerations": [{"key": "team", "operator": "Exists"}]}},
    {"spec": {"tolerations": [{"key": "old", "operator": "Exists", "effect": "PreferNoSchedule"}]}},
    TOLERATES_ALL,
    {"spec": {"nodeSelector": {"disk": "ssd"}}},
    on_nodes({"key": ZONE, "operator": "In", "values": ["a", "b"]}),
    on_nodes({"key": "generation", "operator": "Gt", "values": ["5"]}),
    on_nodes({"key": "disk", "operator": "In", "values": ["ssd"]}, 60),
    on_nodes({"key": ZONE, "operator": "DoesNotExist"}, 10),
    {"images": ["nginx:1"]},
    {"images": ["model:2", "nginx:1"]},
    {"spec": {"priority": 10}},
    {"spec": {"priority": 100}},
    {"spec": {"priority": -5, "preemptionPolicy": "Never"}},
    {"spec": {"initContainers": [{"name": "first", "image": "i:1", "resources": {"requests": {"cpu": "2"}}}]}},
    {"spec": {"overhead": {"cpu": "100m"}}},
    claiming("local"),
    claiming("local", "zonal"),
    claiming("zonal"),
    claiming("alone"),
    claiming("missing"),
)
TOPOLOGY_FRAGMENTS: tuple[Object, ...] = (
    near("podAffinity", ZONE),
    near("podAffinity", HOST, 30),
    near("podAffinity", ZONE, 20, namespaceSelector={}),
    near("podAntiAffinity", HOST),
    near("podAntiAffinity", ZONE, labelSelector=selector(app="y")),
    near("podAntiAffinity", ZONE, 50, namespaces=["web"]),
    near("podAntiAffinity", HOST, namespaceSelector=selector(team="blue")),
    spread(ZONE, HARD),
    spread(HOST, HARD, 2, nodeTaintsPolicy="Honor"),
    spread(ZONE, HARD, minDomains=3, nodeAffinityPolicy="Ignore"),
    spread(ZONE, SOFT, matchLabelKeys=["track"]),
    spread(HOST, SOFT, 3),
)
TERMINATING = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
EMPTY_SELECTOR = spread(ZONE, HARD, 2, labelSelector={})
ODD_FRAGMENTS: tuple[Object, ...] = (TERMINATING, EMPTY_SELECTOR)
"""what counts differently when it is only supposed, as it does upstream"""
WAITING_FRAGMENTS: tuple[Object, ...] = (
    {"spec": {"schedulingGates": [{"name": "quota"}]}},
    {"spec": {"schedulerName": "other"}},
    {"status": {"nominatedNodeName": "n1"}},
    {"status": {"nominatedNodeName": "n3"}},
)


def pod(name: str, fragments: tuple[Object, ...], on: str | None = None) -> Object:
    base: Object = {"metadata": {"name": name, "namespace": "default"}, "spec": {}}
    for fragment in fragments:
        base = merged(base, fragment)
    names = base.pop("images", ["app:1"])
    containers = [{"name": f"c{i}", "image": image, "resources": {}} for i, image in enumerate(names)]
    containers[0] |= {"resources": {"requests": base.pop("requests", {})}, "ports": base.pop("ports", [])}
    base["spec"] = {"priority": 0, **base["spec"], "containers": containers} | ({"nodeName": on} if on else {})
    base["metadata"]["uid"] = f"uid-{base['metadata']['namespace']}-{name}"
    return {"apiVersion": "v1", "kind": "Pod", **base}


Looks = st.SearchStrategy[tuple[Object, ...]]


def chosen(fragments: tuple[Object, ...], most: int, least: int = 0) -> Looks:
    places = st.lists(st.integers(0, len(fragments) - 1), min_size=least, max_size=most, unique=True)
    return places.map(lambda found: tuple(fragments[place] for place in sorted(found)))


def node_looks() -> Looks:
    return chosen(NODE_FRAGMENTS, 4)


def pod_looks(palette: tuple[Object, ...]) -> Looks:
    """What a pod is made of. With few colours on the palette of an example its pods have to do with each other."""
    return chosen(palette, 4, 1)


@st.composite
def waiting_looks(draw: st.DrawFn, palette: tuple[Object, ...]) -> tuple[Object, ...]:
    """As pod_looks; now and then the pod is gated, nominated or of another scheduler."""
    return draw(pod_looks(palette)) + (draw(chosen(WAITING_FRAGMENTS, 1)) if draw(st.integers(0, 7)) == 7 else ())


@st.composite
def palettes(draw: st.DrawFn, *more: Object) -> tuple[Object, ...]:
    found = draw(chosen((*TOPOLOGY_FRAGMENTS, *more), 2)) + draw(chosen(POD_FRAGMENTS, 4, 1))
    return labelled(app="x"), *found


@st.composite
def node_palettes(draw: st.DrawFn) -> Looks:
    """Strategies for the looks of nodes of which many are alike."""
    looks = [draw(chosen(NODE_FRAGMENTS, 4)) for _ in range(draw(st.integers(1, 4)))]
    return st.sampled_from(looks)


FACTS: tuple[Object, ...] = (
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web", "labels": {"team": "blue"}}},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {}}},
    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x", "namespace": "default"}, "spec": {"selector": {"app": "x"}}},
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "x", "namespace": "default"},
        "spec": {"selector": selector(app="x")},
        "status": {"disruptionsAllowed": 1},
    },
)


def claim(name: str, mode: str = "ReadWriteOnce", volume: str = "", storage_class: str = "late") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "uid": f"claim-{name}"}
        | ({"annotations": {"pv.kubernetes.io/bind-completed": "yes"}} if volume else {}),
        "spec": {
            "accessModes": [mode],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": storage_class,
            "volumeMode": "Filesystem",
            "volumeName": volume,
        },
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def volume(name: str, expression: Object, claimed: str = "", **labels: str) -> Object:
    reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": claimed, "uid": f"claim-{claimed}"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "2Gi"},
            "csi": {"driver": "disks", "volumeHandle": name},
            "storageClassName": "late",
            "volumeMode": "Filesystem",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
        }
        | ({"claimRef": reference} if claimed else {}),
        "status": {"phase": "Bound" if claimed else "Available"},
    }


def csi_node(name: str, most: int) -> Object:
    drivers = [{"name": "disks", "nodeID": name, "topologyKeys": [], "allocatable": {"count": most}}]
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": drivers}}


STORAGE: tuple[Object, ...] = (
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "late"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    },
    claim("local"),
    claim("zonal", volume="in-a"),
    claim("alone", "ReadWriteOncePod", "only"),
    volume("in-a", {"key": ZONE, "operator": "In", "values": ["a"]}, "zonal", **{ZONE: "a"}),
    volume("only", {"key": HOST, "operator": "Exists"}, "alone"),
    volume("on-n0", {"key": HOST, "operator": "In", "values": ["n0"]}),
    volume("on-n2", {"key": HOST, "operator": "In", "values": ["n2"]}),
    csi_node("n0", 1),
    csi_node("n1", 2),
)


@st.composite
def clusters(draw: st.DrawFn, odd: tuple[Object, ...] = ()) -> list[Object]:
    """Objects of a cluster: nodes n0, n1, ..., pods r0, ... that run and w0, ... that wait."""
    looks = draw(node_palettes())
    found = [node(f"n{i}", draw(looks)) for i in range(draw(st.integers(1, 7)))]
    names = [item["metadata"]["name"] for item in found]
    palette = draw(palettes(*odd))
    found += draw(chosen(FACTS, len(FACTS)))
    found += STORAGE
    for i in range(draw(st.integers(2, 10))):
        found.append(pod(f"r{i}", draw(pod_looks(palette)), draw(st.sampled_from(names))))
    for i in range(draw(st.integers(2, 5))):
        found.append(pod(f"w{i}", draw(waiting_looks(palette))))
    return found


def profile(**members: Any) -> Object:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", **members}],
    }


def arguments(name: str, **args: Any) -> Object:
    return {"name": name, "args": args}


RATIO = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 60, "score": 10}, {"utilization": 100, "score": 2}]}
CONFIGURATIONS: tuple[Object | None, ...] = (
    None,
    profile(
        pluginConfig=[
            arguments("NodeResourcesFit", scoringStrategy={"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 3}]}),
            arguments("InterPodAffinity", hardPodAffinityWeight=40),
        ]
    ),
    profile(
        pluginConfig=[
            arguments("NodeResourcesFit", scoringStrategy={"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": RATIO}),
            arguments(
                "PodTopologySpread",
                defaultingType="List",
                defaultConstraints=[{"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": HARD}],
            ),
            arguments("InterPodAffinity", ignorePreferredTermsOfExistingPods=True),
        ]
    ),
    profile(plugins={"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}, {"name": "PodTopologySpread"}]}}),
    profile(plugins={"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "PodTopologySpread", "weight": 5}]}}),
    profile(plugins={"score": {"disabled": [{"name": "*"}]}, "filter": {"disabled": [{"name": "TaintToleration"}]}}),
)


def configurations() -> st.SearchStrategy[Object | None]:
    return st.sampled_from(CONFIGURATIONS)
