from dataclasses import replace

import msgspec
import pytest

from stowplan.edge.kube.allocated import selector_json
from stowplan.edge.kube.prepare import Preparations
from stowplan.edge.kube.transport import UnansweredError
from stowplan.loop.effects import Prepare
from stowplan.loop.events import Failure, NotBound, Prepared
from stowplan.objects import (
    Allocation,
    ClaimKey,
    ContainerDevices,
    DeviceID,
    DeviceRequest,
    HeldDevice,
    NodeSelector,
    NodeTerm,
    ResourceClaim,
    Tolerations,
    Wanted,
    node_selector,
    only_on,
    read,
    requirement,
)
from stowplan.objects.wire import NodeSelector as WireSelector
from unit.edge.kube.rig import Notebook, caller, encode, pod, pod_object, refusal, run
from unit.edge.kube.shelf import Shelf

VOLUME = "/api/v1/persistentvolumes/v"
CLAIM = "/api/v1/namespaces/ns/persistentvolumeclaims/c"
DEVICES = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims"
DONE = Prepared("ns/a", "u1")


def prepare(shelf, *facts, undo=False, who=None, patience=600.0):
    """The answer to a Prepare, undone afterwards if wanted."""

    async def test():
        preparations = Preparations(caller(shelf, observer=Notebook()), patience)
        answer = await preparations.prepare(Prepare(who or pod(), "n1", facts))
        if undo:
            await preparations.undo(who or pod())
        return answer

    return run(test)


def refused(text, plugin="VolumeBinding"):
    return NotBound("ns/a", "u1", Failure.REFUSED, f'running PreBind plugin "{plugin}": {text}')


# Volumes


def volume(claim=None):
    return {"kind": "PersistentVolume", "apiVersion": "v1", "metadata": {"name": "v"}, "spec": {"claimRef": claim} if claim else {}}


def wanted():
    return replace(read(volume()), claim=ClaimKey("ns", "c", "uid-c"))


REFERENCE = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "ns", "name": "c", "uid": "uid-c"}


def test_a_volume_is_reserved_for_its_claim():
    shelf = Shelf()
    shelf.put(VOLUME, volume())
    assert prepare(shelf, wanted()) == DONE
    assert shelf.objects[VOLUME]["spec"]["claimRef"] == REFERENCE
    assert shelf.objects[VOLUME]["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}


def test_a_volume_that_an_administrator_meant_for_the_claim_is_not_marked_as_ours():
    shelf = Shelf()
    shelf.put(VOLUME, volume({"namespace": "ns", "name": "c"}))
    assert prepare(shelf, wanted()) == DONE
    assert shelf.objects[VOLUME]["spec"]["claimRef"] == REFERENCE
    assert "annotations" not in shelf.objects[VOLUME]["metadata"]


def test_a_volume_that_is_reserved_already_is_left_alone():
    shelf = Shelf()
    shelf.put(VOLUME, volume(REFERENCE))
    assert prepare(shelf, wanted()) == DONE
    assert shelf.writes() == []


@pytest.mark.parametrize("early", [True, False])
def test_a_volume_that_another_claim_has_got_is_refused(early):
    """Be it before we look, or between our look and our write."""
    shelf = Shelf()
    shelf.put(VOLUME, volume())
    theirs = volume({**REFERENCE, "name": "d", "uid": "uid-d"})
    if early:
        shelf.put(VOLUME, theirs)
    else:
        shelf.before[VOLUME] = [lambda: shelf.put(VOLUME, theirs)]
    assert prepare(shelf, wanted()) == refused('binding volumes: persistentvolume "v" is bound to another claim')


def claim(**annotations):
    metadata = {"name": "c", "namespace": "ns", "uid": "uid-c", "annotations": annotations}
    return {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": metadata, "spec": {}}


def chosen():
    return replace(read(claim()), selected_node="n1")


SELECTED = "volume.kubernetes.io/selected-node"


def test_a_claim_is_told_its_node_whoever_writes_in_between():
    shelf = Shelf()
    shelf.put(CLAIM, claim())
    shelf.before[CLAIM] = [lambda: shelf.put(CLAIM, claim(other="x"))]
    assert prepare(shelf, chosen()) == DONE
    assert shelf.objects[CLAIM]["metadata"]["annotations"] == {"other": "x", SELECTED: "n1"}


def test_a_claim_that_was_given_another_node_is_refused():
    shelf = Shelf()
    shelf.put(CLAIM, claim(**{SELECTED: "n2"}))
    text = 'binding volumes: persistentvolumeclaim "c" has got another selected node, "n2"'
    assert prepare(shelf, chosen()) == refused(text)


def test_a_claim_that_is_gone_or_recreated_is_refused():
    shelf = Shelf()
    assert prepare(shelf, chosen()) == refused("binding volumes: not found")
    shelf.put(CLAIM, {**claim(), "metadata": {"name": "c", "uid": "another"}})
    assert prepare(shelf, chosen()) == refused('binding volumes: persistentvolumeclaim "c" was recreated')


def test_a_write_without_an_answer_is_looked_after():
    shelf = Shelf()
    shelf.put(CLAIM, claim())

    def lost():
        shelf.put(CLAIM, claim(**{SELECTED: "n1"}))
        raise UnansweredError("time ran out")

    shelf.before[CLAIM] = [lost]
    assert prepare(shelf, chosen()) == DONE
    assert shelf.objects[CLAIM]["metadata"]["annotations"] == {SELECTED: "n1"}


# Devices

RAW = {
    "kind": "ResourceClaim",
    "apiVersion": "resource.k8s.io/v1",
    "metadata": {"name": "r", "namespace": "ns", "uid": "uid-r"},
    "spec": {
        "devices": {
            "requests": [
                {"name": "one", "exactly": {"deviceClassName": "gpu", "tolerations": [{"key": "t", "operator": "Exists"}]}},
                {
                    "name": "any",
                    "firstAvailable": [{"name": "big", "deviceClassName": "gpu"}, {"name": "small", "deviceClassName": "x"}],
                },
            ],
            "config": [
                {"requests": ["one"], "opaque": {"driver": "d", "parameters": {"for": "one"}}},
                {"requests": ["any/small"], "opaque": {"driver": "d", "parameters": {"for": "small"}}},
                {"opaque": {"driver": "d", "parameters": {"for": "all"}}},
            ],
        }
    },
}
HELD = (
    HeldDevice("one", DeviceID("d", "p", "g0"), consumed=(("memory", 2 * 10**9), ("share", 1_500_000_000)), share="x/0"),
    HeldDevice("any/big", DeviceID("d", "p", "g1"), admin=True),
)
USER = {"resource": "pods", "name": "a", "uid": "u1"}


def shelf_with_claim(**status):
    shelf = Shelf()
    shelf.put(f"{DEVICES}/r", {**RAW, **({"status": status} if status else {})})
    config = [{"opaque": {"driver": "d", "parameters": {"of": "class"}}}]
    shelf.put("/apis/resource.k8s.io/v1/deviceclasses/gpu", {"metadata": {"name": "gpu"}, "spec": {"config": config}})
    return shelf


def decided(held=HELD, selector=None, **members):
    return replace(read(RAW), allocation=Allocation(held, selector), pending=True, reserved=("u1",), **members)


def test_a_claim_gets_its_devices_and_the_pod():
    shelf = shelf_with_claim()
    assert prepare(shelf, decided(selector=only_on("n1"))) == DONE
    found = shelf.objects[f"{DEVICES}/r"]
    assert found["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    assert found["status"]["reservedFor"] == [USER]
    allocation = found["status"]["allocation"]
    one, any_ = allocation["devices"]["results"]
    assert len(one.pop("shareID")) == 36
    assert one == {
        "request": "one",
        "driver": "d",
        "pool": "p",
        "device": "g0",
        "tolerations": [{"key": "t", "operator": "Exists"}],
        "consumedCapacity": {"memory": "2", "share": "1500000000n"},
    }
    assert any_ == {"request": "any/big", "driver": "d", "pool": "p", "device": "g1", "adminAccess": True}
    said = [(each["source"], each.get("requests"), each["opaque"]["parameters"]) for each in allocation["devices"]["config"]]
    assert said == [
        ("FromClass", ["one"], {"of": "class"}),
        ("FromClass", ["any/big"], {"of": "class"}),
        ("FromClaim", ["one"], {"for": "one"}),
        ("FromClaim", None, {"for": "all"}),
    ]
    (term,) = allocation["nodeSelector"]["nodeSelectorTerms"]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}


def test_what_is_written_is_what_was_decided():
    """Read again, the claim is the fact."""
    shelf = shelf_with_claim()
    prepare(shelf, decided(selector=only_on("n1")))
    found = read(shelf.objects[f"{DEVICES}/r"])
    expected = decided(selector=only_on("n1"))
    assert found.reserved == expected.reserved
    assert found.allocation.selector == expected.allocation.selector
    assert [replace(each, share=None) for each in found.allocation.devices] == [replace(each, share=None) for each in HELD]


def test_an_allocated_claim_is_reserved_for_one_more_pod():
    other = {"resource": "pods", "name": "b", "uid": "u2"}
    shelf = shelf_with_claim(allocation={}, reservedFor=[other])
    fact = replace(read(shelf.objects[f"{DEVICES}/r"]), reserved=("u2", "u1"))
    assert prepare(shelf, fact) == DONE
    assert shelf.objects[f"{DEVICES}/r"]["status"]["reservedFor"] == [other, USER]
    assert prepare(shelf, fact) == DONE
    assert len(shelf.writes()) == 1


def test_taking_back_ends_the_reservation_alone():
    other = {"resource": "pods", "name": "b", "uid": "u2"}
    shelf = shelf_with_claim(allocation={}, reservedFor=[other])
    fact = replace(read(shelf.objects[f"{DEVICES}/r"]), reserved=("u2", "u1"))
    prepare(shelf, fact, undo=True)
    assert shelf.objects[f"{DEVICES}/r"]["status"] == {"allocation": {}, "reservedFor": [other]}


def test_a_claim_that_somebody_else_allocated_is_refused():
    shelf = shelf_with_claim()
    path = f"{DEVICES}/r"
    other = {"devices": {"results": [{"request": "one", "driver": "d", "pool": "p", "device": "g7"}]}}
    protected = {**RAW, "metadata": {**RAW["metadata"], "finalizers": ["resource.kubernetes.io/delete-protection"]}}
    shelf.put(path, protected)
    shelf.before[path] = [lambda: shelf.put(path, {**protected, "status": {"allocation": other}})]
    text = "claim r got allocated elsewhere in the meantime"
    assert prepare(shelf, decided()) == refused(text, "DynamicResources")
    assert shelf.objects[path]["status"] == {"allocation": other, "reservedFor": []}


def test_an_allocation_without_an_answer_is_recognised():
    shelf = shelf_with_claim()
    path, held = f"{DEVICES}/r", {}

    def lost():
        made = shelf.requests[-1].body
        held.update(msgspec.json.decode(made)["status"])
        shelf.put(path, {**shelf.objects[path], "status": dict(held)})
        raise UnansweredError("time ran out")

    shelf.before[path] = [lambda: None, lost]
    assert prepare(shelf, decided()) == DONE
    assert shelf.objects[path]["status"] == held


def test_what_was_reserved_is_taken_back_where_the_rest_fails():
    shelf = shelf_with_claim()
    missing = replace(decided(), name="gone")
    answer = prepare(shelf, decided(), missing)
    assert answer == refused("not found", "DynamicResources")
    assert shelf.objects[f"{DEVICES}/r"]["status"]["reservedFor"] == []


def conditions(**conditions):
    told = [{"type": name, "status": status} for name, status in conditions.items()]
    return [{"driver": "d", "pool": "p", "device": "g0", "conditions": told}]


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        (conditions(Ready="True"), DONE),
        (conditions(Broken="True"), refused("device binding failed", "DynamicResources")),
        (conditions(Ready="False"), refused("device binding timeout", "DynamicResources")),
    ],
)
def test_devices_that_must_be_made_ready_are_waited_for(then, expected):
    shelf = shelf_with_claim()
    path = f"{DEVICES}/r"
    held = HeldDevice("one", DeviceID("d", "p", "g0"), conditions=("Ready",), failures=("Broken",))
    serve, looks = shelf.request, []

    async def request(asked):
        looks.append(asked.method)
        if len(looks) == 12:
            shelf.put(path, merged_status(shelf.objects[path], then))
        return await serve(asked)

    shelf.request = request
    assert prepare(shelf, decided((held,)), patience=60.0) == expected
    if expected != DONE:
        assert shelf.objects[path]["status"]["reservedFor"] == []
    else:
        assert shelf.objects[path]["status"]["allocation"]["allocationTimestamp"] == "2027-01-15T08:00:00Z"


def merged_status(item, devices):
    return {**item, "status": {**item.get("status", {}), "devices": devices}}


# Extended resources


def extended():
    """A pod with an init container that needs three devices, and a container that needs two; and the claim for them."""
    shape = (
        ContainerDevices(0, False, (("example.com/gpu", 0, 3),)),
        ContainerDevices(1, True, (("cpu", 0, 1), ("example.com/gpu", 1, 2))),
    )
    names = {"initContainers": [{"name": "first"}], "containers": [{"name": "main", "image": "i"}]}
    who = pod(spec=names)
    object.__setattr__(who.spec, "extended", shape)

    def request(name, count):
        return DeviceRequest(name, Wanted(name, "gpu", (), "ExactCount", count, False, Tolerations(()), (), False), ())

    requests = (request("container-0-request-0", 1), request("container-1-request-1", 2))
    held = tuple(HeldDevice(r.name, DeviceID("d", "p", f"g{i}")) for i, r in enumerate(requests))
    fact = ResourceClaim(
        "ns", "a-extended-resources", "", requests, allocation=Allocation(held, None), pending=True, extended=True,
        controllers=(("a", "u1"),), reserved=("u1",),
    )  # fmt: skip
    return who, fact


def extended_shelf():
    shelf = shelf_with_claim()
    shelf.put("/api/v1/namespaces/ns/pods/a", pod_object())
    return shelf


def test_the_claim_for_extended_resources_is_made_and_told():
    who, fact = extended()
    shelf = extended_shelf()
    assert prepare(shelf, fact, who=who) == DONE
    (path,) = (path for path in shelf.objects if "extended" in path)
    made = shelf.objects[path]
    assert made["metadata"]["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert made["metadata"]["ownerReferences"][0]["uid"] == "u1"
    assert made["status"]["reservedFor"] == [USER]
    assert [each["exactly"]["count"] for each in made["spec"]["devices"]["requests"]] == [1, 2]
    told = shelf.objects["/api/v1/namespaces/ns/pods/a"]["status"]["extendedResourceClaimStatus"]
    assert told["resourceClaimName"] == path.rpartition("/")[2]
    assert [(each["containerName"], each["requestName"]) for each in told["requestMappings"]] == [
        ("first", "container-1-request-1"),
        ("first", "container-0-request-0"),
        ("main", "container-1-request-1"),
    ]


def test_the_claim_for_extended_resources_is_deleted_if_the_pod_is_not_bound():
    who, fact = extended()
    shelf = extended_shelf()
    prepare(shelf, fact, who=who, undo=True)
    assert not [path for path in shelf.objects if "extended" in path]
    deleted = next(request for request in shelf.requests if request.method == "DELETE")
    patches = [request.path for request in shelf.requests if request.method == "PATCH" and request.path.startswith(deleted.path)]
    assert patches[-2:] == [f"{deleted.path}/status", deleted.path]


def test_a_claim_whose_making_was_not_answered_is_not_made_twice():
    who, fact = extended()
    shelf = extended_shelf()
    serve = shelf.request

    async def request(asked):
        answer = await serve(asked)
        if asked.method == "POST" and answer.status == 200:
            raise UnansweredError("time ran out")
        return answer

    shelf.request = request
    assert prepare(shelf, fact, who=who) == DONE
    assert len([path for path in shelf.objects if "extended" in path]) == 1


# Selectors


@pytest.mark.parametrize(
    ("operator", "values"),
    [("In", ["a", "b"]), ("NotIn", ["a"]), ("Exists", []), ("DoesNotExist", []), ("Gt", ["5"]), ("Lt", ["7"])],
)
def test_requirements_are_written_as_they_were_read(operator, values):
    selector = NodeSelector((NodeTerm((requirement("key", operator, values),)),))
    written = selector_json(selector)
    assert written["nodeSelectorTerms"][0]["matchExpressions"][0]["operator"] == operator
    assert node_selector(msgspec.json.decode(encode(written), type=WireSelector), "x") == selector


def test_a_refusal_says_why():
    shelf = Shelf()
    shelf.put(CLAIM, claim())
    shelf.before[CLAIM] = [lambda: refusal(403, "forbidden: cannot patch")]
    assert prepare(shelf, chosen()) == refused("binding volumes: forbidden: cannot patch")


# Claims that are given up


def deallocate(shelf, fact):
    async def test():
        return await Preparations(caller(shelf, observer=Notebook()), 600.0).deallocate(pod(), fact)

    return run(test)


def held_claim(*users, **metadata):
    results = [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": [{"resource": "pods", "uid": uid} for uid in users]}
    metadata = {
        "name": "k",
        "namespace": "ns",
        "uid": "uid-k",
        "finalizers": ["resource.kubernetes.io/delete-protection"],
    } | metadata
    return {"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1", "metadata": metadata, "spec": {}, "status": status}


@pytest.mark.parametrize("users", [(), ("u1",)])
def test_a_claim_that_nobody_else_uses_is_given_up(users):
    shelf = Shelf()
    shelf.put(f"{DEVICES}/k", held_claim(*users))
    assert deallocate(shelf, read(held_claim(*users))) == ""
    assert shelf.objects[f"{DEVICES}/k"]["status"] == {}


@pytest.mark.parametrize("now", [held_claim("u2"), held_claim(uid="another"), held_claim(deletionTimestamp="2026-01-01T00:00:00Z")])
def test_a_claim_that_is_not_ours_any_more_is_left_alone(now):
    """Be it before we look, or between our look and our write."""
    for early in (True, False):
        shelf = Shelf()
        shelf.put(f"{DEVICES}/k", now if early else held_claim())
        shelf.before[f"{DEVICES}/k"] = [] if early else [lambda shelf=shelf: shelf.put(f"{DEVICES}/k", now)]
        assert deallocate(shelf, read(held_claim())) == ""
        assert shelf.objects[f"{DEVICES}/k"]["status"] == now["status"]


def test_a_claim_for_extended_resources_is_deleted():
    shelf = Shelf()
    shelf.put(f"{DEVICES}/k", held_claim("u1"))
    assert deallocate(shelf, replace(read(held_claim("u1")), extended=True)) == ""
    assert shelf.objects == {}
    shelf.put(f"{DEVICES}/k", held_claim("u2"))
    deallocate(shelf, replace(read(held_claim("u2")), extended=True))
    assert shelf.objects[f"{DEVICES}/k"]["status"] == held_claim("u2")["status"]


def test_a_claim_that_cannot_be_written_is_told():
    assert deallocate(Shelf(), read(held_claim())) == "not found"
