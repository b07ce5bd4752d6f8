"""The simulation can fail: each bug that is built in here is found by one of the first seeds, or by one scripted scenario."""

import itertools
from dataclasses import replace

import msgspec
import pytest

from controlplane.objects import node, pod
from simulation.faults import Fault
from simulation.generate import generate
from simulation.run import run
from simulation.scenario import Scenario, Step
from stowplan import load_policy
from stowplan.edge.kube import lease, pods, reflector, writer
from stowplan.edge.kube.calls import Caller
from stowplan.edge.policies import examine, files
from stowplan.edge.policies.clerk import Clerk
from stowplan.edge.policies.configmap import PolicyConfigMap
from stowplan.edge.policies.examine import Checked
from stowplan.edge.policies.keeper import Keeper
from stowplan.loop import attempts, bindings, failures
from stowplan.loop.events import NotBound
from stowplan.loop.ledger import Ledger
from stowplan.loop.requeue import Requeue
from stowplan.loop.waiting import SchedulingQueue
from stowplan.state import Store

pytestmark = pytest.mark.slow
SEEDS = 60


@pytest.fixture
def found(monkeypatch):
    """Finds the first violation, with what is added to the scenarios of the seeds; without the mutation there is none."""

    def search(*faults, steps=(), **changes) -> str:
        for seed in range(SEEDS):
            made = generate(seed)
            scenario = replace(made, faults=(*faults, *made.faults), steps=(*made.steps, *steps), **changes)
            violation = run(scenario, keep_trace=False).violation
            if violation:
                monkeypatch.undo()
                assert run(scenario, keep_trace=False).violation == ""
                return violation
        return ""

    return search


def without_uid(pod, node):
    request = ORIGINAL_BINDING(pod, node)
    body = msgspec.json.decode(request.body)
    del body["metadata"]["uid"]
    return replace(request, body=msgspec.json.encode(body))


ORIGINAL_BINDING = pods.binding


def test_binding_without_uid(found, monkeypatch):
    monkeypatch.setattr(pods, "binding", without_uid)
    assert "what was decided for it: nothing" in found(Fault("recreate", "bind", begin=5.0, count=2))


def test_a_loop_that_forgets_to_assume(found, monkeypatch):
    original = bindings.depart

    def depart(ledger, entry, node, facts, now):
        effects = original(ledger, entry, node, facts, now)
        ledger.store.set_pod(entry.pod)
        return effects

    monkeypatch.setattr(attempts, "depart", depart)
    assert "is over-committed" in found()


def test_an_assumed_pod_that_is_forgotten_too_early(found, monkeypatch):
    """As with an assumption that expires: the watch may be slow."""
    original = bindings.bound

    def bound(ledger, answer, *more):
        flight = ledger.flights.by_uid.get(answer.uid)
        effects = original(ledger, answer, *more)
        if flight is not None and answer.uid in ledger.flights.by_uid:
            ledger.store.remove_pod(flight.pod.key)
        return effects

    monkeypatch.setattr(bindings, "bound", bound)
    assert "is over-committed" in found(Fault("slow", "watch", end=55.0, plural="pods", seconds=4.0))


def test_a_reflector_that_skips_deletions(found, monkeypatch):
    original = reflector.Reflector._changed

    def changed(self, deleted, *more):
        return None if deleted else original(self, deleted, *more)

    monkeypatch.setattr(reflector.Reflector, "_changed", changed)
    assert "knows otherwise" in found()


def test_a_new_list_that_is_not_compared_with_what_was_known(found, monkeypatch):
    original = reflector.Reflector._replace

    def replace_(self, found_):
        self._known = {key: known for key, known in self._known.items() if key in found_}
        original(self, found_)

    monkeypatch.setattr(reflector.Reflector, "_replace", replace_)
    steps = [Step(float(at), "disturb", {"how": "gone"}) for at in range(10, 60, 5)]
    assert "after quiet time" in found(steps=steps)


def test_a_watch_whose_silence_is_not_noticed(found, monkeypatch):
    monkeypatch.setattr(reflector, "SILENCE", 1e9)
    assert "is still on its way" in found()


def test_a_watch_that_takes_no_notice_of_410(found, monkeypatch):
    monkeypatch.setattr(reflector, "GONE", 499)
    monkeypatch.setattr(reflector, "GIVE_UP", 10**9)
    assert "after quiet time" in found()


def test_a_lease_that_ignores_its_deadline(found, monkeypatch):
    async def hold(self):
        while self.holder in ("", self._seat.identity):
            await self._attempt()
            await reflector.asyncio.sleep(self._seat.retry_seconds)

    monkeypatch.setattr(lease.Lease, "valid", lambda self: self._until > lease.NEVER)
    monkeypatch.setattr(lease.Lease, "_hold", hold)
    assert "holds the lease" in found(Fault("refused", "lease", 5.0, 40.0, 10**6, process=0), replicas=2)


def test_writes_that_do_not_ask_for_leave(monkeypatch):
    """Of a process that was paused and goes on where it was: what it was about to say is still said."""
    original = Caller.once

    async def once(self, request):
        return await original(replace(self, may_write=lambda: True), request)

    monkeypatch.setattr(Caller, "once", once)
    steps = [Step(0.0, "create", {"item": node("n1")})]
    steps += [Step(19.9, "create", {"item": pod(f"p{number}", schedulerName="stow")}) for number in range(10)]
    refusing = (Fault("500", "bind", 19.8, 20.0, 100),)
    violations = []
    for seed, process in itertools.product(range(6), range(2)):  # one leads, and may be about to write
        frozen = Step(20.0, "freeze", {"process": process, "seconds": 25.0})
        violations.append(run(Scenario(seed, (*steps, frozen), refusing, replicas=2), keep_trace=False).violation)
    assert "holds the lease" in "".join(violations)


def test_a_pod_without_answer_is_taken_for_unbound(found, monkeypatch):
    async def look(*_):
        return None

    monkeypatch.setattr(writer.Writer, "_look", look)
    faults = (Fault("unanswered", "bind", end=55.0, count=40), Fault("slow", "watch", end=55.0, plural="pods", seconds=9.0))
    assert "knew to be bound" in found(*faults)


def test_a_refused_pod_that_stays_assumed(found, monkeypatch):
    original = bindings.not_bound

    def not_bound(ledger, answer, now):
        return [] if isinstance(answer, NotBound) else original(ledger, answer, now)

    monkeypatch.setattr(bindings, "not_bound", not_bound)
    assert "on its way" in found(Fault("409", "bind", end=50.0, count=4))


def test_binding_before_the_volumes_are_bound(found, monkeypatch):
    monkeypatch.setattr(bindings, "unbound", lambda *_: [])
    assert "before its claim" in found()


def test_nobody_is_woken_when_pods_leave(found, monkeypatch):
    monkeypatch.setattr(Requeue, "note", lambda *_: None)
    assert "waits, but" in found()


def test_a_pod_that_is_dropped_after_an_error(found, monkeypatch):
    monkeypatch.setattr(SchedulingQueue, "fail", lambda self, entry, _: self.pods.pop(entry.pod.key))
    assert "waits, but fits" in found(Fault("409", "bind", end=50.0, count=4))


def test_columns_that_do_not_follow_pods_that_leave(found, monkeypatch):
    original = Store._count

    def count(self, row, pod, sign):
        if sign > 0 or len(pod.labels) == 0:
            original(self, row, pod, sign)

    monkeypatch.setattr(Store, "_count", count)
    assert "is not what a new one is" in found()


def test_victims_that_are_as_important_as_their_preemptor(found, monkeypatch):
    original = failures._preempt

    def preempt(ledger, entry, node, _, now):
        row = ledger.store.row_of[node]
        return original(ledger, entry, node, tuple(pod for pod in ledger.store.seats[row].values() if pod.node_name), now)

    monkeypatch.setattr(failures, "_preempt", preempt)
    assert "is not more important" in found()


def test_a_bad_policy_that_comes_into_force_as_an_empty_one(found, monkeypatch):
    original = Keeper._reject

    def reject(self, offer, error):
        original(self, offer, error)
        if self.in_force is not None:
            self._accept(offer, Checked(load_policy(None), "0"))

    monkeypatch.setattr(Keeper, "_reject", reject)
    assert "puts a bad policy into force" in found()


def test_a_loop_that_goes_on_with_the_old_chooser(found, monkeypatch):
    """The record says the new generation, the decision is the old policy's."""
    original = Ledger.enforce

    def enforce(self, policy):
        before = getattr(self, "chooser", None)
        original(self, policy)
        self.chooser = before or self.chooser

    monkeypatch.setattr(Ledger, "enforce", enforce)
    zones = [Step(float(at), "edit_policy", {"text": f"zone z{at % 3}"}) for at in range(5, 60, 4)]
    assert "under policy" in found(steps=zones)


def test_a_new_policy_of_which_pods_that_wait_are_not_told(found, monkeypatch):
    monkeypatch.setattr(SchedulingQueue, "activate", unless(SchedulingQueue.activate, "PolicyChanged"))
    assert "waits, but fits" in found()


def unless(activate, why):
    """The queue's `activate`, which does nothing for one reason."""
    return lambda self, entry, now, reason: None if reason == why else activate(self, entry, now, reason)


def test_a_follower_that_never_looks_at_a_second_text(found, monkeypatch):
    original = PolicyConfigMap._saw

    def saw(self, events):
        original(self, events if self._latest is None else [self._latest])

    monkeypatch.setattr(PolicyConfigMap, "_saw", saw)
    assert "after quiet time" in found(mounted="")


def test_a_file_that_is_taken_at_the_first_look(found, monkeypatch):
    monkeypatch.setattr(files, "STILL", 0.0)
    assert "half a policy" in found(mounted="file")


def test_a_follower_of_a_file_that_looks_at_its_size_alone(found, monkeypatch):
    original = files.signature

    def signature(path):
        seen = original(path)
        return None if seen is None else ("", 0, seen[2], 0)

    monkeypatch.setattr(files, "signature", signature)
    zones = [Step(float(at), "edit_policy", {"text": f"zone z{at % 3}"}) for at in range(5, 60, 11)]
    assert "after quiet time" in found(steps=zones, mounted="volume")


def test_refusals_that_are_told_twice_or_never(found, monkeypatch):
    original = Clerk.rejected

    def twice(self, refusal, now):
        original(self, refusal, now)
        original(self, refusal, now)

    monkeypatch.setattr(Clerk, "rejected", twice)
    bad = [Step(20.0, "edit_policy", {"text": "mistyped"})]
    assert "tells 2 times of what it has refused 1 times" in found(steps=bad, mounted="")
    monkeypatch.setattr(Clerk, "rejected", lambda *_: None)
    assert "has not told that it refuses the policy" in found(steps=bad, mounted="")


def test_a_change_that_takes_a_restart_and_is_let_in(found, monkeypatch):
    monkeypatch.setattr(examine, "unchangeable", lambda *_: ())
    assert "puts a bad policy into force: " in found()
