import asyncio
import re

import msgspec
import pytest

from stowplan.edge.kube import recorder as recording
from stowplan.edge.kube.recorder import Recorder
from stowplan.edge.kube.texts import event_name, truncated
from stowplan.edge.kube.transport import UnansweredError
from stowplan.loop.effects import Note, Tone
from unit.edge.kube.rig import Notebook, Script, answer, caller, pod, refusal, run

EVENTS = "/apis/events.k8s.io/v1/namespaces/ns/events"


class Server(Script):
    """Keeps Events; `refusing` is what it says instead."""

    def __init__(self):
        super().__init__()
        self.kept, self.refusing, self.times = {}, [], []

    async def _answer(self, request):
        self.times.append((request.method, asyncio.get_running_loop().time()))
        if self.refusing:
            found = self.refusing.pop(0)
            if isinstance(found, Exception):
                raise found
            if found is not None:
                return found
        body = msgspec.json.decode(request.body)
        if request.method == "POST":
            name = body["metadata"]["name"]
            if name in self.kept:
                return refusal(409)
            self.kept[name] = body
        else:
            name = request.path.rpartition("/")[2]
            if name not in self.kept:
                return refusal(404)
            self.kept[name] |= body
        return answer(201, self.kept[name])


def record(server, *notes, width=4, seconds=2000):
    """Have notes taken at the given times; the notebook of what became of them."""
    notebook = Notebook()

    async def test():
        async with asyncio.TaskGroup() as group:
            recorder = Recorder(caller(server, width=width, observer=notebook), "stowplan-host", group.create_task)
            running = group.create_task(recorder.run())
            for at, note in notes:
                await asyncio.sleep(at - asyncio.get_running_loop().time())
                recorder.take(note)
            if seconds:
                await asyncio.sleep(seconds)
            else:
                await recorder.drain(5)
            running.cancel()

    run(test)
    return notebook


def failed(text="no room", who=None):
    return Note(who or pod(), "FailedScheduling", "Scheduling", text, Tone.WARNING)


def told(server):
    """Texts and counts of the Events."""
    return [(event["note"], event.get("series", {}).get("count", 1)) for event in server.kept.values()]


def test_an_event_says_who_saw_what():
    server = Server()
    victim = pod("v", "u9")
    record(server, (0, Note(victim, "Preempted", "Preempting", "Preempted by pod u1 on node n1", related=pod())))
    (event,) = server.kept.values()
    assert event["metadata"]["name"].startswith("v.")
    assert event["eventTime"] == "2027-01-15T08:00:00.000000Z"
    del event["metadata"], event["eventTime"]
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "type": "Normal",
        "reason": "Preempted",
        "action": "Preempting",
        "note": "Preempted by pod u1 on node n1",
        "reportingController": "default-scheduler",
        "reportingInstance": "stowplan-host",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "v", "uid": "u9"},
        "related": {"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "a", "uid": "u1"},
    }


def test_repetitions_are_counted_and_the_last_one_is_never_lost():
    server = Server()
    record(server, *((at / 10, failed()) for at in range(900)))
    assert told(server) == [("no room", 900)]
    assert len(server.requests) < 8
    (event,) = server.kept.values()
    assert event["series"]["lastObservedTime"] == "2027-01-15T08:01:29.900000Z"


def test_who_says_something_else_is_heard():
    """At once what is said first, then at most one change in ten seconds, the newest."""
    server = Server()
    record(server, *((at, failed(f"text {at}")) for at in range(5)))
    assert told(server) == [("text 0", 1), ("text 4", 1)]
    assert [round(time) for _, time in server.times] == [0, 10]


def test_pods_and_reasons_have_events_of_their_own():
    server = Server()
    record(server, (0, failed()), (0, failed(who=pod("b", "u2"))), (0, Note(pod(), "Scheduled", "Binding", "there")))
    assert len(server.kept) == 3


def test_what_was_said_long_ago_is_news():
    server = Server()
    record(server, (0, failed()), (1000, failed()))
    assert told(server) == [("no room", 1), ("no room", 1)]


def test_a_series_that_has_expired_begins_anew():
    server = Server()
    notebook = record(server, (0, failed()), (5, failed()), seconds=1)
    assert notebook.notes == ["sent", "aggregated"]
    server.refusing = [None, refusal(404)]
    server.kept.clear()
    record(server, (0, failed()), (5, failed()))
    assert [method for method, _ in server.times][-3:] == ["POST", "PATCH", "POST"]


TERMINATED = refusal(403, "events is forbidden: unable to create new content in namespace ns because it is being terminated")


@pytest.mark.parametrize("refused", [refusal(404), TERMINATED])
def test_a_namespace_that_is_gone_is_no_error(refused):
    server = Server()
    server.refusing = [refused]
    notebook = record(server, (0, failed()))
    assert notebook.notes == ["dropped"]
    assert notebook.failures == []
    assert len(server.times) == 1


@pytest.mark.parametrize("trouble", [refusal(500), refusal(403), UnansweredError("time ran out")])
def test_a_server_in_trouble_hears_of_it_later(trouble):
    """An API server that has just begun does not know yet who may what: 403 passes as well."""
    server = Server()
    server.refusing = [trouble] * 6
    notebook = record(server, (0, failed()))
    assert told(server) == [("no room", 1)]
    assert notebook.failures == []


def test_an_event_that_cannot_be_written_is_lost_and_told():
    server = Server()
    server.refusing = [refusal(403)] * 99
    notebook = record(server, (0, failed()), seconds=5000)
    assert notebook.notes == ["failed"]
    assert notebook.failures == [("Event", "no")]
    assert len(server.times) == 13


def test_an_event_that_makes_no_sense_is_not_tried_again():
    server = Server()
    server.refusing = [refusal(422)]
    assert record(server, (0, failed())).notes == ["failed"]
    assert len(server.times) == 1


def test_an_event_whose_answer_was_lost_is_there_once():
    server = Server()
    serve = server._answer

    async def losing(request):
        answer = await serve(request)
        if len(server.times) == 1:
            raise UnansweredError("time ran out")
        return answer

    server._answer = losing
    notebook = record(server, (0, failed()))
    assert len(server.kept) == 1
    assert notebook.notes == ["sent"]


def test_events_are_bounded():
    server = Server()
    record(server, *((0, failed(who=pod(f"p{i}", f"u{i}"))) for i in range(100)), width=3)
    assert len(server.kept) == 100
    assert server.most <= 3


def test_at_the_end_what_was_not_said_is_said():
    server = Server()
    record(server, *((0, failed(who=pod(f"p{i}", f"u{i}"))) for i in range(50)), seconds=0)
    assert len(server.kept) == 50


def test_long_notes_are_cut_by_bytes():
    assert truncated("x" * 1024) == "x" * 1024
    assert truncated("x" * 1025) == "x" * 1020 + " ..."
    cut = truncated("ä" * 600)
    assert cut == "ä" * 510 + " ..."
    assert len(truncated("x" + "ä" * 600).encode()) <= 1024


VALID = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@pytest.mark.parametrize(
    "name", ["a", "a" * 236, "a" * 237, "a" * 253, "a." * 126 + "a", "a-" * 126 + "a", "a" * 235 + "-.b", "a" * 236 + "..b"]
)
def test_names_of_events_are_valid(name):
    server = Server()
    record(server, (0, failed(who=pod(name))), (0, failed(who=pod(name, "u2"))), (20, failed("text 2", pod(name))))
    assert len(server.kept) == 3
    for found in server.kept:
        assert len(found) <= 253
        assert VALID.fullmatch(found)
        assert found.startswith(name[:200])


def test_names_of_events_are_upstreams_where_those_are_valid():
    assert event_name("web-7d9", 0x18D5F0) == "web-7d9.18d5f0"
    assert event_name("a" * 246, 0x18D5F0) == "a" * 246 + ".18d5f0"
    assert event_name("a" * 247, 0x18D5F0) == "a" * 246 + ".18d5f0"


def test_news_goes_before_what_has_been_written(monkeypatch):
    """More pods than are remembered, each with news: none is dropped once the others are written."""
    monkeypatch.setattr(recording, "MOST", 20)
    server = Server()
    notebook = record(server, *((number / 10, failed(who=pod(f"p{number}", f"u{number}"))) for number in range(100)))
    assert len(server.kept) == 100
    assert "dropped" not in notebook.notes


def test_what_waits_to_be_written_is_bounded(monkeypatch):
    monkeypatch.setattr(recording, "MOST", 20)
    server = Server()
    notebook = record(server, *((0, failed(who=pod(f"p{number}", f"u{number}"))) for number in range(100)))
    assert (len(server.kept), notebook.notes.count("dropped")) == (20, 80)
