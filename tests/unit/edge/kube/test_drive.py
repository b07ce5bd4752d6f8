import asyncio
from collections import deque

import msgspec
import pytest

from stowplan.edge.coalesce import coalesced
from stowplan.edge.drive import Drive, LeaseLostError, Settings
from stowplan.edge.kube.kinds import RESOURCES
from stowplan.edge.kube.lease import Seat
from stowplan.edge.kube.transport import UnsentError
from stowplan.loop.effects import Bind, Note
from stowplan.loop.events import Bound, Cycle, Leading, NodeChanged, NodeGone, PodChanged, PodGone, Synced
from stowplan.objects import read
from stowplan.profile.model import LeaderElection
from unit.edge.kube.rig import Notebook, Script, answer, clock, line, listed, pod_object, refusal, run

PODS = tuple(resource for resource in RESOURCES if resource.kind == "Pod")
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
EVENTS = "/apis/events.k8s.io/v1/namespaces/ns/events"


class Toy:
    """A loop that binds every waiting pod to n1, one a cycle, once it leads and knows the cluster."""

    def __init__(self):
        self.waiting, self.leads, self.synced = deque(), False, False
        self.told = []

    def handle(self, event, now):  # noqa: ARG002
        self.told.append(event)
        match event:
            case Leading(leads):
                self.leads = leads
            case Synced():
                self.synced = True
            case PodChanged(pod) if not pod.node_name:
                self.waiting.append(pod)
            case PodGone(_, uid):
                self.waiting = deque(pod for pod in self.waiting if pod.uid != uid)
            case Cycle():
                pod = self.waiting.popleft()
                return [Bind(pod, "n1")]
            case Bound(_, uid):
                pod = next(event.pod for event in self.told if isinstance(event, PodChanged) and event.pod.uid == uid)
                return [Note(pod, "Scheduled", "Binding", f"Successfully assigned {pod.key} to n1")]
        return []

    def ready(self, now):  # noqa: ARG002
        return self.leads and self.synced and bool(self.waiting)

    def wake_at(self):
        return None


def cluster(count):
    script = Script().on("GET", PODS[0].paths[0], listed("10", *(pod_object(f"p{i}", f"u{i}") for i in range(count))))
    for i in range(count):
        script.on("POST", f"/api/v1/namespaces/ns/pods/p{i}/binding", answer(201))
    return script.on("POST", EVENTS, answer(201))


def drive(script, *, seconds=100, toy=None, during=None, **settings):
    """The toy after a run that is stopped then, and the drive."""
    toy, notebook = toy or Toy(), Notebook()

    async def test():
        driven = Drive(toy, script, clock(), Settings(resources=PODS, **settings), notebook)
        running = asyncio.create_task(driven.run())
        if during is not None:
            await during(driven, running)
        else:
            await asyncio.sleep(seconds)
        driven.stop()
        await running
        return driven

    driven = run(test)
    driven.notebook = notebook
    return toy, driven


def test_from_list_to_event():
    script = cluster(5)
    toy, driven = drive(script)
    kinds = [type(event).__name__ for event in toy.told]
    assert kinds[0] == "Leading"
    assert kinds.index("Synced") < kinds.index("Cycle")
    assert kinds.count("Bound") == 5
    notes = script.sent("POST", past="events")
    assert {note["note"] for note in notes} == {f"Successfully assigned ns/p{i} to n1" for i in range(5)}
    assert toy.told[-1] == Leading(False)
    assert driven.synced
    assert driven.notebook.handlings == toy.told


def test_a_list_is_handled_before_anything_is_decided():
    """A new list after 410, with 600 more pods: none is decided about before the last one is known."""
    script = cluster(1)
    many = [pod_object(f"p{i}", f"u{i}") for i in range(600)]
    script.on("GET", PODS[0].paths[0], listed("30", *many))
    for i in range(600):
        script.on("POST", f"/api/v1/namespaces/ns/pods/p{i}/binding", answer(201))
    script.streams.append((answer(), [5, line("ERROR", {"code": 410})]))
    toy, _ = drive(script)
    changes = [place for place, event in enumerate(toy.told) if isinstance(event, PodChanged)]
    cycles = [place for place, event in enumerate(toy.told) if isinstance(event, Cycle)]
    assert len(changes) == 600
    assert cycles[0] < changes[1]
    assert changes[-1] < cycles[1]


def test_a_stop_waits_for_binds_that_are_under_way():
    async def slow(_):
        await asyncio.sleep(4)
        return answer(201)

    script = cluster(1)
    script.answers["POST", "/api/v1/namespaces/ns/pods/p0/binding"] = deque([slow])
    toy, _ = drive(script, seconds=1)
    assert [event for event in toy.told if isinstance(event, Bound)] == [Bound("ns/p0", "u0")]
    assert script.sent("POST", past="events")


def test_a_stop_does_not_wait_for_ever():
    async def endless(_):
        await asyncio.sleep(1e6)

    script = cluster(1)
    script.answers["POST", "/api/v1/namespaces/ns/pods/p0/binding"] = deque([endless])

    async def during(driven, running):
        await asyncio.sleep(1)
        driven.stop()
        await running
        assert asyncio.get_running_loop().time() < 15

    drive(script, during=during)


def leased(script, *renewals):
    records = []

    def won(request):
        record = msgspec.json.decode(request.body)
        record["metadata"]["resourceVersion"] = "1"
        records.append(record)
        return answer(200, record)

    def stored(_):
        down = isinstance(script.answers["PUT", f"{LEASE}/kube-scheduler"][0], UnsentError)
        return UnsentError("down") if down else answer(200, records[-1])

    script.on("GET", f"{LEASE}/kube-scheduler", refusal(404), stored)
    script.on("POST", LEASE, won)
    script.on("POST", "/apis/events.k8s.io/v1/namespaces/kube-system/events", answer(201))
    return script.on("PUT", f"{LEASE}/kube-scheduler", *[won if renewal is None else renewal for renewal in renewals])


def test_a_lost_lease_ends_it_and_nothing_is_written_after():
    script = leased(cluster(3), None, None, UnsentError("down"))
    seat = Seat(LeaderElection(), "me")
    times = []

    async def during(driven, running):
        with pytest.raises(LeaseLostError):
            await running
        times.append(asyncio.get_running_loop().time())
        assert not driven.may_write()

    with pytest.raises(LeaseLostError):
        drive(script, during=during, seat=seat)
    assert 10 < times[0] < 14.2


def test_a_clean_stop_releases_the_lease():
    script = leased(cluster(3), None)
    drive(script, seat=Seat(LeaderElection(), "me"), seconds=30)
    (told,) = script.sent("POST", past="kube-system/events")
    assert (told["reason"], told["note"], told["regarding"]["name"]) == ("LeaderElection", "me became leader", "kube-scheduler")
    last = script.sent("PUT")[-1]["spec"]
    assert (last["holderIdentity"], last["leaseDurationSeconds"]) == ("", 1)


def test_a_lease_is_not_handed_over_while_writes_are_under_way():
    async def endless(_):
        await asyncio.sleep(1e5)

    script = leased(cluster(1), None)
    script.answers["POST", "/api/v1/namespaces/ns/pods/p0/binding"] = deque([endless])
    drive(script, seat=Seat(LeaderElection(), "me"), seconds=5)
    assert {body["spec"]["holderIdentity"] for body in script.sent("PUT")} == {"me"}


def test_watches_may_wait_for_the_lease():
    script = leased(cluster(1), None)
    toy, _ = drive(script, seat=Seat(LeaderElection(), "me"), late=True)
    assert script.requests[0].path.startswith(LEASE)
    assert isinstance(toy.told[0], Leading)
    assert Bound("ns/p0", "u0") in toy.told


def test_what_nobody_can_cause_from_outside_ends_it():
    class Broken(Toy):
        def handle(self, event, now):
            if isinstance(event, Cycle):
                raise ZeroDivisionError
            return super().handle(event, now)

    with pytest.raises(ExceptionGroup) as caught:
        drive(cluster(1), toy=Broken())
    assert caught.group_contains(ZeroDivisionError)


def test_wake_times_are_kept():
    times = []

    class Alarm(Toy):
        def wake_at(self):
            return None if len(times) >= 3 else start + 10 * (len(times) + 1)

        def ready(self, now):
            return len(times) < 3 and now >= start + 10 * (len(times) + 1)

        def handle(self, event, now):
            if isinstance(event, Cycle):
                times.append(now - start)
            return []

    start = 1_800_000_000.0
    drive(cluster(0), toy=Alarm())
    assert times == pytest.approx([10, 20, 30], abs=0.01)


def test_nodes_are_coalesced_only_in_a_flood():
    def node(name, version):
        return NodeChanged(read({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": version}}))

    a1, a2, b1, a3, pod = node("a", "1"), node("a", "2"), node("b", "1"), node("a", "3"), PodGone("ns/p", "u")
    assert coalesced([a1, pod, b1, a2]) == [pod, b1, a2]
    assert coalesced([a1, a2, NodeGone("a"), a3]) == [a2, NodeGone("a"), a3]
    assert coalesced([pod, pod]) == [pod, pod]
