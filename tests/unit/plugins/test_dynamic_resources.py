"""DynamicResources, as far as comparisons with kube-scheduler do not reach: one device for one pod only, answers that are
remembered, searches that are cut short, and CEL selectors that nobody can evaluate."""

import random
from dataclasses import replace

import numpy as np
import pytest

from stowplan.loop.simulate import simulate
from stowplan.objects import DeviceClass, DeviceID, ResourceClaim, Wanted, extended_classes, read
from stowplan.plugins import dynamic_resources
from stowplan.plugins.dynamic_resources import NOTHING, PLUGIN, SHORT, Judge
from stowplan.plugins.plugin import Release
from stowplan.policy.attempt import attempt
from stowplan.policy.compile import load
from stowplan.state import Cluster, Store
from stowplan.state.devices import DEVICES, SearchLimitError, SelectorError, allocator
from stowplan.state.devices.allocator import Search, World
from stowplan.state.devices.capacity import CapacityError, consumed, fits

DRIVER = "d.example.com"
POLICY = load(None)
ARGS = POLICY.profiles["default-scheduler"].args["DynamicResources"]
API = "resource.k8s.io/v1"


def meta(name, **more):
    return {"name": name, "namespace": "default", "uid": f"uid-{name}"} | more


def node(name, **allocatable):
    amounts = {"cpu": "10", "memory": "10Gi", "pods": "100"} | {key.replace("__", "/"): value for key, value in allocatable.items()}
    labels = {"kubernetes.io/hostname": name}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {"allocatable": amounts}}


def pod(name, *claims, requests=None, inits=(), **spec):
    containers = [{"name": "c", "resources": {"requests": {"cpu": "1"} | (requests or {})}}]
    entries = [{"name": f"e{i}", "resourceClaimName": claim} for i, claim in enumerate(claims)]
    body = {"priority": 0, "containers": containers, "initContainers": list(inits), "resourceClaims": entries} | spec
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta(name), "spec": body}


def device_class(name="gpu", **spec):
    return {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def exactly(count=1, device_class="gpu", **more):
    return {"name": "r", "exactly": {"deviceClassName": device_class, "count": count} | more}


def claim(name, *requests, constraints=(), **metadata):
    devices = {"requests": list(requests or [exactly()]), "constraints": list(constraints)}
    return {"apiVersion": API, "kind": "ResourceClaim", "metadata": meta(name, **metadata), "spec": {"devices": devices}}


def devices(on, *found, **spec):
    """A slice of devices on a node: names, or whole devices."""
    listed = [{"name": device} if isinstance(device, str) else device for device in found]
    body = {"driver": DRIVER, "nodeName": on, "pool": {"name": on, "generation": 1, "resourceSliceCount": 1}, "devices": listed}
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": f"slice-{on}"}, "spec": body | spec}


def cluster_of(*objects):
    store = Store()
    for item in objects:
        store.add(read(item))
    return store


def judged(store, name):
    """Reason by node for a pending pod, None where the devices suffice."""
    pending = store.pending[f"default/{name}"]
    judge = Judge(PLUGIN.asks(pending, ARGS, Cluster(store)), Cluster(store)[DEVICES])
    return {node.name: (found := judge.look(node).reason) and found.text for node in store.nodes}


def placed(store):
    return {placement.pod.name: placement.node for placement in simulate(POLICY, store).placements}


def test_two_pods_never_get_one_device():
    pods = [item for i in range(4) for item in (claim(f"k{i}"), pod(f"p{i}", f"k{i}"))]
    store = cluster_of(node("a"), node("b"), device_class(), devices("a", "x", "y"), devices("b", "z"), *pods)
    before = dict(store.facts[ResourceClaim])
    nodes = list(placed(store).values())
    assert sorted(filter(None, nodes)) == ["a", "a", "b"]
    assert store.facts[ResourceClaim] == before  # the cluster is as it was


def test_replicas_whose_claims_come_from_templates_have_claims_of_their_own():
    objects = [node("a"), device_class(), devices("a", "x", "y", "z")]
    for name, count in (("p0", 9), ("p1", 1), ("p2", 1)):
        owner = [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-{name}", "controller": True}]
        objects.append(claim(f"{name}-made", exactly(count), ownerReferences=owner))
        replica = pod(name, resourceClaims=[{"name": "e", "resourceClaimTemplateName": "t"}])
        replica["status"] = {"resourceClaimStatuses": [{"name": "e", "resourceClaimName": f"{name}-made"}]}
        objects.append(replica)
    assert placed(cluster_of(*objects)) == {"p0": None, "p1": "a", "p2": "a"}


def test_a_claim_in_use_by_a_decision_is_not_shared_before_that_is_carried_out():
    store = cluster_of(node("a"), device_class(), devices("a", "x"), claim("k"), pod("p0", "k"), pod("p1", "k"))
    first, second = simulate(POLICY, store).placements
    assert first.node == "a"
    assert "resource claim default/k is in the process of being allocated" in second.message


def test_an_allocation_binds_its_claim_to_the_node():
    store = cluster_of(node("a"), node("b"), device_class(), devices("a", "x"), claim("k"), pod("p", "k"))
    pending = store.pending["default/p"]
    ask = PLUGIN.asks(pending, ARGS, Cluster(store))
    (after,) = PLUGIN.reserves(ask, Cluster(store), store.row_of["a"])
    assert [held.id for held in after.allocation.devices] == [DeviceID(DRIVER, "a", "x")]
    store.set_fact(replace(after, pending=False))  # carried out: now others can use what it holds
    assert judged(store, "p") == {"a": None, "b": "resourceclaim not available on the node"}


def test_extended_resources_take_devices_once():
    wants = {"example.com/gpu": "1"}
    kind = device_class(extendedResourceName="example.com/gpu")
    pods = [pod(f"p{i}", requests=wants) for i in range(4)]
    store = cluster_of(node("a"), node("b", example__gpu="0"), node("c"), kind, devices("a", "x", "y"), *pods)
    assert list(placed(store).values()) == ["a", "a", None, None]


def test_init_containers_use_the_devices_of_those_that_run_later():
    name = "example.com/gpu"
    inits = [{"name": "i", "resources": {"requests": {name: "3"}}}, {"name": "j", "resources": {"requests": {name: "2"}}}]
    store = cluster_of(
        node("a"), device_class(extendedResourceName=name), devices("a", "x", "y", "z"), pod("p", requests={name: "1"}, inits=inits)
    )
    ask = PLUGIN.asks(store.pending["default/p"], ARGS, Cluster(store))
    (after,) = PLUGIN.reserves(ask, Cluster(store), 0)
    assert [(r.name, r.exactly.count) for r in after.requests] == [("container-0-request-0", 2), ("container-2-request-1", 1)]
    assert len(after.allocation.devices) == 3


def test_a_pod_without_claims_asks_nothing():
    store = cluster_of(node("a"), device_class(), devices("a", "x"), pod("p", requests={"example.com/other": "1"}), pod("q"))
    for pending in store.pending.values():
        ask = PLUGIN.asks(pending, ARGS, Cluster(store))
        assert ask is NOTHING
        assert PLUGIN.rejects(ask, Cluster(store)) is None
        assert PLUGIN.scores(ask, Cluster(store), None).tolist() == [0]


def test_a_selector_that_cannot_be_evaluated_is_told_and_not_guessed(monkeypatch):
    def fails(expression, device):
        raise SelectorError(f"no {expression} for {device.id.device}")

    selecting = device_class(selectors=[{"cel": {"expression": "true"}}])
    store = cluster_of(node("a"), node("b"), selecting, devices("a", "x"), claim("k"), pod("p", "k"))
    monkeypatch.setattr(dynamic_resources, "SELECTS", fails)
    found = attempt(POLICY, store, store.pending["default/p"])
    told = f"class gpu: selector #0 on device {DRIVER}/a/x: no true for x"
    assert found.message == f'running "DynamicResources" filter plugin: {told}'
    monkeypatch.setattr(dynamic_resources, "SELECTS", lambda _expression, device: device.id.device == "x")
    assert judged(store, "p") == {"a": None, "b": SHORT.text}


def test_a_search_that_is_cut_short_is_an_error(monkeypatch):
    monkeypatch.setattr(dynamic_resources, "TRIES_PER_SECOND", 1)
    store = cluster_of(node("a"), device_class(), devices("a", *"abcdefgh"), claim("k", exactly(8)), pod("p", "k"))
    assert judged(store, "p") == {"a": "node a: timed out trying to allocate devices"}


@pytest.mark.parametrize("seed", range(20))
def test_what_has_failed_is_not_tried_again_and_counts_the_same(seed, monkeypatch):
    dice = random.Random(seed)  # noqa: S311 - nothing secret
    attributes = lambda: {name: {"int": dice.randint(0, 2)} for name in ("m", "n") if dice.random() < 0.9}  # noqa: E731
    listed = [{"name": f"x{i}", "attributes": attributes()} for i in range(6)]
    constraints = [{"matchAttribute": f"{DRIVER}/m"}, {"distinctAttribute": f"{DRIVER}/n"}]
    requests = [exactly(dice.randint(1, 2)) | {"name": f"r{i}"} for i in range(3)]
    store = cluster_of(
        node("a"), device_class(), devices("a", *listed), claim("k0", *requests, constraints=constraints), claim("k1", *requests)
    )
    known = Cluster(store)[DEVICES]
    outcomes = []
    for easy in (0, 10**9):
        monkeypatch.setattr(allocator, "EASY", easy)
        world = World(known.inventory, known.taken, known.classes, dynamic_resources.SELECTS, 0)
        search = Search(
            [store.facts[ResourceClaim][f"default/k{i}"] for i in range(2)], known.inventory.pools(store.nodes[0]), world
        )
        outcomes.append((search.run(), search._tried))  # the count stands for time
    assert outcomes[0] == outcomes[1]
    world = replace(world, tries=max(1, outcomes[0][1] - 1))
    with pytest.raises(SearchLimitError):
        Search([store.facts[ResourceClaim][f"default/k{i}"] for i in range(2)], known.inventory.pools(store.nodes[0]), world).run()


def random_store(dice):
    objects = [node(f"n{i}") for i in range(4)] + [device_class()]
    having = [f"n{i}" for i in range(4) if dice.random() < 0.8]
    objects += [devices(name, *(f"x{j}" for j in range(dice.randint(1, 3)))) for name in having]
    shared = {"driver": "net.example.com", "nodeName": "", "allNodes": True}
    pool = {"name": "net", "generation": 1, "resourceSliceCount": 1}
    objects.append(devices("net", "port", **shared, pool=pool))
    objects += [item for i in range(12) for item in (claim(f"k{i}", exactly(dice.randint(1, 2))), pod(f"p{i}", f"k{i}"))]
    return cluster_of(*objects)


@pytest.mark.parametrize("seed", range(10))
def test_remembered_answers_are_those_of_a_new_store(seed):
    dice = random.Random(seed)  # noqa: S311 - nothing secret
    store = random_store(dice)
    assumed = []
    for _ in range(30):
        if assumed and dice.random() < 0.4:
            store.forget(assumed.pop(dice.randrange(len(assumed))))
        elif store.pending:
            pending = dice.choice(list(store.pending.values()))
            ask = PLUGIN.asks(pending, ARGS, Cluster(store))
            rejected = PLUGIN.rejects(ask, Cluster(store))
            rows = [row for row in range(4) if not any(mask[row] for mask in rejected.values())]
            if rows:
                row = dice.choice(rows)
                store.assume(pending, store.nodes[row].name, PLUGIN.reserves(ask, Cluster(store), row))
                assumed.append(pending)
        anew = Store()
        for item in store.nodes:
            anew.add(item)
        for facts in store.facts.values():
            for fact in facts.values():
                anew.add(fact)
        for pending in store.pending.values():
            anew.add(pending)
            assert judged(store, pending.name) == judged(anew, pending.name)
    held = [held.id for item in store.facts[ResourceClaim].values() if item.allocation for held in item.allocation.devices]
    assert len(held) == len(set(held))


def test_a_row_does_not_depend_on_the_others():
    store = random_store(random.Random(3))  # noqa: S311
    ask = PLUGIN.asks(store.pending["default/p0"], ARGS, Cluster(store))
    everywhere = PLUGIN.rejects(ask, Cluster(store))
    for row in range(4):
        alone = PLUGIN.rejects(ask, Cluster(store, np.array([row])))
        assert {reason for reason, mask in everywhere.items() if mask[row]} == set(alone)


def test_asks_differ_when_devices_come_into_use():
    store = random_store(random.Random(1))  # noqa: S311
    pending = store.pending["default/p0"]
    before = PLUGIN.asks(pending, ARGS, Cluster(store))
    assert PLUGIN.asks(pending, ARGS, Cluster(store)) == before
    other = store.facts[ResourceClaim]["default/k1"]
    store.set_fact(replace(other, uid="new"))
    assert PLUGIN.asks(pending, ARGS, Cluster(store)) != before


def status(name, held, *, stamped=True, conditions=(), reserved=()):
    results = [{"request": "r", "driver": DRIVER, "pool": "a", "device": held, "bindingConditions": ["ready"]}]
    allocation = {"devices": {"results": [{**results[0], "bindingFailureConditions": ["failed"]}]}}
    if stamped:
        allocation["allocationTimestamp"] = "2026-01-01T00:00:00Z"
    told = [{"driver": DRIVER, "pool": "a", "device": held, "conditions": [{"type": t, "status": "True"} for t in conditions]}]
    consumers = [{"uid": uid} for uid in reserved]
    return claim(name) | {"status": {"allocation": allocation, "devices": told, "reservedFor": consumers}}


@pytest.mark.parametrize(
    ("conditions", "stamped", "stuck"),
    [(["ready"], True, False), (["failed", "ready"], False, True), ([], True, True), ([], False, False)],
)
def test_devices_that_must_be_made_ready(conditions, stamped, stuck):
    assert read(status("k", "x", stamped=stamped, conditions=conditions)).stuck() is stuck


def test_what_no_node_reaches_is_given_up_unless_others_use_it():
    for reserved, released in (((), True), (("uid-p",), True), (("uid-other",), False)):
        store = cluster_of(node("b"), device_class(), status("k", "x", conditions=["failed"], reserved=reserved), pod("p", "k"))
        ask = PLUGIN.asks(store.pending["default/p"], ARGS, Cluster(store))
        found = dynamic_resources.releases(ask, Cluster(store))
        expected = Release("deallocation of ResourceClaim completed", store.facts[ResourceClaim]["default/k"])
        assert found == (expected if released else None)


def test_of_two_classes_for_one_resource_the_later_one_serves_it():
    old, new = DeviceClass("b", "e.com/x", 1.0, ()), DeviceClass("a", "e.com/x", 2.0, ())
    prefix = "deviceclass.resource.kubernetes.io/"
    assert extended_classes({"b": old, "a": new}) == {"e.com/x": new, f"{prefix}a": new}
    later = replace(old, created=3.0)
    assert extended_classes({"b": later, "a": new}) == {"e.com/x": later, f"{prefix}a": new, f"{prefix}b": later}
    assert extended_classes({"b": replace(old, created=2.0), "a": new})["e.com/x"] is new


def capable(policy, value="8", **more):
    found = {"name": "x", "capacity": {"slots": {"value": value, "requestPolicy": policy}}, "allowMultipleAllocations": True}
    return read(devices("a", found | more)).devices[0]


@pytest.mark.parametrize(
    ("policy", "asked", "taken"),
    [
        ({"default": "1", "validRange": {"min": "2", "step": "2"}}, "3", "4"),
        ({"default": "1", "validRange": {"min": "2", "step": "2"}}, "1", "2"),
        ({"default": "1", "validRange": {"min": "2", "step": "2"}}, None, "1"),
        ({"default": "500m", "validRange": {"min": "250m", "step": "250m"}}, "300m", "500m"),
        ({"default": "1", "validValues": ["1", "4"]}, "2", "4"),
        ({"default": "1", "validValues": ["1", "4"]}, "5", "5"),
        (None, None, "8"),
    ],
)
def test_capacity_is_rounded_as_the_device_says(policy, asked, taken):
    wanted = {} if asked is None else {"slots": nano(asked)}
    assert consumed(wanted, capable(policy)) == {"slots": nano(taken)}


def nano(text):
    request = exactly(capacity={"requests": {"slots": text}})
    asked: Wanted = read(claim("k", request)).requests[0].exactly
    return asked.capacity[0][1]


def test_capacity_that_cannot_be_had():
    odd = {"default": "1", "validRange": {"min": "1", "step": "1"}}
    with pytest.raises(CapacityError, match=r'capacity "slots": .*: request 1500u is not a representable milli value'):
        fits({"slots": nano("1500u")}, capable({"default": "1", "validRange": {"min": "0", "step": "250m"}}), {})
    assert not fits({"other": nano("1")}, capable(odd), {})
    assert fits({"slots": nano("5")}, capable(odd), {"slots": nano("3")})
    assert not fits({"slots": nano("6")}, capable(odd), {"slots": nano("3")})
    assert not fits({"slots": nano("5")}, capable({"default": "1", "validValues": ["1", "4"]}), {})
    with pytest.raises(CapacityError, match="capacity value is negative"):
        consumed({"slots": nano("-1")}, capable(None))


def test_parts_of_a_device_go_to_several_pods():
    shared = {"name": "x", "capacity": {"slots": {"value": "4"}}, "allowMultipleAllocations": True}
    request = exactly(capacity={"requests": {"slots": "2"}})
    pods = [item for i in range(3) for item in (claim(f"k{i}", request), pod(f"p{i}", f"k{i}"))]
    store = cluster_of(node("a"), device_class(), devices("a", shared), *pods)
    assert list(placed(store).values()) == ["a", "a", None]
