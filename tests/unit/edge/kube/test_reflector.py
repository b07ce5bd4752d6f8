import asyncio
import contextlib
import itertools

import pytest

from stowplan.edge.kube.kinds import RESOURCES
from stowplan.edge.kube.reflector import Reflector
from stowplan.edge.kube.transport import UnansweredError, UnsentError
from stowplan.loop.events import PodChanged, PodGone
from unit.edge.kube.rig import Notebook, Script, answer, clock, encode, line, listed, pod_object, refusal, run

PODS = next(resource for resource in RESOURCES if resource.kind == "Pod")
SLICES = next(resource for resource in RESOURCES if resource.kind == "ResourceSlice")
RULES = next(resource for resource in RESOURCES if resource.kind == "DeviceTaintRule")
BOOKMARK = line("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "99"}})
EXPIRED = line("ERROR", {"kind": "Status", "code": 410, "message": "too old resource version"})


def told(batch):
    """Events in short: what, of whom."""
    return [
        f"{event.pod.name}/{event.pod.uid}{'@' + event.pod.node_name if event.pod.node_name else ''}"
        if isinstance(event, PodChanged)
        else f"-{event.key[3:]}/{event.uid}"
        for event in batch
    ]


def follow(script, seconds=1000.0, resource=PODS):
    """The batches of events that a reflector delivers in that time, and its notebook."""
    batches, notebook = [], Notebook()

    async def test():
        reflector = Reflector(resource, script, lambda events: batches.append(list(events)), clock(), notebook)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await reflector.run()
        notebook.staleness, notebook.synced = reflector.staleness(), reflector.synced.is_set()
        notebook.served = reflector.served

    run(test)
    return batches, notebook


def test_pages_are_one_batch_and_the_watch_goes_on_from_their_version():
    script = Script().on("GET", "/api/v1/pods", listed("10", pod_object("a"), more="t"), listed("10", pod_object("b", "u2")))
    script.streams.append((answer(), [line("ADDED", pod_object("c", "u3", "11")), BOOKMARK, line("DELETED", pod_object("a"))]))
    batches, _ = follow(script, 5)
    assert [told(batch) for batch in batches] == [["a/u1", "b/u2"], ["c/u3"], ["-a/u1"]]
    assert [request.query.get("continue") for request in script.requests] == [None, "t"]
    assert all("status.phase!=Succeeded" in request.query["fieldSelector"] for request in script.requests)
    path, query, _ = script.watched[0]
    assert (path, query["resourceVersion"], query["allowWatchBookmarks"]) == ("/api/v1/pods", "10", "true")


def test_a_bookmark_moves_the_version_on():
    script = Script().on("GET", "/api/v1/pods", listed("10"))
    script.streams.append((answer(), [BOOKMARK]))
    follow(script, 5)
    assert script.watched[1][1]["resourceVersion"] == "99"
    assert len(script.requests) == 1


@pytest.mark.parametrize(
    "ending", [(answer(), [EXPIRED]), (refusal(410), []), (answer(), [BOOKMARK, EXPIRED])], ids=["in stream", "status", "late"]
)
def test_after_410_the_difference_to_a_new_list_is_one_batch(ending):
    """Recreated, bound, deleted, new and unchanged pods."""
    before = [pod_object("a"), pod_object("b", "u2"), pod_object("c", "u3"), pod_object("d", "u4")]
    after = [pod_object("a", "u9", "20"), pod_object("b", "u2", "21", "n1"), pod_object("d", "u4"), pod_object("e", "u5")]
    script = Script().on("GET", "/api/v1/pods", listed("10", *before), listed("30", *after))
    script.streams.append(ending)
    batches, notebook = follow(script, 30)
    assert [told(batch) for batch in batches][1:] == [["-a/u1", "-c/u3", "a/u9", "b/u2@n1", "e/u5"]]
    assert script.watched[1][1]["resourceVersion"] == "30"
    assert "expired" in notebook.watches


def test_silent_closes_lead_to_a_new_list():
    script = Script().on("GET", "/api/v1/pods", listed("10", pod_object("a")), listed("20"))
    script.streams.extend((answer(), []) for _ in range(3))
    batches, _ = follow(script, 60)
    assert [told(batch) for batch in batches] == [["a/u1"], ["-a/u1"]]


def test_a_long_watch_without_news_is_not_suspicious():
    script = Script().on("GET", "/api/v1/pods", listed("10"))
    script.streams.extend((answer(), [70, b"", 70, b"", 70, b"", 70]) for _ in range(5))
    follow(script, 1300)
    assert len(script.requests) == 1


def test_a_half_open_watch_is_dead_after_80_seconds():
    script = Script().on("GET", "/api/v1/pods", listed("10"))
    script.streams.append((answer(), [1e6]))
    _, notebook = follow(script, 100)
    assert 80 < script.watched[1][2] - script.watched[0][2] < 83
    assert notebook.failures == [("Pod", "silence")]


def test_a_token_that_expires_between_pages_starts_over_without_pages():
    script = Script().on(
        "GET", "/api/v1/pods", listed("10", pod_object("a"), more="t"), refusal(410), listed("12", pod_object("b", "u2"))
    )
    batches, _ = follow(script, 30)
    assert [told(batch) for batch in batches] == [["b/u2"]]
    assert [request.query.get("limit") for request in script.requests] == ["500", "500", None]


def test_a_recreated_pod_is_gone_before_it_is_new_and_repetitions_are_no_news():
    script = Script().on("GET", "/api/v1/pods", listed("10", pod_object("a")))
    script.streams.append((answer(), [line("MODIFIED", pod_object("a")), line("ADDED", pod_object("a", "u9", "11"))]))
    batches, _ = follow(script, 5)
    assert [told(batch) for batch in batches][1:] == [["-a/u1", "a/u9"]]


def test_deletion_names_the_uid_that_the_loop_knows():
    script = Script().on("GET", "/api/v1/pods", listed("10", pod_object("a")))
    script.streams.append((answer(), [line("DELETED", pod_object("a", "u9", "12")), line("DELETED", pod_object("zzz"))]))
    batches, _ = follow(script, 5)
    assert batches[1:] == [[PodGone("ns/a", "u1")]]


def test_an_unreadable_object_is_left_as_it_was():
    """What is not understood any more still occupies its node; under another uid it is not what it was."""
    bad = {"resources": {"requests": {"cpu": "much"}}}
    broken = pod_object("a", "u1", "11", "n1", spec={"containers": [{"name": "c", **bad}]})
    recreated = pod_object("a", "u2", "12", spec={"containers": [{"name": "c", **bad}]})
    script = Script().on(
        "GET", "/api/v1/pods", listed("10", pod_object("a", node="n1"), pod_object("b", "u5", spec=broken["spec"]))
    )
    script.streams.append((answer(), [line("MODIFIED", broken), line("ADDED", recreated)]))
    batches, notebook = follow(script, 5)
    assert [told(batch) for batch in batches] == [["a/u1@n1"], ["-a/u1"]]
    assert len(notebook.failures) == 3
    assert "much" in notebook.failures[0][1]


@pytest.mark.parametrize("trouble", [refusal(500), refusal(403), UnsentError("refused"), UnansweredError("gone"), answer(200, [])])
def test_a_server_in_trouble_is_asked_again_ever_more_slowly(trouble):
    times = []

    def failing(_):
        times.append(asyncio.get_running_loop().time())
        return trouble if len(times) < 8 else listed("10", pod_object("a"))

    script = Script().on("GET", "/api/v1/pods", failing)
    batches, notebook = follow(script, 300)
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert [told(batch) for batch in batches] == [["a/u1"]]
    assert len(set(notebook.failures[:7])) == 1
    assert gaps[0] < 2 < gaps[3]
    assert max(gaps[:7]) <= 46


def test_a_server_that_comes_back_after_a_long_time_is_noticed_at_once():
    """Neither the outage nor the refusals of its first second count, and what is known need not be listed anew."""
    script = Script().on("GET", "/api/v1/pods", listed("10"))
    script.streams.extend((UnsentError("refused"), []) for _ in range(40))
    script.streams.extend([(refusal(403), []), (refusal(403), []), (answer(), [line("ADDED", pod_object("a"))])])
    batches, _ = follow(script, 200)
    times = [moment for _, _, moment in script.watched[:43]]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert max(gaps[:40]) <= 3
    assert gaps[20] >= 2  # it is not hurried either
    assert sum(gaps[40:]) <= 4
    assert [told(batch) for batch in batches] == [["a/u1"]]
    assert len(script.requests) == 1


def test_a_line_that_is_no_event_means_that_something_was_missed():
    script = Script().on("GET", "/api/v1/pods", listed("10"), listed("20", pod_object("a")))
    script.streams.append((answer(), [b'{"type": "ADDED", "obj']))
    batches, _ = follow(script, 20)
    assert [told(batch) for batch in batches] == [["a/u1"]]


def test_other_errors_in_a_stream_do_not_lose_the_place():
    error = line("ERROR", {"kind": "Status", "code": 500, "message": "etcdserver: no leader"})
    script = Script().on("GET", "/api/v1/pods", listed("10"))
    script.streams.append((answer(), [BOOKMARK, error]))
    _, notebook = follow(script, 20)
    assert script.watched[1][1]["resourceVersion"] == "99"
    assert "etcdserver: no leader" in notebook.failures[0][1]


def test_a_resource_that_is_not_served_is_empty_and_looked_for_rarely():
    script = Script().on("GET", SLICES.paths[0], refusal(404))
    _, notebook = follow(script, 1500, SLICES)
    assert notebook.synced
    assert not notebook.served
    assert notebook.failures == [("ResourceSlice", "is not served, so there are none")]
    assert len(script.requests) <= 6


def test_an_older_version_of_a_resource_will_do():
    script = Script()
    for path in RULES.paths[:2]:
        script.on("GET", path, refusal(404))
    item = {"metadata": {"name": "r", "resourceVersion": "3"}, "spec": {"taint": {"key": "k", "effect": "NoSchedule"}}}
    script.on("GET", RULES.paths[2], listed("10", item))
    batches, _ = follow(script, 10, RULES)
    assert batches[0][0].fact.key == "r"
    assert script.watched[0][0] == RULES.paths[2]


def test_objects_of_lists_carry_their_kind_and_no_managed_fields():
    item = pod_object("a", metadata={"managedFields": [{"manager": "kubectl"}], "annotations": {"x": "y"}})
    del item["kind"], item["apiVersion"]
    script = Script().on("GET", "/api/v1/pods", listed("10", item))
    batches, _ = follow(script, 5)
    expected = {"kind": "Pod", "apiVersion": "v1", **item, "metadata": {**item["metadata"]}}
    del expected["metadata"]["managedFields"]
    assert batches[0][0].pod.raw == encode(expected)
