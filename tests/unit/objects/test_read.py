"""Reading objects: both doors, sharing, raw manifests, errors."""

import json
from datetime import datetime, timedelta, timezone

import pytest

from stowplan.objects import (
    HostPort,
    Labels,
    ObjectError,
    Owner,
    Pod,
    Priorities,
    PriorityClass,
    Selector,
    image_key,
    peek,
    read,
)

STORED = {"uid": "1", "generation": 1}


def pod(metadata=None, status=None, **spec):
    metadata = {"name": "p", **(metadata or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status or {}}


def both(item):
    """The fact, read through both doors, which must agree."""
    parsed, decoded = read(item), read(json.dumps(item).encode())
    if isinstance(parsed, Pod):
        assert all(getattr(parsed, name) == getattr(decoded, name) for name in Pod.__dataclass_fields__)
    else:
        assert parsed == decoded
    return parsed


def test_a_pod():
    owners = [
        {"kind": "X", "name": "x"},
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "2", "controller": True},
    ]
    metadata = {
        "namespace": "web",
        "uid": "u",
        "labels": {"b": "2", "a": "1"},
        "ownerReferences": owners,
        "creationTimestamp": "1970-01-01T00:01:00Z",
        "deletionTimestamp": "1970-01-01T00:01:00Z",
    }
    conditions = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
    status = {"phase": "Failed", "nominatedNodeName": "n2", "startTime": "1970-01-01T01:01:00+01:00", "conditions": conditions}
    found = both(pod(metadata, status, nodeName="n1", priority=7))
    assert (found.key, found.uid, found.node_name, found.nominated_node) == ("web/p", "u", "n1", "n2")
    assert found.labels is Labels.of({"a": "1", "b": "2"})
    assert found.owner == Owner("apps/v1", "ReplicaSet", "rs", "2")
    assert (found.created, found.started) == (60.0, 60.0)
    assert found.terminating
    assert found.finished
    assert found.disruption == "PreemptionByScheduler"
    assert found.spec.priority == 7


def test_replicas_share_their_spec_whatever_their_node_and_token_volume():
    def replica(name, node, token):
        volumes = [{"name": token, "projected": {}}, {"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]
        return pod({"name": name, **STORED}, nodeName=node, volumes=volumes, containers=[{"name": "m", "image": "a"}])

    first = read(replica("a", "n1", "kube-api-access-aaaaa"))
    second = read(replica("b", "n2", "kube-api-access-bbbbb"))
    assert first.spec is second.spec
    assert first.requested is second.requested
    assert [volume.name for volume in first.spec.volumes] == ["data"]


def test_specs_that_differ_only_in_the_order_of_maps_are_one():
    first = read(pod(STORED, nodeSelector={"a": "1", "b": "2"}))
    second = read(pod(STORED, nodeSelector={"b": "2", "a": "1"}))
    assert first.spec is second.spec
    assert first.spec is not read(pod(STORED, nodeSelector={"b": "2", "a": "3"})).spec


def test_nulls_are_read_as_go_reads_them():
    item = pod({**STORED, "labels": None, "creationTimestamp": None}, containers=None, nodeSelector=None, tolerations=None)
    item["status"] = None
    found = both(item)
    assert found.labels is Labels.EMPTY
    assert found.spec.node_selector is None
    assert both(pod(STORED, nodeSelector={})).spec.node_selector == ()
    assert both(pod({**STORED, "labels": {"a": None}})).labels == Labels.of({"a": ""})
    assert both({"kind": "Node", "metadata": {"name": "n"}, "spec": None, "status": {"allocatable": {"cpu": None}}})


def test_host_ports_and_images():
    ports = [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1", "hostPort": 5353}]
    containers = [{"name": "m", "image": "repo:5000/x", "ports": ports}]
    inits = [
        {"name": "s", "image": "x@sha256:abc", "restartPolicy": "Always", "ports": [{"containerPort": 90, "hostPort": 90}]},
        {"name": "i", "image": "nginx", "ports": [{"containerPort": 91, "hostPort": 91}]},
    ]
    volumes = [{"name": "v", "image": {"reference": "data:1"}}]
    found = both(pod(STORED, containers=containers, initContainers=inits, volumes=volumes)).spec
    assert found.host_ports == {HostPort("10.0.0.1", "UDP", 5353), HostPort("0.0.0.0", "TCP", 90)}  # noqa: S104
    assert found.images == ("x@sha256:abc", "nginx:latest", "repo:5000/x:latest", "data:1")
    in_host = both(pod(STORED, containers=containers, hostNetwork=True)).spec
    assert in_host.host_ports == {HostPort("10.0.0.1", "UDP", 5353), HostPort("0.0.0.0", "TCP", 80)}  # noqa: S104
    assert image_key("a:1/b") == "a:1/b:latest"


def test_required_features():
    rules = [{"action": "RestartAllContainers"}]
    found = both(pod(STORED, initContainers=[{"name": "i", "restartPolicyRules": rules}], hostNetwork=True, hostUsers=False)).spec
    assert found.required_features == {"RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"}
    mounts = [{"name": "v", "bindMountOptions": ["nodev"]}]
    assert both(pod(STORED, ephemeralContainers=[{"volumeMounts": mounts}])).spec.required_features == {"VolumeBindMountOptions"}
    assert both(pod(STORED, hostNetwork=True)).spec.required_features == frozenset()


def affine(term, **metadata):
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return both(pod(metadata, affinity=affinity)).spec.anti_affinity[0]


def test_the_namespaces_of_a_pod_term():
    own = affine({"topologyKey": "zone"}, **STORED)
    assert own.own_namespace
    assert own.selector == Selector.NOTHING
    assert own.selects_namespace("web", {}, "web")
    assert not own.selects_namespace("web", {}, "db")
    union = affine({"namespaces": ["a"], "namespaceSelector": {"matchLabels": {"env": "prod"}}}, **STORED)
    assert union.selects_namespace("a", {}, "a")
    assert union.selects_namespace("b", {"env": "prod"}, "a")
    assert not union.selects_namespace("b", {}, "b")
    assert affine({"namespaceSelector": {}}, **STORED).selects_namespace("any", {}, "web")


def test_label_keys_are_merged_into_pods_that_were_never_stored():
    term = {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["hash", "none"], "mismatchLabelKeys": ["tenant"]}
    labels = {"hash": "1", "tenant": "t"}
    merged = affine(term, labels=labels).selector
    assert merged.matches({"hash": "1", "tenant": "u"})
    assert not merged.matches({"hash": "1", "tenant": "t"})
    assert not merged.matches({"hash": "2"})
    assert affine(term, labels=labels, **STORED).selector == Selector.EVERYTHING
    assert affine({**term, "labelSelector": None}, labels=labels).selector == Selector.NOTHING


def test_spread_constraints():
    written = {
        "topologyKey": "zone",
        "maxSkew": 2,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {},
        "matchLabelKeys": ["h"],
    }
    found = both(pod(STORED, topologySpreadConstraints=[written])).spec.spread[0]
    assert (found.hard, found.max_skew, found.min_domains, found.honor_affinity, found.honor_taints) == (False, 2, 1, True, False)
    assert found.selector_for({"h": "1"}).matches({"h": "1"})
    assert not found.selector_for({"h": "1"}).matches({"h": "2"})
    assert found.selector_for({}) == Selector.EVERYTHING


def test_priorities():
    classes = [
        PriorityClass("high", 1000, preemption_policy="Never"),
        PriorityClass("default-a", 5, global_default=True),
        PriorityClass("default-b", 3, global_default=True),
    ]

    def resolved(**spec):
        found = read(pod(**spec), Priorities(classes)).spec
        return found.priority, found.preemption_policy

    assert resolved(priorityClassName="high") == (1000, "Never")
    assert resolved() == (3, "PreemptLowerPriority")
    assert resolved(priorityClassName="high", priority=4) == (4, "PreemptLowerPriority")
    assert read(pod(priorityClassName="system-node-critical")).spec.priority == 2_000_001_000
    with pytest.raises(ObjectError, match=r'Pod p: spec.priorityClassName: there is no PriorityClass "nope"'):
        resolved(priorityClassName="nope")


def test_a_node():
    status = {
        "capacity": {"cpu": "8"},
        "allocatable": {"cpu": "0.5001", "memory": "1Ki", "pods": "110", "storage": "1", "example.com/gpu": 2},
        "images": [{"names": ["a:1", "a@sha256:1"], "sizeBytes": 5}],
        "declaredFeatures": ["UserNamespacesHostNetworkSupport", "RestartAllContainersOnContainerExits", "Zzz"],
    }
    spec = {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]}
    found = both({"kind": "Node", "metadata": {"name": "n", "labels": {"a": "b"}}, "spec": spec, "status": status})
    assert dict(found.allocatable) == {"cpu": 501, "example.com/gpu": 2, "memory": 1024, "pods": 110}
    assert found.images == ((("a:1", "a@sha256:1"), 5),)
    assert found.features == {"UserNamespacesHostNetworkSupport"}  # the second is out of order and gets lost
    assert found.unschedulable
    assert found.taints[0].hard
    assert hash(found) == hash(
        both({"kind": "Node", "metadata": {"name": "n", "labels": {"a": "b"}}, "spec": spec, "status": status})
    )


def test_the_rest():
    meta = {"name": "x", "namespace": "web"}
    assert both({"kind": "Namespace", "metadata": {"name": "web"}}).labels == Labels.of({"kubernetes.io/metadata.name": "web"})
    assert both({"kind": "Service", "metadata": meta, "spec": {}}).selector is None
    assert both({"kind": "Service", "metadata": meta, "spec": {"selector": {}}}).selector == Selector.EVERYTHING
    assert both({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta}).selector == Selector.NOTHING
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": meta,
        "spec": {"selector": {"matchLabels": {"a": "b"}}},
        "status": {"disruptionsAllowed": 2, "disruptedPods": {"p": "2026-01-01T00:00:00Z"}},
    }
    found = both(budget)
    assert (found.allowed, found.disrupted) == (2, {"p"})
    assert found.covers("web", {"a": "b"})
    assert not found.covers("db", {"a": "b"})
    assert not both({**budget, "spec": {"selector": {}}}).covers("web", {"a": "b"})
    device = {
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"extendedResourceName": "e.com/g", "selectors": [{"cel": {}}]},
    }
    assert (both(device).extended_resource, both(device).selectors) == ("e.com/g", ("",))


def test_other_kinds_and_other_groups_are_not_read():
    meta = {"name": "x"}
    assert both({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {}}) is None
    assert both({"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": meta, "spec": []}) is None


def test_peek_and_key_order():
    item = {"metadata": {"namespace": "a", "name": "b"}, "spec": {}, "kind": "Pod", "apiVersion": "v1"}
    assert peek(json.dumps(item).encode()) == ("Pod", "a", "b")
    assert both(item).key == "a/b"


@pytest.mark.parametrize(
    ("item", "path", "message"),
    [
        ({"metadata": {"name": "x"}}, "kind", "object: kind: is missing"),
        ({"kind": "Pod", "metadata": {"namespace": "a"}}, "metadata.name", "Pod without a name: metadata.name: is missing"),
        ({"kind": "Pod"}, "metadata.name", "Pod without a name: metadata.name: is missing"),
        (
            pod(containers=[{"name": "m", "image": 5}]),
            "spec.containers[0].image",
            "Pod p: spec.containers[0].image: expected str | null, got int",
        ),
        (pod(containers={}), "spec.containers", "Pod p: spec.containers: expected array | null, got object"),
    ],
)
def test_errors_name_object_and_place(item, path, message):
    for given in (item, json.dumps(item).encode()):
        with pytest.raises(ObjectError) as caught:
            read(given)
        assert (caught.value.path, caught.value.message) == (path, message)


def test_broken_json():
    with pytest.raises(ObjectError, match="Pod: "):
        read(b'{"apiVersion": "v1", "kind": "Pod", "metadata": {')
    with pytest.raises(ObjectError, match="object: "):
        read(b"[]")


@pytest.mark.parametrize(
    ("item", "path"),
    [
        (pod(STORED, priority=0, containers=[{"name": "m", "resources": 5}]), "spec.containers[0].resources"),
        (pod({**STORED, "labels": {"a": 5}}), "metadata.labels[...]"),
        (pod({**STORED, "ownerReferences": [{"controller": "yes"}]}), "metadata.ownerReferences[0].controller"),
        (pod(STORED, {"containerStatuses": [{"resources": {"requests": []}}]}), "status.containerStatuses[0].resources.requests"),
        (pod(STORED, {"allocatedResources": {"cpu": "many"}}), "status.allocatedResources.cpu"),
        (pod(STORED, priority=0, affinity={"nodeAffinity": []}), "spec.affinity.nodeAffinity"),
    ],
)
def test_what_is_decoded_late_is_told_with_its_whole_place(item, path):
    for _ in range(2):  # a failure must not be remembered as an answer
        with pytest.raises(ObjectError) as caught:
            both(item)
        assert caught.value.path == path


def test_statuses_that_agree_with_the_spec_share_what_is_occupied():
    containers = [{"name": "m", "resources": {"requests": {"cpu": "1"}}}]
    told = {"containerStatuses": [{"name": "m", "allocatedResources": {"cpu": "1000m"}, "resources": {"requests": {"cpu": 1}}}]}
    running = both(pod({**STORED, "name": "a"}, told, containers=containers, nodeName="n"))
    pending = both(pod({**STORED, "name": "b"}, containers=containers))
    assert running.requested is pending.requested
    assert running.nonzero == pending.nonzero


def test_times_of_parsed_yaml_are_utc():
    for moment in (datetime(1970, 1, 1, 0, 1), datetime(1970, 1, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))):  # noqa: DTZ001
        assert read(pod({**STORED, "creationTimestamp": moment})).created == 60.0


def test_what_json_cannot_hold_is_an_error():
    with pytest.raises(ObjectError, match="Pod p: is no JSON object"):
        read(pod(STORED, containers=[object()]))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_does_not_have_are_refused(number):
    containers = [{"name": "c", "resources": {"requests": {"cpu": number}}}]
    with pytest.raises(ObjectError, match="not a number that JSON has") as caught:
        read(pod(STORED, containers=containers, volumes=None))
    assert caught.value.path == "spec.containers[0].resources.requests.cpu"
    assert caught.value.message.startswith("Pod p: spec.containers")


@pytest.mark.parametrize("make", [dict, list])
def test_an_object_that_holds_itself_is_refused(make):
    item = pod(STORED)
    knot = make()
    knot.update(again=knot) if make is dict else knot.append(knot)
    item["spec"]["knot"] = knot
    with pytest.raises(ObjectError, match="Pod p: holds itself"):
        read(item)


def at(path, value):
    """An object that has a value at a path of keys."""
    for key in reversed(path):
        value = [value] if key == "[]" else {key: value}
    return value


PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
INTEGERS = [
    ("Pod", 32, "spec.priority"),
    ("Pod", 64, "metadata.generation"),
    ("Pod", 32, f"spec.affinity.nodeAffinity.{PREFERRED}[0].weight"),
    ("Pod", 32, f"spec.affinity.podAffinity.{PREFERRED}[0].weight"),
    ("Pod", 32, f"spec.affinity.podAntiAffinity.{PREFERRED}[0].weight"),
    ("Pod", 32, "spec.topologySpreadConstraints[0].maxSkew"),
    ("Pod", 32, "spec.topologySpreadConstraints[0].minDomains"),
    ("Pod", 32, "spec.containers[0].ports[0].hostPort"),
    ("Pod", 32, "spec.volumes[0].iscsi.lun"),
    ("Node", 64, "status.images[0].sizeBytes"),
    ("PriorityClass", 32, "value"),
    ("PodDisruptionBudget", 32, "status.disruptionsAllowed"),
    ("CSINode", 32, "spec.drivers[0].allocatable.count"),
    ("ResourceClaim", 64, "spec.devices.requests[0].exactly.count"),
    ("ResourceSlice", 64, "spec.pool.generation"),
    ("ResourceSlice", 64, "spec.pool.resourceSliceCount"),
    ("ResourceSlice", 64, "spec.devices[0].attributes.size.int"),
]


@pytest.mark.parametrize(("kind", "bits", "path"), INTEGERS)
@pytest.mark.parametrize("number", [lambda end: end, lambda end: -end - 1, lambda end: 2**62 * 4 + end])
def test_integers_have_the_size_that_kubernetes_gives_them(kind, bits, path, number):
    item = at(path.replace("[0]", ".[]").split("."), number(2 ** (bits - 1)))
    item = {**item, "kind": kind, "metadata": {"name": "x", **item.get("metadata", {})}}
    with pytest.raises(ObjectError) as caught:
        read(json.dumps(item).encode())
    assert caught.value.path.replace("[...]", ".size") == path
    assert caught.value.message.startswith(f"{kind} x: ")
    assert caught.value.message.endswith(f": does not fit into int{bits}")


def test_the_largest_integers_are_read():
    assert read({"kind": "PriorityClass", "metadata": {"name": "x"}, "value": 2**31 - 1}).value == 2**31 - 1
    assert read({"kind": "PriorityClass", "metadata": {"name": "x"}, "value": -(2**31)}).value == -(2**31)
    assert both(pod({**STORED, "generation": 2**63 - 1}, priority=2**31 - 1)).spec.priority == 2**31 - 1
