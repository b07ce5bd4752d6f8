"""Pod request arithmetic, on the cases where schedulers and simulators went wrong."""

import pytest

from stowplan.objects import ObjectError, read

MI = 1024 * 1024


def container(name="main", requests=None, limits=None, **more):
    resources = {key: value for key, value in (("requests", requests), ("limits", limits)) if value is not None}
    return {"name": name, "image": "app", "resources": resources, **more}


def sidecar(name, requests):
    return container(name, requests, restartPolicy="Always")


def pod(containers, inits=(), status=None, stored=True, **spec):
    metadata = {"name": "p", "namespace": "web", **({"uid": "1"} if stored else {})}
    spec = {"containers": containers, "initContainers": list(inits), **spec}
    return read({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status or {}})


def cpu(amounts):
    return amounts.get("cpu")


@pytest.mark.parametrize(
    ("inits", "expected"),
    [
        ([sidecar("proxy", {"cpu": "250m"}), container("setup", {"cpu": "2"})], 4250),
        ([container("setup", {"cpu": "2"}), sidecar("proxy", {"cpu": "250m"})], 4250),
        ([sidecar("proxy", {"cpu": "250m"}), container("setup", {"cpu": "5"})], 5250),
        ([container("setup", {"cpu": "5"}), sidecar("proxy", {"cpu": "250m"})], 5000),
    ],
)
def test_sidecars_run_beside_later_init_containers(inits, expected):
    found = pod([container(requests={"cpu": "4"})], inits)
    assert cpu(found.spec.requests) == expected
    assert cpu(found.requested) == expected


def test_a_finished_init_container_still_counts_and_is_named():
    found = pod([container(requests={"cpu": "30m"})], [container("setup", {"cpu": "3"})], status={"phase": "Running"})
    assert cpu(found.requested) == 3000
    assert found.spec.dominant == "initContainers[setup]"


def test_rounding_happens_once_on_the_sum():
    found = pod([container(str(i), {"cpu": "0.0004", "example.com/disk": "400m", "memory": "500m"}) for i in range(3)])
    assert dict(found.spec.requests) == {"cpu": 2, "example.com/disk": 2, "memory": 2}


def test_names_that_are_not_counted_are_dropped():
    names = ["cpu", "pods", "storage", "foo", "hugepages-2Mi", "attachable-volumes-csi-x", "a.b/c", "requests.a.b/c"]
    found = pod([container(requests=dict.fromkeys(names, "1"))])
    assert list(found.spec.requests) == ["a.b/c", "attachable-volumes-csi-x", "cpu", "hugepages-2Mi"]


def test_limits_stand_in_for_missing_requests():
    found = pod([container(limits={"cpu": "2", "memory": "1Gi"}, requests={"cpu": "1"})])
    assert dict(found.spec.requests) == {"cpu": 1000, "memory": 1024 * MI}


def test_pod_level_requests_replace_and_overhead_comes_on_top():
    level = {"resources": {"requests": {"cpu": "1"}}, "overhead": {"cpu": "100m", "memory": "10Mi"}}
    found = pod([container(requests={"cpu": "3", "memory": "100Mi"})], **level)
    assert dict(found.spec.requests) == {"cpu": 1100, "memory": 110 * MI}
    assert cpu(found.spec.score_requests) == 3100  # Fit's scores know no pod level
    assert found.spec.dominant == "pod level"


def test_an_unsupported_pod_level_name_changes_nothing():
    found = pod([container(requests={"cpu": "3"})], resources={"requests": {"example.com/gpu": "1"}})
    assert dict(found.spec.requests) == {"cpu": 3000}


def test_defaults_for_what_is_missing_but_not_for_zero():
    found = pod([container("a", {"cpu": "0"}), container("b")], [container("setup", {"memory": "1Gi"})])
    assert dict(found.spec.score_requests) == {"cpu": 100, "memory": 1024 * MI}
    assert found.nonzero == (100, 1024 * MI)
    assert dict(found.spec.requests) == {"cpu": 0, "memory": 1024 * MI}


def test_defaults_with_pod_level_requests_only_for_what_is_absent():
    found = pod([container("a"), container("b")], resources={"requests": {"cpu": "1"}})
    assert found.nonzero == (1000, 400 * MI)


def resized(requests, allocated=None, actuated=None, reason=None, **more):
    entry = {"name": "main"}
    if allocated is not None:
        entry["allocatedResources"] = allocated
    if actuated is not None:
        entry["resources"] = {"requests": actuated}
    conditions = [{"type": "PodResizePending", "status": "True", "reason": reason}] if reason else []
    return pod([container(requests=requests)], status={"containerStatuses": [entry], "conditions": conditions, **more})


@pytest.mark.parametrize(
    ("allocated", "actuated", "reason", "expected"),
    [
        ("2", "2", None, 2000),
        ("500m", "500m", None, 1000),
        ("500m", "500m", "Infeasible", 500),
        ("500m", "700m", "Infeasible", 700),
        ("500m", "500m", "Deferred", 1000),
        (None, "3", None, 3000),
    ],
)
def test_an_assigned_pod_occupies_the_largest_of_asked_allocated_and_actuated(allocated, actuated, reason, expected):
    found = resized({"cpu": "1"}, allocated and {"cpu": allocated}, actuated and {"cpu": actuated}, reason)
    assert cpu(found.requested) == expected
    assert cpu(found.spec.requests) == 1000


def test_an_infeasible_resize_without_a_report_counts_only_defaults():
    found = resized({"cpu": "1"}, reason="Infeasible")
    assert dict(found.requested) == {}
    assert found.nonzero == (100, 200 * MI)


def test_pod_status_maps_replace_the_containers_reports():
    found = resized({"cpu": "1"}, {"cpu": "9"}, {"cpu": "9"}, allocatedResources={"cpu": "2"}, resources={"requests": {"cpu": "3"}})
    assert cpu(found.requested) == 3000


def test_the_pod_level_of_a_resized_pod():
    level = {"resources": {"requests": {"cpu": "1"}}}
    told = {"allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "3"}}}
    infeasible = {"conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}
    assert cpu(pod([container()], status=told, **level).requested) == 3000
    assert cpu(pod([container()], status=infeasible, **level).requested) == 1000  # no report at pod level: the spec counts
    assert cpu(pod([container()], status={**told, **infeasible, "resources": {}}, **level).requested) == 2000


def test_pod_level_requests_of_a_raw_manifest_are_completed():
    raw = {"resources": {"limits": {"cpu": "4", "memory": "1Gi"}}}
    found = pod([container(requests={"cpu": "500m"})], stored=False, **raw)
    assert dict(found.spec.requests) == {"cpu": 500, "memory": 1024 * MI}
    assert dict(pod([container(requests={"cpu": "500m"})], stored=True, **raw).spec.requests) == {"cpu": 500}


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"containers": [container(requests={"cpu": "2 cores"})]}, "spec.containers[0].resources.requests.cpu"),
        ({"containers": [container(requests={"cpu": "-1"})]}, "spec.containers[0].resources.requests.cpu"),
        ({"containers": [container(limits={"a.b/c": "x"})]}, "spec.containers[0].resources.limits.a.b/c"),
        ({"initContainers": [container(requests={"memory": "1gb"})]}, "spec.initContainers[0].resources.requests.memory"),
        ({"overhead": {"cpu": ""}}, "spec.overhead.cpu"),
    ],
)
def test_bad_quantities_are_told_with_their_place(spec, path):
    item = {"kind": "Pod", "metadata": {"name": "api", "namespace": "web"}, "spec": spec}
    with pytest.raises(ObjectError) as caught:
        read(item)
    assert caught.value.path == path
    assert caught.value.message.startswith(f"Pod web/api: {path}: ")
