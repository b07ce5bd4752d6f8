from __future__ import annotations

import pytest

from stowplan.edge.journal import Result
from stowplan.edge.load import load_policy
from stowplan.loop.effects import Bind, Consult, Prepare
from stowplan.loop.events import Bound, Cycle, Failure, NotBound, PodGone, PolicyChanged, Prepared
from unit.edge.watched import Listening, scene


@pytest.fixture
def heard():
    return Listening()


def test_a_pod_that_is_bound(heard):
    watched = scene(heard).start("node n1 cpu=4\nnode n2 cpu=4\npod a cpu=1")
    watched.run()
    (attempt,) = heard.attempts
    assert (attempt.pod.name, attempt.result, attempt.node) == ("a", Result.SCHEDULED, watched.where()["a"])
    assert (attempt.number, attempt.feasible, attempt.thought) == (1, 2, 0.25)
    assert (attempt.since, attempt.started) == (1000.0, 1000.0)


def test_waiting_counts_until_the_answer_comes(heard):
    watched = scene(heard, answers=False).start("node n1 cpu=4\npod a cpu=1")
    watched.run()
    assert heard.attempts == []
    bind = watched.of(Bind)[0]
    watched.now += 7
    watched.handle(Bound(bind.pod.key, bind.pod.uid))
    assert (heard.attempts[0].started, heard.attempts[0].ended) == (1000.0, 1007.0)


def test_a_pod_that_fits_nowhere_is_tried_again(heard):
    watched = scene(heard).start("node n1 cpu=1\npod a cpu=2")
    watched.run()
    first = heard.attempts[-1]
    assert (first.result, first.number, first.node, first.feasible) == (Result.UNSCHEDULABLE, 1, "", 0)
    assert "Insufficient cpu" in first.message
    watched.now += 60
    watched.show("node n2 cpu=4")
    watched.run(60)
    last = heard.attempts[-1]
    assert (last.result, last.number, last.node, last.since) == (Result.SCHEDULED, 2, "n2", 1000.0)


def test_refused_bindings_are_errors_of_the_same_attempt(heard):
    watched = scene(heard, answers=False).start("node n1 cpu=4\npod a cpu=1")
    watched.run()
    bind = watched.of(Bind)[0]
    watched.handle(NotBound(bind.pod.key, bind.pod.uid, Failure.REFUSED, "quota"))
    (attempt,) = heard.attempts
    assert (attempt.result, attempt.number, attempt.failure, attempt.message) == (Result.ERROR, 1, Failure.REFUSED, "quota")
    watched.run(60)
    bind = watched.of(Bind)[1]
    watched.handle(Bound(bind.pod.key, bind.pod.uid))
    assert [(each.result, each.number) for each in heard.attempts[1:]] == [(Result.SCHEDULED, 2)]


@pytest.mark.parametrize("failure", [Failure.GONE, Failure.ELSEWHERE])
def test_pods_of_others_end_the_attempt(heard, failure):
    watched = scene(heard, answers=False).start("node n1 cpu=4\npod a cpu=1")
    watched.run()
    bind = watched.of(Bind)[0]
    watched.handle(NotBound(bind.pod.key, bind.pod.uid, failure, "not ours"))
    assert [(each.result, each.failure) for each in heard.attempts] == [(Result.ERROR, failure)]


def test_a_binding_that_nobody_can_tell_about_is_one_attempt(heard):
    watched = scene(heard, answers=False).start("node n1 cpu=4\npod a cpu=1")
    watched.run()
    bind = watched.of(Bind)[0]
    watched.handle(NotBound(bind.pod.key, bind.pod.uid, Failure.UNKNOWN, "no answer"))
    assert heard.attempts == []
    watched.run(30)
    assert len(watched.of(Bind)) == 2
    watched.handle(Bound(bind.pod.key, bind.pod.uid))
    assert [(each.result, each.number, each.started) for each in heard.attempts] == [(Result.SCHEDULED, 1, 1000.0)]


def test_a_pod_deleted_before_it_is_prepared_leaves_nothing(heard):
    watched = scene(heard, answers=False).start("node n1 cpu=4\npod a cpu=1")
    watched.run()
    watched.delete("Pod", "default/a")
    assert [each.failure for each in heard.attempts] == [Failure.GONE]
    assert watched.loop.journal._flying == {}


def test_preparing_is_part_of_the_attempt(heard):
    text = """
node n1 cpu=4
pod a cpu=1
"""
    watched = scene(heard, answers=False).start(text)
    pod = watched.loop.ledger.store.pending["default/a"]
    journal = watched.loop.journal
    journal.handled(Cycle(), [Prepare(pod, "n1", ())], 1000.0, 0.5)
    journal.handled(Prepared(pod.key, pod.uid), [Bind(pod, "n1")], 1003.0, 0.1)
    watched.loop.ledger.flights.by_uid.clear()
    journal.handled(NotBound(pod.key, pod.uid, Failure.GONE, ""), [], 1004.0, 0.1)
    (attempt,) = heard.attempts
    assert (attempt.started, attempt.decided, attempt.prepared, attempt.ended) == (1000.0, 1000.5, 1003.0, 1004.0)


def test_preemption(heard):
    watched = scene(heard).start("node n1 cpu=2\npod small cpu=2 priority=1 on=n1\npod big cpu=2 priority=10")
    watched.run(60)
    assert heard.preemptions == [("big", "n1", ["small"])]
    first, last = heard.attempts
    assert (first.result, first.node, first.preempted, first.victims) == (Result.UNSCHEDULABLE, "n1", True, 1)
    assert (last.result, last.number, last.preempted) == (Result.SCHEDULED, 2, False)


def test_policies(heard):
    watched = scene(heard).start("node n1 cpu=4")
    watched.handle(PolicyChanged(load_policy(), 5))
    watched.show("pod a cpu=1")
    watched.run()
    assert heard.policies == [(5, 0.25, 1000.0)]
    assert heard.attempts[0].generation == 5


def test_nothing_is_kept_of_what_has_ended(heard):
    watched = scene(heard).start("node n1 cpu=100\nnode n2 cpu=2\n" + "\n".join(f"pod p{i} cpu=1" for i in range(20)))
    watched.run(60)
    assert len(heard.attempts) == 20
    assert watched.loop.journal._flying == {}


def test_nothing_is_kept_of_pods_that_extenders_never_answer_about(heard):
    watched = scene(heard, answers=False).start("node n1 cpu=4\npod a cpu=1")
    pod = watched.loop.ledger.store.pending["default/a"]
    journal = watched.loop.journal
    journal.handled(Cycle(), [Consult(pod, (), ("n1",))], 1000.0, 0.5)
    assert journal._asked
    journal.handled(PodGone(pod.key, pod.uid), [], 1001.0, 0.1)
    assert journal._asked == {}
