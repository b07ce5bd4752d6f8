"""The model by itself: does it do what a kube-apiserver does, and does virtual time behave?"""

import asyncio

import msgspec
import pytest

from controlplane.objects import node, pod
from simulation.actors import MERGE, NODES, PODS, STRATEGIC, Client, path_of
from simulation.api import Api
from simulation.faults import Fault, Faults
from simulation.machine import Clock, Machine, StuckError, chance
from simulation.patches import merge, strategic
from simulation.storage import BY_PLURAL, Storage, encode
from simulation.wire import Server, Wire
from stowplan.edge.kube.transport import Request, UnansweredError, UnsentError

decode = msgspec.json.decode


class Silent:
    """An observer of nothing."""

    def __getattr__(self, _):
        return lambda *_: None


class Cluster:
    def __init__(self, *faults):
        self.clock, self.storage = Clock(), Storage()
        self.api = Api(self.storage, self.clock)
        self.client = Client(self.api)
        self.server = Server(self.api, self.clock, Faults(faults), chance(0))
        self.machine = Machine(self.clock, "client")
        self.wire = Wire(self.server, self.machine, 0, Silent(), chance(0))

    def run(self, work, seconds: float = 600.0):
        task = self.machine.create_task(work)
        self.clock.run(self.clock.now + seconds)
        if not task.done():
            task.cancel()
            self.clock.run(self.clock.now + 1)
            return "not done"
        return task.result()

    def bind(self, name: str, to: str = "n1", uid: str = ""):
        body = {"metadata": {"name": name, "uid": uid}, "target": {"kind": "Node", "name": to}}
        status, answer = self.api.call("POST", path_of(PODS, "default", name, "binding"), {}, encode(body))
        return status, decode(answer)

    def pod(self, name: str):
        return self.storage.objects[PODS]["default", name]


@pytest.fixture
def cluster():
    made = Cluster()
    yield made
    made.machine.kill()


# Virtual time


def test_sleeping_takes_no_time_and_the_clock_shows_it(cluster):
    async def work():
        begun = asyncio.get_running_loop().time()
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time() - begun

    assert cluster.run(work(), 4000) == pytest.approx(3600)


def test_a_frozen_machine_is_late_and_others_are_not(cluster):
    other = Machine(cluster.clock, "other")
    woken = {}

    async def work(name):
        await asyncio.sleep(1)
        woken[name] = cluster.clock.now

    cluster.machine.create_task(work("frozen"))
    other.create_task(work("other"))
    cluster.clock.run(0.5)
    cluster.machine.frozen_until = 20.0
    cluster.clock.run(30)
    other.kill()
    assert woken == {"other": 1.0, "frozen": 20.0}


def test_a_killed_machine_does_nothing_more(cluster):
    done = []

    async def work():
        try:
            await asyncio.sleep(5)
            done.append("woke")
        finally:
            with pytest.raises(UnsentError):
                await cluster.wire.request(Request("DELETE", "/api/v1/nodes/n1"))

    cluster.client.create(NODES, node("n1"))
    cluster.machine.create_task(work())
    cluster.clock.run(1)
    cluster.wire.dead = True
    cluster.machine.kill()
    cluster.clock.run(10)
    assert not done
    assert ("", "n1") in cluster.storage.objects[NODES]
    cluster.machine = Machine(cluster.clock, "next")


def test_what_spins_is_told(cluster):
    async def work():
        while True:  # noqa: ASYNC110 - that is the point
            await asyncio.sleep(0)

    cluster.machine.create_task(work())
    with pytest.raises(StuckError):
        cluster.clock.run(1)


# Binding (upstream: BindingREST)


def test_binding_sets_node_and_condition_and_clears_the_nomination(cluster):
    cluster.client.create(PODS, pod("p"))
    cluster.client.patch(PODS, ("default", "p"), {"status": {"nominatedNodeName": "n9"}}, "status")
    generation = cluster.pod("p")["metadata"]["generation"]
    assert cluster.bind("p")[0] == 201
    found = cluster.pod("p")
    assert found["spec"]["nodeName"] == "n1"
    assert "nominatedNodeName" not in found["status"]
    assert [(each["type"], each["status"]) for each in found["status"]["conditions"]] == [("PodScheduled", "True")]
    assert found["metadata"]["generation"] == generation


def test_bindings_that_are_refused(cluster):
    for name in ("taken", "leaving", "gated", "other"):
        gates = {"schedulingGates": [{"name": "g"}]} if name == "gated" else {}
        cluster.client.create(PODS, pod(name, **gates))
    cluster.bind("taken")
    cluster.bind("leaving")
    cluster.client.delete(PODS, ("default", "leaving"))
    assert cluster.bind("missing")[0] == 404
    messages = {name: cluster.bind(name) for name in ("taken", "leaving", "gated")}
    assert {status for status, _ in messages.values()} == {409}
    assert 'is already assigned to node "n1"' in messages["taken"][1]["message"]
    assert "is being deleted" in messages["leaving"][1]["message"]
    assert "has non-empty .spec.schedulingGates" in messages["gated"][1]["message"]
    status, answer = cluster.bind("other", uid="of-another")
    assert (status, answer["reason"]) == (409, "Conflict")
    assert "uid in precondition: of-another" in answer["message"]


# Writing


def test_updates_have_preconditions_and_equal_ones_are_no_news(cluster):
    cluster.client.create(NODES, node("n1"))
    before = cluster.storage.objects[NODES]["", "n1"]
    path = path_of(NODES, "", "n1")
    stale = before | {"metadata": before["metadata"] | {"resourceVersion": "1"}}
    assert cluster.api.call("PUT", path, {}, encode(stale))[0] == 409
    assert cluster.api.call("PUT", path, {}, encode(before))[0] == 200
    assert cluster.storage.objects[NODES]["", "n1"] is before
    cordoned = before | {"spec": {"unschedulable": True}, "status": {}}
    assert cluster.api.call("PUT", path, {}, encode(cordoned))[0] == 200
    after = cluster.storage.objects[NODES]["", "n1"]
    assert after["status"] == before["status"]  # a subresource of its own
    assert after["metadata"]["generation"] == 2


def test_a_status_patch_merges_conditions_by_type_and_leaves_the_spec_alone(cluster):
    cluster.client.create(PODS, pod("p"))
    key = ("default", "p")
    for kind, reason in (("A", "first"), ("B", "other"), ("A", "second")):
        body = {"spec": {"nodeName": "n1"}, "status": {"conditions": [{"type": kind, "reason": reason}]}}
        cluster.client.patch(PODS, key, body, "status", STRATEGIC)
    found = cluster.pod("p")
    assert [(each["type"], each["reason"]) for each in found["status"]["conditions"]] == [("A", "second"), ("B", "other")]
    assert "nodeName" not in found["spec"]
    answer = cluster.api.call("PATCH", path_of(PODS, *key, "status"), {}, encode({"metadata": {"uid": "x"}}), STRATEGIC)
    assert answer[0] == 409


def test_patches():
    assert merge({"a": 1, "b": {"c": 1}}, {"a": None, "b": {"d": 2}}) == {"b": {"c": 1, "d": 2}}
    assert merge({"l": [1]}, {"l": [2]}) == {"l": [2]}
    removed = strategic({"conditions": [{"type": "A"}, {"type": "B"}]}, {"conditions": [{"type": "A", "$patch": "delete"}]})
    assert removed == {"conditions": [{"type": "B"}]}


def test_a_bound_pod_is_deleted_in_two_steps_and_a_waiting_one_in_one(cluster):
    for name in ("bound", "waits"):
        cluster.client.create(PODS, pod(name))
        cluster.client.create(PODS, pod(name))  # 409, passed over
    cluster.bind("bound")
    uid = cluster.pod("bound")["metadata"]["uid"]
    cluster.client.delete(PODS, ("default", "bound"), uid="of-another")
    assert "deletionTimestamp" not in cluster.pod("bound")["metadata"]
    for name in ("bound", "waits"):
        cluster.client.delete(PODS, ("default", name))
    assert "deletionTimestamp" in cluster.pod("bound")["metadata"]
    assert ("default", "waits") not in cluster.storage.objects[PODS]
    cluster.client.delete(PODS, ("default", "bound"), uid=uid, grace=0)
    assert not cluster.storage.objects[PODS]


def test_one_lease_and_two_that_renew_it(cluster):
    leases = BY_PLURAL["leases"]
    made = cluster.client.create(leases, {"metadata": {"name": "l", "namespace": "kube-system"}, "spec": {"holderIdentity": "a"}})
    path = path_of(leases, "kube-system", "l")
    answers = [cluster.api.call("PUT", path, {}, encode(made | {"spec": {"holderIdentity": name}}))[0] for name in ("b", "c")]
    assert answers == [200, 409]


# Lists and watches


def test_pages_show_one_state_and_expire(cluster):
    for number in range(5):
        cluster.client.create(PODS, pod(f"p{number}"))
    path = path_of(PODS)
    first = decode(cluster.api.call("GET", path, {"limit": "2"})[1])
    cluster.client.delete(PODS, ("default", "p4"))
    second = decode(cluster.api.call("GET", path, {"limit": "2", "continue": first["metadata"]["continue"]})[1])
    third = decode(cluster.api.call("GET", path, {"limit": "2", "continue": second["metadata"]["continue"]})[1])
    names = [item["metadata"]["name"] for page in (first, second, third) for item in page["items"]]
    assert names == ["p0", "p1", "p2", "p3", "p4"]
    assert {page["metadata"]["resourceVersion"] for page in (first, second, third)} == {first["metadata"]["resourceVersion"]}
    assert "kind" not in first["items"][0]
    cluster.storage.compact(0)
    assert cluster.api.call("GET", path, {"limit": "2", "continue": second["metadata"]["continue"]})[0] == 410


async def read(wire, version: int, most: int, silence: float = 80.0, **query):
    found = []
    query = {"watch": "true", "resourceVersion": str(version), **query}
    async with wire.stream("/api/v1/pods", query, silence=silence) as (answer, lines):
        if answer.status != 200:
            return answer.status
        async for line in lines:
            event = decode(line)
            found.append((event["type"], event["object"].get("metadata", {}).get("name") or event["object"].get("code")))
            if len(found) == most:
                break
    return found


def test_a_watch_goes_on_from_a_version_and_sees_finished_pods_go(cluster):
    cluster.client.create(PODS, pod("p"))
    version = cluster.storage.version
    cluster.bind("p")
    cluster.clock.after(5, cluster.client.patch, PODS, ("default", "p"), {"status": {"phase": "Succeeded"}}, "status", MERGE)
    selected = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
    assert cluster.run(read(cluster.wire, version, 2, **selected)) == [("MODIFIED", "p"), ("DELETED", "p")]


def test_a_watch_from_a_forgotten_version_is_gone_in_one_of_two_ways(cluster):
    for name in ("p", "q"):
        cluster.client.create(PODS, pod(name))
    cluster.storage.compact(0)
    answers = [cluster.run(read(cluster.wire, 100, 1)) for _ in range(12)]
    assert 410 in answers
    assert [("ERROR", 410)] in answers


def test_a_watch_that_is_closed_just_ends(cluster):
    cluster.clock.after(10, cluster.server.disturb, "close", None, "")
    assert cluster.run(read(cluster.wire, 100, 9)) == []


@pytest.mark.parametrize(("how", "seconds"), [("reset", 10.0), ("silence", 80.0)])
def test_a_watch_that_breaks_is_an_error(cluster, how, seconds):
    cluster.clock.after(10, cluster.server.disturb, how, None, "")

    async def work():
        with pytest.raises(UnansweredError):
            await read(cluster.wire, 100, 9)
        return cluster.clock.now

    assert cluster.run(work()) == pytest.approx(seconds, abs=0.1)


def test_bookmarks_come_every_minute_unless_they_are_lost(cluster):
    assert cluster.run(read(cluster.wire, 100, 2, allowWatchBookmarks="true"), 130) == [("BOOKMARK", None)] * 2
    mute = Cluster(Fault("mute", "watch"))
    with pytest.raises(UnansweredError, match="silence"):
        mute.run(read(mute.wire, 100, 1), 200)
    mute.machine.kill()


def test_no_order_between_kinds_but_order_within_one():
    cluster = Cluster(Fault("slow", "watch", plural="pods", seconds=5.0))
    version = cluster.storage.version
    for number in range(6):
        cluster.clock.after(1 + number / 100, cluster.client.create, PODS, pod(f"p{number}"))
    assert cluster.run(read(cluster.wire, version, 6)) == [("ADDED", f"p{number}") for number in range(6)]
    assert cluster.clock.now > 2
    cluster.machine.kill()


# Faults of requests


@pytest.mark.parametrize(
    ("how", "error", "took_effect"),
    [
        ("refused", UnsentError, False),
        ("lost", UnansweredError, False),
        ("unanswered", UnansweredError, True),
        ("reset", UnansweredError, True),
    ],
)
def test_faults_of_requests(how, error, took_effect):
    cluster = Cluster(Fault(how, "status"))
    cluster.client.create(PODS, pod("p"))

    async def work():
        body = encode({"status": {"nominatedNodeName": "n1"}})
        return await cluster.wire.request(Request("PATCH", path_of(PODS, "default", "p", "status"), body=body, content_type=MERGE))

    with pytest.raises(error):
        cluster.run(work())
    assert ("nominatedNodeName" in cluster.pod("p")["status"]) is took_effect
    assert cluster.run(work()).status == 200
    cluster.machine.kill()


def test_a_busy_server_says_when_to_come_back():
    cluster = Cluster(Fault("429", "list", seconds=2.0))

    async def work():
        return await cluster.wire.request(Request("GET", "/api/v1/pods"))

    answer = cluster.run(work())
    assert (answer.status, answer.retry_after) == (429, 2)
    cluster.machine.kill()


def test_nobody_answers_while_the_server_is_down(cluster):
    async def work():
        return await cluster.wire.request(Request("GET", "/api/v1/pods"))

    cluster.server.fall()
    with pytest.raises(UnsentError):
        cluster.run(work())
    cluster.server.rise()
    assert cluster.run(work()).status == 200
