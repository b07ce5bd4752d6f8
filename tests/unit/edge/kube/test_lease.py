import asyncio
from datetime import timedelta

import msgspec
import pytest

from stowplan.edge.drive import Drive, Settings
from stowplan.edge.kube.lease import Lease, Seat
from stowplan.edge.kube.transport import UnansweredError, UnsentError
from stowplan.loop.events import Cycle
from stowplan.profile.model import LeaderElection
from unit.edge.kube.rig import Notebook, answer, clock, refusal, run

ELECTION = LeaderElection()
PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


class Server:
    """One Lease, with versions. `trouble`, by identity of who asks, is raised before or after the effect, or hangs."""

    def __init__(self):
        self.record, self.version = None, 0
        self.trouble = {}

    def client(self, identity):
        server = self

        class Client:
            async def request(self, request):
                await asyncio.sleep(0.005)
                trouble = server.trouble.get(identity)
                if trouble == "hangs":
                    await asyncio.sleep(request.seconds)
                    raise UnansweredError("time ran out")
                if trouble == "down":
                    raise UnsentError("refused")
                found = server.serve(request)
                if trouble == "mute":
                    await asyncio.sleep(request.seconds)
                    raise UnansweredError("time ran out")
                return found

        return Client()

    def serve(self, request):
        if request.method == "GET":
            assert request.path == f"{PATH}/kube-scheduler"
            return refusal(404) if self.record is None else answer(200, self.record)
        body = msgspec.json.decode(request.body)
        if request.method == "POST":
            if self.record is not None:
                return refusal(409)
        elif body["metadata"]["resourceVersion"] != str(self.version):
            return refusal(409)
        self.version += 1
        self.record = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        return answer(200, self.record)


class Contest:
    """Two processes and one lease, watched ten times a second."""

    def __init__(self, server, names="ab"):
        self.server, self.names = server, names
        self.history = []

    def run(self, *happenings, seconds=120):
        async def test():
            self.leases, self.told, self.tasks = {}, {}, {}
            for name in self.names:
                lease = self.leases[name] = Lease(Seat(ELECTION, name), self.server.client(name), clock(ord(name)), Notebook())
                said = self.told[name] = []
                self.tasks[name] = asyncio.create_task(lease.run(said.append))
            pending = list(happenings)
            for tick in range(seconds * 10):
                while pending and pending[0][0] <= tick / 10:
                    found = pending.pop(0)[1]()
                    if asyncio.iscoroutine(found):
                        await found
                valid = "".join(name for name in self.names if self.leases[name].valid())
                assert len(valid) < 2, f"two leaders at {tick / 10}"
                self.history.append(valid)
                await asyncio.sleep(0.1)
            for task in self.tasks.values():
                task.cancel()

        run(test)
        return self

    def spans(self):
        """Who led from when to when, in seconds."""
        found = []
        for tick, who in enumerate(self.history):
            if not found or found[-1][0] != who:
                found.append([who, tick / 10, tick / 10])
            found[-1][2] = tick / 10
        return [(who, begin, end) for who, begin, end in found if who]


def test_one_of_two_leads_for_ever():
    contest = Contest(Server()).run()
    assert len(contest.spans()) == 1
    assert contest.server.record["spec"]["holderIdentity"] == contest.spans()[0][0]
    assert contest.server.record["spec"]["leaseDurationSeconds"] == 15


@pytest.mark.parametrize("trouble", ["hangs", "down", "mute"])
def test_a_leader_that_is_cut_off_stops_in_time_and_the_other_takes_over(trouble):
    """Even where its renewals take effect unheard: it cannot know."""
    server = Server()
    contest = Contest(server, "ab")
    contest.run((20, lambda: server.trouble.update({contest.spans()[0][0]: trouble})))
    first, second, *_ = contest.spans()
    assert 27 <= first[2] <= 30.1
    if trouble != "mute":
        assert 33 <= second[1] <= 20 + 15 + 2 * 2.2 + 1
    assert contest.told[first[0]][:2] == [True, False]


def test_a_leader_that_dies_is_followed():
    contest = Contest(Server(), "ab")
    contest.run((20, lambda: contest.tasks[contest.spans()[0][0]].cancel("dies")))
    first, second = contest.spans()
    assert second[0] != first[0]
    assert second[1] <= 20 + 15 + 2 * 2.2 + 1


def test_a_released_lease_is_taken_at_once():
    contest = Contest(Server(), "ab")

    async def leave():
        name = contest.spans()[0][0]
        await contest.leases[name].release()
        assert not contest.leases[name].valid()
        contest.tasks[name].cancel()

    contest.run((20, leave))
    first, second = contest.spans()
    assert second[0] != first[0]
    assert second[1] <= 20 + 2 * 2.2 + 1.5
    assert contest.server.record["spec"]["leaseTransitions"] == 1


def test_a_renewal_does_not_change_when_it_was_acquired():
    server = Server()
    Contest(server, "a").run(seconds=30)
    spec = server.record["spec"]
    assert spec["acquireTime"] < spec["renewTime"]
    assert spec["leaseTransitions"] == 0


def test_a_lease_that_is_taken_away_ends_leadership_at_once():
    server = Server()

    def steal():
        server.version += 1
        server.record["metadata"]["resourceVersion"] = str(server.version)
        server.record["spec"]["holderIdentity"] = "someone"

    contest = Contest(server, "a").run((20, steal))
    assert contest.spans()[0][2] <= 20 + 2 * 2.1 + 0.1
    assert contest.told["a"] == [True, False]


def test_periods_are_those_of_the_configuration():
    server = Server()
    quick = LeaderElection(True, timedelta(seconds=6), timedelta(seconds=4), timedelta(seconds=1), "leases", "mine", "there")

    async def test():
        paths = []

        class Client:
            async def request(self, request):
                paths.append(request.path)
                return refusal(404) if request.method == "GET" else server.serve(request)

        lease = Lease(Seat(quick, "x"), Client(), clock(), Notebook())
        task = asyncio.create_task(lease.run(lambda _: None))
        await asyncio.sleep(0.1)
        assert lease.valid()
        task.cancel()
        return paths

    assert run(test)[0] == "/apis/coordination.k8s.io/v1/namespaces/there/leases/mine"
    assert server.record["spec"]["leaseDurationSeconds"] == 6


def stands_still(seconds):
    """The event loop gets no turn for so long."""
    asyncio.get_running_loop().now += seconds


@pytest.mark.parametrize("seconds", [9, 12, 14])
def test_a_leader_that_stood_still_goes_on_if_nobody_else_has_led(seconds):
    contest = Contest(Server(), "a").run((20.5, lambda: stands_still(seconds)), seconds=60)
    assert contest.told["a"][:1] == [True]
    assert contest.history[-1] == "a"
    assert contest.server.record["spec"]["leaseTransitions"] == 0


def test_it_may_not_act_before_it_knows():
    """Beyond the deadline nothing is valid until the server has said so."""
    server = Server()
    contest = Contest(server, "a")
    seen = []

    def happen():
        stands_still(12)
        seen.append(contest.leases["a"].valid())

    contest.run((20.5, happen), (33, lambda: server.trouble.update({"a": "hangs"})), seconds=60)
    assert seen == [False]
    assert contest.told["a"][:2] == [True, False]


def test_a_leader_that_stood_still_too_long_finds_another():
    server = Server()
    contest = Contest(server, "a")

    def happen():
        stands_still(20)
        spec = server.record["spec"]
        server.version += 1
        changed = {**spec, "holderIdentity": "b", "leaseTransitions": 1}
        metadata = {**server.record["metadata"], "resourceVersion": str(server.version)}
        server.record = {**server.record, "metadata": metadata, "spec": changed}

    contest.run((20.5, happen), seconds=60)
    assert contest.told["a"][:2] == [True, False]
    assert contest.spans()[-1][2] <= 20.6


def test_a_lease_that_another_had_meanwhile_is_lost_though_it_is_free_again():
    server = Server()
    contest = Contest(server, "a")

    def happen():
        stands_still(20)
        server.version += 1
        spec = {**server.record["spec"], "holderIdentity": "", "leaseTransitions": 1}
        server.record = {"metadata": {**server.record["metadata"], "resourceVersion": str(server.version)}, "spec": spec}

    contest.run((20.5, happen), seconds=60)
    assert contest.told["a"][:2] == [True, False]


@pytest.mark.parametrize("seconds", [0.5, 3.0, 6.0])
def test_decisions_that_take_long_do_not_starve_the_lease(seconds):
    """Others get a pause between two of them, and a renewal that is under way is waited for."""
    server, decided = Server(), []

    class Slow:
        def handle(self, event, now):  # noqa: ARG002
            if isinstance(event, Cycle):
                decided.append(asyncio.get_running_loop().time())
                stands_still(seconds)
            return []

        def ready(self, now):  # noqa: ARG002
            return True

        def wake_at(self):
            return None

    async def test():
        driven = Drive(Slow(), server.client("a"), clock(), Settings(seat=Seat(ELECTION, "a"), resources=()), Notebook())
        running = asyncio.create_task(driven.run())
        await asyncio.sleep(200)
        assert driven.leading
        driven.stop()
        await running

    run(test)
    assert len(decided) > 100 / seconds
