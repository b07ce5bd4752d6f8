import asyncio

import pytest

from stowplan.edge.kube.transport import UnansweredError, UnsentError
from stowplan.edge.kube.writer import Help, Writer
from stowplan.loop.effects import Bind, Denominate, Evict, Mark, Why
from stowplan.loop.events import Bound, Evicted, Failure, NotBound
from unit.edge.kube.rig import Notebook, Script, answer, caller, pod, pod_object, refusal, run

POD = "/api/v1/namespaces/ns/pods/a"
BIND, STATUS = f"{POD}/binding", f"{POD}/status"


class Nothing:
    """Nothing to prepare; notes what would be undone."""

    def __init__(self):
        self.undone = []

    async def undo(self, pod):
        self.undone.append(pod.uid)

    def bound(self, pod):
        pass


def carry_out(script, *effects, seconds=1e4, may_write=lambda: True, pause=0.0, width=64):
    """Answers to effects that are taken one after the other, and everything else one may want to know."""
    answers, notebook, nothing = [], Notebook(), Nothing()

    async def test():
        async with asyncio.TaskGroup() as group:
            calls = caller(script, may_write=may_write, observer=notebook, width=width)
            writer = Writer(Help(calls, calls, nothing, None), answers.extend, group.create_task)
            for effect in effects:
                writer.take(effect)
                await asyncio.sleep(pause)
            await asyncio.sleep(seconds)
            await writer.drain(60)

    run(test)
    notebook.undone = nothing.undone
    return answers, notebook


def bind(*answers, look=(), **how):
    script = Script().on("POST", BIND, *answers)
    if look:
        script.on("GET", POD, *look)
    found, notebook = carry_out(script, Bind(pod(), "n1"), **how)
    assert len(found) == 1, "exactly one answer"
    return found[0], script, notebook


def not_bound(failure, message="no"):
    if failure is Failure.REFUSED:
        message = f'running Bind plugin "DefaultBinder": {message}'
    return NotBound("ns/a", "u1", failure, message)


BOUND = Bound("ns/a", "u1")
UNBOUND = answer(200, pod_object())
HERE, THERE = answer(200, pod_object(node="n1")), answer(200, pod_object(node="n2"))
RECREATED = answer(200, pod_object(uid="u2"))


def test_a_binding_names_the_pod_by_uid():
    event, script, _ = bind(answer(201))
    assert event == BOUND
    assert script.sent("POST") == [
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": "ns", "name": "a", "uid": "u1"},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
        }
    ]


@pytest.mark.parametrize(
    ("look", "expected"),
    [
        (HERE, BOUND),
        (THERE, not_bound(Failure.ELSEWHERE)),
        (RECREATED, not_bound(Failure.GONE)),
        (refusal(404), not_bound(Failure.GONE)),
        (UNBOUND, not_bound(Failure.REFUSED)),
    ],
    ids=["here", "there", "recreated", "gone", "unbound"],
)
def test_after_a_conflict_the_pod_itself_is_asked(look, expected):
    event, script, _ = bind(refusal(409), look=[look])
    assert event == expected
    assert len(script.sent("POST")) == 1


def test_an_unanswered_bind_that_took_effect_is_a_success():
    event, script, notebook = bind(UnansweredError("time ran out"), refusal(409), look=[HERE])
    assert event == BOUND
    assert not notebook.failures
    assert len(script.sent("POST")) == 1


def test_an_unanswered_bind_without_effect_is_repeated_on_the_same_node():
    """Its first writing may still be on its way: another node would be a bet."""
    event, script, _ = bind(UnansweredError("time ran out"), answer(201), look=[UNBOUND])
    assert event == BOUND
    assert [body["target"]["name"] for body in script.sent("POST")] == ["n1", "n1"]


def test_a_bind_that_is_never_answered_is_refused_in_the_end():
    event, script, _ = bind(UnansweredError("time ran out"), look=[UNBOUND])
    assert event == not_bound(Failure.REFUSED, "time ran out")
    assert len(script.sent("POST")) == 3


def test_lookups_go_on_until_there_is_an_answer():
    looks = [UnsentError("down")] * 20 + [THERE]
    event, _, notebook = bind(refusal(409), look=looks)
    assert event == not_bound(Failure.ELSEWHERE)
    assert len(notebook.failures) == 20


def test_only_at_the_end_nobody_knows():
    event, _, _ = bind(refusal(409), look=[UnsentError("down")], seconds=100)
    assert event == not_bound(Failure.UNKNOWN)


def test_a_missing_pod_is_gone():
    assert bind(refusal(404))[0] == not_bound(Failure.GONE)


@pytest.mark.parametrize("status", [400, 403, 422])
def test_a_refusal_is_final(status):
    event, script, notebook = bind(refusal(status))
    assert event == not_bound(Failure.REFUSED)
    assert len(script.requests) == 1
    assert notebook.undone == ["u1"]


def test_a_server_out_of_reach_is_tried_four_times():
    event, script, _ = bind(UnsentError("refused"))
    assert event == not_bound(Failure.REFUSED, "refused")
    assert len(script.requests) == 4


def test_too_many_requests_are_answered_by_patience():
    times = []

    def busy(_):
        times.append(asyncio.get_running_loop().time())
        return answer(201) if len(times) == 3 else refusal(429, retry_after=7)

    assert bind(busy)[0] == BOUND
    assert times[1] - times[0] >= 7
    assert times[2] - times[1] >= 7


def test_nobody_waits_for_a_day():
    times = []

    def busy(_):
        times.append(asyncio.get_running_loop().time())
        return answer(201) if len(times) == 2 else refusal(429, retry_after=86400)

    assert bind(busy)[0] == BOUND
    assert times[1] - times[0] < 60


def test_a_server_error_may_hide_a_success():
    event, script, _ = bind(refusal(500), look=[HERE])
    assert event == BOUND
    assert len(script.sent("POST")) == 1


def test_nothing_is_sent_without_leave():
    event, script, _ = bind(answer(201), may_write=lambda: False)
    assert event.failure is Failure.REFUSED
    assert script.requests == []


def test_leave_is_asked_for_before_every_attempt():
    leave = iter([True, True])
    event, script, _ = bind(UnsentError("refused"), may_write=lambda: next(leave, False))
    assert event.failure is Failure.REFUSED
    assert len(script.requests) == 2


def test_writes_are_bounded_and_pods_do_not_wait_for_each_other():
    script, pods = Script(), [pod(f"p{i}", f"u{i}") for i in range(40)]
    for each in pods:
        script.on("POST", f"/api/v1/namespaces/ns/pods/{each.name}/binding", answer(201))
    answers, _ = carry_out(script, *(Bind(each, "n1") for each in pods), width=10)
    assert {event.uid for event in answers} == {each.uid for each in pods}
    assert script.most == 10


# Marks


def marked(effect, *more, script=None, **how):
    script = script or Script().on("PATCH", STATUS, answer(200))
    carry_out(script, effect, *more, **how)
    return script.sent("PATCH")


def failed(message="m", nominated=None, **look):
    return Mark(pod(**look), Why.UNSCHEDULABLE, message, nominated)


CONDITION = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}
WAITING = {"conditions": [{**CONDITION, "lastTransitionTime": "2026-01-01T00:00:00Z"}], "nominatedNodeName": "n7"}


def test_a_first_mark_is_a_whole_condition():
    (body,) = marked(failed(metadata={"generation": 3}))
    assert body == {
        "metadata": {"uid": "u1"},
        "status": {
            "conditions": [
                {**CONDITION, "lastProbeTime": None, "lastTransitionTime": "2027-01-15T08:00:00Z", "observedGeneration": 3}
            ]
        },
    }


def test_what_the_pod_says_already_is_not_written():
    assert marked(failed(status=WAITING)) == []
    assert marked(failed(status=WAITING, nominated="n7", metadata={"generation": 4})) == []


def test_a_new_message_does_not_move_the_transition():
    (body,) = marked(failed("other", status=WAITING))
    assert body["status"] == {"conditions": [{**CONDITION, "message": "other"}]}


@pytest.mark.parametrize(("nominated", "written"), [("n1", "n1"), ("", None)])
def test_a_nomination_is_written_alone_where_it_alone_is_new(nominated, written):
    (body,) = marked(failed(status=WAITING, nominated=nominated))
    assert body["status"] == {"nominatedNodeName": written}


def test_marks_that_wait_become_one_which_keeps_the_nomination():
    effects = [failed("first"), failed("second", "n1"), failed("third")]
    assert [body["status"] for body in marked(*effects)][1:] == [
        {"conditions": [{**CONDITION, "message": "third", "lastProbeTime": None, "lastTransitionTime": "2027-01-15T08:00:00Z"}],
         "nominatedNodeName": "n1"}
    ]  # fmt: skip


def test_a_mark_is_never_overtaken():
    script = Script().on("PATCH", STATUS, refusal(500), answer(200)).on("POST", BIND, answer(201))
    carry_out(script, failed(), Bind(pod(), "n1"), failed("later"))
    assert [request.method for request in script.requests] == ["PATCH", "PATCH", "POST", "PATCH"]


def test_what_was_written_counts_before_the_watch_says_so():
    """A nomination that was cleared is given again, though the pod as last seen has it."""
    cleared = answer(200, pod_object(version="6", status={**WAITING, "nominatedNodeName": ""}))
    script = Script().on("PATCH", STATUS, cleared)
    effects = [Denominate(pod(status=WAITING)), failed(status=WAITING, nominated="n7")]
    assert [body["status"] for body in marked(*effects, script=script)] == [
        {"nominatedNodeName": None},
        {"nominatedNodeName": "n7"},
    ]


def test_a_pod_that_was_recreated_is_left_alone():
    script = Script().on("PATCH", STATUS, refusal(409))
    _, notebook = carry_out(script, failed())
    assert len(script.requests) == 1
    assert not notebook.failures


# Evictions


def eviction(*victims):
    return Evict(pod(), "n1", victims)


def victim(name, **look):
    return pod(name, f"uid-{name}", node="n1", **look)


def test_the_last_victim_is_deleted_when_all_others_are():
    script = Script()
    for name in "xyz":
        script.on("PATCH", f"/api/v1/namespaces/ns/pods/{name}/status", answer(200))
        script.on("DELETE", f"/api/v1/namespaces/ns/pods/{name}", answer(200))
    answers, _ = carry_out(script, eviction(victim("x"), victim("y"), victim("z")))
    assert answers == [Evicted("ns/a", "u1")]
    names = [request.path.split("/")[6] for request in script.requests]
    assert names.index("z") == 4
    assert script.sent("DELETE", past="x")[0]["preconditions"] == {"uid": "uid-x"}
    (condition,) = script.sent("PATCH", past="x/status")[0]["status"]["conditions"]
    assert condition["message"] == "default-scheduler: preempting to accommodate a higher priority pod"
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "PreemptionByScheduler")


def test_victims_that_go_or_are_gone_are_left_alone():
    going = victim("x", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    script = Script().on("PATCH", "/api/v1/namespaces/ns/pods/y/status", refusal(404))
    script.on("PATCH", "/api/v1/namespaces/ns/pods/z/status", refusal(409))
    answers, _ = carry_out(script, eviction(going, victim("y"), victim("z")))
    assert answers == [Evicted("ns/a", "u1")]
    assert {request.method for request in script.requests} == {"PATCH"}


def test_a_victim_that_cannot_be_deleted_saves_the_last_one():
    script = Script()
    for name in "xyz":
        script.on("PATCH", f"/api/v1/namespaces/ns/pods/{name}/status", answer(200))
        script.on("DELETE", f"/api/v1/namespaces/ns/pods/{name}", refusal(403, "forbidden") if name == "x" else answer(200))
    answers, _ = carry_out(script, eviction(victim("x"), victim("y"), victim("z")))
    assert answers == [Evicted("ns/a", "u1", "could not delete pod ns/x: forbidden")]
    assert not any("/z" in request.path for request in script.requests)


def test_a_preemptor_is_marked_while_its_victims_go():
    async def slow(_):
        await asyncio.sleep(50)
        return answer(200)

    script = Script().on("PATCH", STATUS, answer(200))
    script.on("PATCH", "/api/v1/namespaces/ns/pods/x/status", slow).on("DELETE", "/api/v1/namespaces/ns/pods/x", answer(200))
    carry_out(script, eviction(victim("x")), failed())
    assert [request.path for request in script.requests][:2] == ["/api/v1/namespaces/ns/pods/x/status", STATUS]
