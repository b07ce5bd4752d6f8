import asyncio
import datetime as dt

import msgspec
import pytest
from aiohttp import web

from stowplan.edge.kube.extender import Extenders
from stowplan.edge.kube.transport import UnansweredError, UnsentError
from stowplan.edge.kube.web import AioWeb
from stowplan.edge.kube.writer import Help, Writer
from stowplan.loop.effects import Bind, Consult, ConsultVictims
from stowplan.loop.events import Advice, Bound, Failure, NodeChanged, NodeGone, NotBound, VictimAdvice
from stowplan.objects import read
from stowplan.policy.offers import Offer
from stowplan.profile import Extender
from unit.edge.kube.rig import Notebook, Script, answer, caller, pod, pod_object, refusal, run


class Answers:
    """Extenders by URL; an exception is raised."""

    def __init__(self, **answers):
        self.answers, self.asked = answers, []

    async def post(self, extender, url, body):  # noqa: ARG002
        verb = url.rpartition("/")[2]
        self.asked.append((url, msgspec.json.decode(body)))
        found = self.answers[verb]
        if isinstance(found, Exception):
            raise found
        return found if not isinstance(found, dict | list) else answer(200, found)


def extender(**members):
    return Extender(url_prefix="http://e/", node_cache_capable=True, **members)


def consult(answers, *extenders, nodes=("n1", "n2", "n3"), prioritize=True, known=()):
    async def test():
        asking = Extenders(answers, caller(Script(), observer=notebook))
        asking.saw([NodeChanged(read(node)) for node in known])
        return await asking.consult(Consult(pod(), extenders, nodes, prioritize))

    notebook = Notebook()
    advice = run(test)
    return advice, notebook


def test_each_is_asked_about_what_the_ones_before_kept():
    answers = Answers(
        first={"NodeNames": ["n2", "n3"], "FailedNodes": {"n1": "too small"}},
        second={"nodenames": ["n3"], "failedNodes": {"n2": "x"}, "FailedAndUnresolvableNodes": {"n2": "never"}},
    )
    advice, _ = consult(answers, extender(filter_verb="first"), extender(filter_verb="second"))
    assert advice == Advice("ns/a", "u1", frozenset({"n3"}), (), (("n1", "too small"),), (("n2", "never"),))
    assert [body["NodeNames"] for _, body in answers.asked] == [["n1", "n2", "n3"], ["n2", "n3"]]
    assert answers.asked[0][0] == "http://e/first"
    assert answers.asked[0][1]["Pod"] == pod_object()
    assert answers.asked[0][1]["Nodes"] is None


def test_nobody_is_asked_about_nothing():
    answers = Answers(first={"NodeNames": []})
    advice, _ = consult(answers, extender(filter_verb="first"), extender(filter_verb="second", prioritize_verb="rank"))
    assert advice.nodes == frozenset()
    assert len(answers.asked) == 1


def test_scores_are_weighted_and_summed():
    answers = Answers(one=[{"Host": "n1", "Score": 10}], two=[{"host": "n1", "score": 3}, {"host": "n2", "score": 1}])
    advice, _ = consult(answers, extender(prioritize_verb="one", weight=2), extender(prioritize_verb="two", weight=1))
    assert dict(advice.scores) == {"n1": 230, "n2": 10}
    assert advice.nodes is None


@pytest.mark.parametrize(("nodes", "prioritize"), [(("n1",), True), (("n1", "n2"), False)])
def test_one_node_is_not_ranked(nodes, prioritize):
    answers = Answers()
    consult(answers, extender(prioritize_verb="rank", weight=1), nodes=nodes, prioritize=prioritize)
    assert answers.asked == []


def test_whole_nodes_are_sent_to_those_that_do_not_know_them():
    node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1", "labels": {"a": "b"}}}
    answers = Answers(filter={"Nodes": {"items": [node]}})
    advice, _ = consult(answers, Extender(url_prefix="http://e", filter_verb="filter"), nodes=("n1",), known=[node])
    assert advice.nodes == frozenset({"n1"})
    assert answers.asked[0][1]["Nodes"]["items"] == [node]
    assert answers.asked[0][1]["NodeNames"] is None


def test_nodes_that_are_gone_are_forgotten():
    async def test():
        asking = Extenders(Answers(filter={"Nodes": {"items": []}}), caller(Script()))
        node = read({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}})
        asking.saw([NodeChanged(node), NodeGone("n1")])
        await asking.consult(Consult(pod(), (Extender(url_prefix="http://e", filter_verb="filter"),), ("n1",)))
        return asking._web.asked[0][1]["Nodes"]["items"]

    assert run(test) == []


FAILURES = [
    (answer(503), "failed filter with extender at URL http://e/filter, code 503"),
    (UnansweredError("no answer within 5 seconds"), 'Post "http://e/filter": no answer within 5 seconds'),
    ({"Error": "out of order"}, "out of order"),
    (answer(200, "?"), "the extender at URL http://e/filter answered nonsense: Expected `object`, got `str`"),
    ({"NodeNames": ["n9"]}, 'extender "http://e" claims a filtered node "n9" which is not found in the input node list'),
]


@pytest.mark.parametrize(("failure", "text"), FAILURES)
def test_a_filter_that_fails_ends_the_attempt_unless_it_may_be_ignored(failure, text):
    advice, _ = consult(Answers(filter=failure), extender(filter_verb="filter"))
    assert advice == Advice("ns/a", "u1", error=text)
    advice, notebook = consult(Answers(filter=failure), extender(filter_verb="filter", ignorable=True))
    assert advice.error == ""
    assert advice.nodes == {"n1", "n2", "n3"}
    assert notebook.failures == [("extender", f"{text}; ignored")]


def test_a_ranking_that_fails_is_ignored():
    advice, notebook = consult(Answers(rank=UnsentError("refused")), extender(prioritize_verb="rank", weight=1))
    assert advice == Advice("ns/a", "u1")
    assert len(notebook.failures) == 1


# Victims

LOW = "/api/v1/namespaces/ns/pods/low"


def low(uid="u-low"):
    return {**pod_object(node="n1"), "metadata": {"name": "low", "namespace": "ns", "uid": uid}}


def victims(answers, extender, script=None):
    async def test():
        asking = Extenders(answers, caller(script or Script(), observer=notebook))
        running = read(low())
        assert running.raw == b""
        offers = {"n1": Offer((running,), 1), "n2": Offer((pod(uid="u2"),))}
        return await asking.victims(ConsultVictims(pod(), extender, {"n1": offers["n1"]} if script else offers))

    notebook = Notebook()
    return run(test), notebook


def test_extenders_that_know_pods_are_asked_by_identifiers():
    told = {"n1": {"Pods": [{"UID": "u-low"}, {"uid": "u-other"}], "NumPDBViolations": 2}, "n2": {"pods": None}, "n3": None}
    answers = Answers(preempt={"nodeNameToMetaVictims": told})
    advice, _ = victims(answers, extender(preempt_verb="preempt"))
    assert advice == VictimAdvice("ns/a", "u1", (("n1", ("u-low", "u-other"), 2), ("n2", (), 0), ("n3", (), 0)))
    ((url, asked),) = answers.asked
    assert url == "http://e/preempt"
    assert asked == {
        "Pod": pod_object(),
        "NodeNameToVictims": None,
        "NodeNameToMetaVictims": {
            "n1": {"Pods": [{"UID": "u-low"}], "NumPDBViolations": 1},
            "n2": {"Pods": [{"UID": "u2"}], "NumPDBViolations": 0},
        },
    }


@pytest.mark.parametrize("found", [answer(200, low()), answer(200, low("recreated")), refusal(404)])
def test_others_are_sent_whole_pods_as_long_as_those_are_there(found):
    answers = Answers(preempt={"NodeNameToMetaVictims": None})
    advice, _ = victims(answers, Extender(url_prefix="http://e", preempt_verb="preempt"), Script().on("GET", LOW, found))
    assert advice == VictimAdvice("ns/a", "u1")
    ((_, asked),) = answers.asked
    whole = {"n1": {"Pods": [low()], "NumPDBViolations": 1}}
    there = msgspec.json.decode(found.body) == low()
    assert (asked["NodeNameToVictims"], asked["NodeNameToMetaVictims"]) == (whole if there else {}, None)


def test_victims_that_cannot_be_looked_up_are_an_error():
    advice, _ = victims(Answers(), Extender(url_prefix="http://e", preempt_verb="preempt"), Script().on("GET", LOW, refusal(403)))
    assert advice.error == "pod ns/low, a victim, cannot be looked up: no"


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (answer(503), "failed preempt with extender at URL http://e/preempt, code 503"),
        ({"NodeNameToMetaVictims": {"n1": {"Pods": 5}}}, "the extender at URL http://e/preempt answered nonsense: "),
        ({"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": 5}]}}}, "the extender at URL http://e/preempt answered nonsense: "),
        ({"NodeNameToMetaVictims": {"n1": 5}}, "the extender at URL http://e/preempt answered nonsense: "),
    ],
)
def test_an_extender_that_fails_about_victims_says_so(failure, text):
    for ignorable in (False, True):
        advice, notebook = victims(Answers(preempt=failure), extender(preempt_verb="preempt", ignorable=ignorable))
        assert advice.error.startswith(text)
        assert len(notebook.failures) == ignorable


# Binding


def bind(answers, script, *, ignorable=False):
    found = []

    class Nothing:
        async def undo(self, pod): ...

        def bound(self, pod): ...

    async def test():
        async with asyncio.TaskGroup() as group:
            calls = caller(script)
            writer = Writer(Help(calls, calls, Nothing(), Extenders(answers, calls)), found.extend, group.create_task)
            writer.take(Bind(pod(), "n1", extender(bind_verb="bind", ignorable=ignorable)))
            await writer.drain(60)

    run(test)
    return found


POD = "/api/v1/namespaces/ns/pods/a"


def test_an_extender_may_bind():
    answers = Answers(bind={"Error": ""})
    assert bind(answers, Script()) == [Bound("ns/a", "u1")]
    assert answers.asked == [("http://e/bind", {"PodName": "a", "PodNamespace": "ns", "PodUID": "u1", "Node": "n1"})]


@pytest.mark.parametrize(
    ("look", "expected"),
    [
        (pod_object(node="n1"), Bound("ns/a", "u1")),
        (pod_object(node="n2"), NotBound("ns/a", "u1", Failure.ELSEWHERE, "broken")),
        (pod_object(), NotBound("ns/a", "u1", Failure.REFUSED, "broken")),
    ],
)
def test_an_extender_that_fails_may_have_bound(look, expected):
    assert bind(Answers(bind={"Error": "broken"}), Script().on("GET", POD, answer(200, look))) == [expected]


def test_where_it_may_be_ignored_we_bind():
    script = Script().on("GET", POD, answer(200, pod_object())).on("POST", f"{POD}/binding", answer(201))
    assert bind(Answers(bind=refusal(500)), script, ignorable=True) == [Bound("ns/a", "u1")]


def test_extenders_are_reached_over_http():
    async def test():
        async def slow(request):
            told = await request.json()
            await asyncio.sleep(told["wait"])
            return web.json_response({"NodeNames": []})

        app = web.Application()
        app.router.add_post("/filter", slow)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/filter"
        quick = Extender(http_timeout=dt.timedelta(seconds=0.2))
        async with AioWeb() as reach:
            good = await reach.post(quick, url, b'{"wait": 0}')
            with pytest.raises(UnansweredError):
                await reach.post(quick, url, b'{"wait": 5}')
            with pytest.raises(UnsentError):
                await reach.post(quick, "http://127.0.0.1:1/filter", b"{}")
        await runner.cleanup()
        return good

    assert asyncio.run(test()).body == b'{"NodeNames": []}'
