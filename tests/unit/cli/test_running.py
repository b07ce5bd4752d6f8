"""`why`, `queue` and `policy status`: what a running scheduler says about itself, asked by the command line."""

from __future__ import annotations

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from stowplan.cli.queue import STATES
from stowplan.cli.rollout import within
from stowplan.cli.server import span
from stowplan.cli.shadow import KINDS
from stowplan.edge.diary import Diary
from stowplan.edge.logs import set_up
from stowplan.edge.policies.following import _lobby
from stowplan.edge.policies.keeper import described
from stowplan.edge.policies.telling import disagreed
from stowplan.edge.serve import Asked
from stowplan.edge.serve.configz import InForce
from stowplan.edge.serve.decisions import Told, decisions
from stowplan.edge.serve.policy import policy
from stowplan.edge.serve.queue import ORDER, queue
from stowplan.edge.serve.shadow import shadow
from stowplan.edge.serve.standing import Standing
from stowplan.loop.effects import Bind
from stowplan.loop.events import Cycle, Failure, NotBound
from stowplan.loop.rollout import Tally, rollout_json
from stowplan.loop.shadow import Shadow
from unit.edge.policies.offering import BAD, NEVER, document, keeper, offer
from unit.loop.driving import Scene

CLUSTER = "node n1 cpu=4 mem=8Gi\nnode n2 cpu=8 mem=16Gi\nnode n3 cpu=1 mem=1Gi\n"


class Running:
    """A loop of a scene behind HTTP, as far as its pages go."""

    def __init__(self, scene, kept=None):
        ledger = scene.loop.ledger

        def stand():
            return Standing(ledger.leads, "stowplan-7d9f-abc_0b5e")

        numbers = {} if kept is None else kept.numbers
        recent, about = decisions(Told(lambda: ledger.records, stand, lambda: numbers))
        state = {} if kept is None else described(kept)
        pages = {
            "/queue": queue(lambda: ledger, stand),
            "/shadow": shadow(lambda: ledger.shadow),
            "/decisions": recent,
            "/policy": policy(
                lambda: InForce(ledger.policy, ledger.generation, "policy.yaml", state), lambda: rollout_json(ledger), stand
            ),
        }

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                url = urlsplit(self.path)
                parts = url.path.strip("/").split("/")
                page = about if len(parts) == 3 and parts[0] == "decisions" else pages.get(url.path)
                named = dict(zip(("namespace", "pod"), parts[1:], strict=False))
                query = {name: tuple(values) for name, values in parse_qs(url.query).items()}
                reply = None if page is None else page.answer(Asked(named, query, "", local=True))
                self.send_response(404 if reply is None else reply.status)
                self.end_headers()
                self.wfile.write(b"not found" if reply is None else reply.body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def running():
    started = []

    def start(scene, kept=None):
        started.append(Running(scene, kept))
        return started[-1].url

    yield start
    for each in started:
        each.server.shutdown()
        each.server.server_close()


def test_why_tells_what_decided(stowplan, running):
    scene = Scene().start(CLUSTER + "pod a cpu=2")
    scene.run()
    answer = stowplan("why", "default/a", "--server", running(scene))
    assert answer.code == 0
    lines = answer.words.splitlines()
    assert lines[0].startswith("default/a -> n2 (total ")
    assert "2 nodes feasible, profile default-scheduler" in lines[0]
    assert lines[1].startswith("decided 1970-01-01T00:16:40Z (")
    assert lines[1].endswith("in attempt 1, under policy generation 0")
    assert lines[2].startswith("ahead of n1 by ")
    assert "NodeResourcesFit +" in lines[2]
    assert "PLUGIN n2 n1" in lines
    record = scene.loop.ledger.records.of("default/a")[0]
    assert any(line == f"TOTAL {record.best[0].total:g} {record.best[1].total:g}" for line in lines)
    assert "1 Insufficient cpu NodeResourcesFit n3" in lines
    assert "explain" not in answer.out


def test_why_answers_from_the_record_whatever_the_cluster_is_now(stowplan, running):
    scene = Scene().start(CLUSTER + "pod a cpu=2")
    scene.run()
    scene.delete("Node", "default/n2")
    answer = stowplan("why", "default/a", "--server", running(scene))
    assert "default/a -> n2" in answer.out


def test_a_record_without_scores_says_so(stowplan, running):
    scene = Scene().start(CLUSTER + "\n".join(f"pod p{i} cpu=0.1" for i in range(20)))
    scene.run()
    answer = stowplan("why", "default/p7", "--server", running(scene))
    assert answer.code == 0
    assert "no scores were recorded: other pods were decided at the same moment" in answer.out
    assert "answers for today's cluster, not for what was decided" in answer.out
    assert "SCORES" not in answer.out


def test_no_record_says_so_and_what_the_pod_waits_for(stowplan, running):
    scene = Scene().start(CLUSTER + "pod a cpu=2 gates=example.com/wait\npod b cpu=1 scheduler=foo\npod c cpu=1")
    scene.run()
    url = running(scene)
    answer = stowplan("why", "default/a", "--server", url)
    assert answer.code == 1
    assert "no record of default/a: this scheduler did not try it, or too long ago" in answer.out
    assert "records go back to 1970-01-01T00:16:40Z" in answer.out
    assert "answers for today's cluster" in answer.out
    assert "default/a is gated" in answer.out
    assert "example.com/wait" in answer.out
    assert 'default/b waits: no scheduler serves "foo" here' in stowplan("why", "default/b", "--server", url).out
    assert stowplan("why", "default/none", "--server", url).code == 1


def test_why_of_a_pod_that_fits_nowhere(stowplan, running):
    scene = Scene().start(CLUSTER + "pod a cpu=32")
    scene.run()
    answer = stowplan("why", "default/a", "--server", running(scene))
    assert "default/a was unschedulable (profile default-scheduler)" in answer.out
    assert "0/3 nodes are available: 3 Insufficient cpu." in answer.out
    assert "3 Insufficient cpu NodeResourcesFit n1, n2, n3" in answer.words
    assert "default/a is unschedulable after attempt 1" in answer.out


def test_why_from_files(stowplan, tmp_path):
    path = tmp_path / "decisions.jsonl"
    scene = Scene()
    diary = Diary(str(path), scene.loop.ledger.records)
    scene.start(CLUSTER + "pod a cpu=2\npod b cpu=2")
    scene.run()
    diary.close()
    with path.open("a") as stream:
        stream.write('{"kind": "Decision", "pod": "defau')  # the scheduler is writing
    answer = stowplan("why", "default/a", "--decisions", path)
    assert (answer.code, "default/a -> n2" in answer.out) == (0, True)
    assert stowplan("why", "default/x", "--decisions", path).code == 1
    assert stowplan("why", "default/x", "--decisions", tmp_path / "none").code == 3
    assert json.loads(stowplan("why", "default/a", "--decisions", path, "-o", "json").out)["items"][0]["node"] == "n2"


def test_a_file_that_was_rotated_is_begun_anew(tmp_path):
    path, scene = tmp_path / "decisions.jsonl", Scene()
    diary = Diary(str(path), scene.loop.ledger.records)
    scene.start(CLUSTER + "pod a cpu=2")
    scene.run()
    diary.close()
    path.rename(tmp_path / "decisions.1")
    scene.show("pod b cpu=2")
    scene.run()
    diary.close()
    assert [json.loads(line)["pod"] for line in path.read_text().splitlines()] == ["default/b"]


def test_queue_names_every_state(stowplan, running):
    scene = Scene(answers=False).start(CLUSTER)
    scene.show("pod flying cpu=1")
    scene.handle(Cycle())
    scene.show("pod refused cpu=1")
    (bind,) = [each for each in scene.handle(Cycle()) if isinstance(each, Bind)]
    scene.handle(NotBound(bind.pod.key, bind.pod.uid, Failure.REFUSED, "the API server said no"))
    scene.show("pod large cpu=64")
    scene.handle(Cycle())
    scene.show("pod gated cpu=1 gates=example.com/wait\npod other cpu=1 scheduler=foo\npod next cpu=1")
    url = running(scene)
    found = {each["pod"]: each for each in json.loads(stowplan("queue", "--server", url, "-o", "json").out)["items"]}
    assert {pod.partition("/")[2]: each["state"] for pod, each in found.items()} == {
        "flying": "being bound",
        "refused": "backing off",
        "large": "unschedulable",
        "gated": "gated",
        "other": "not served",
        "next": "active",
    }
    assert (found["default/refused"]["nextTry"], found["default/refused"]["attempts"]) == ("1970-01-01T00:16:42.000000Z", 1)
    assert found["default/large"]["plugins"] == ["NodeResourcesFit"]
    answer = stowplan("queue", "--server", url)
    assert answer.out.startswith("1 being bound, 1 active, 1 backing off, 1 unschedulable, 1 gated, 1 not served")
    rows = {line.split()[0]: line for line in answer.words.splitlines() if line.startswith("default/")}
    assert "example.com/wait" in rows["default/gated"]
    assert 'no scheduler serves "foo" here' in rows["default/other"]
    assert "the API server said no" in rows["default/refused"]
    assert "0/3 nodes are available: 3 Insufficient cpu. " in rows["default/large"]
    assert rows["default/large"].endswith(" [NodeResourcesFit]")
    assert "n2 (binding)" in rows["default/flying"]
    only = json.loads(stowplan("queue", "--server", url, "-o", "json", "--state", "gated", "--state", "active").out)["items"]
    assert {each["pod"] for each in only} == {"default/gated", "default/next"}


def test_an_empty_queue_and_a_standby(stowplan, running):
    scene = Scene()
    scene.show(CLUSTER)
    answer = stowplan("queue", "--server", running(scene))
    assert "this replica does not lead" in answer.out
    assert "no pod waits" in answer.out


def test_nobody_answers(stowplan):
    answer = stowplan("queue", "--server", "http://127.0.0.1:9")
    assert answer.code == 3
    assert "no scheduler answers at http://127.0.0.1:9" in answer.err
    assert stowplan("queue", "--server", "file:///etc/hosts").code == 2
    assert stowplan("why", "a/b/c").code == 2


def test_policy_status(stowplan, running):
    scene = Scene().start(CLUSTER)
    kept, _ = keeper(document(), scene)
    asyncio.run(kept.offer(offer(document(NEVER))))
    answer = stowplan("policy", "status", "--server", running(scene, kept))
    assert answer.code == 0
    assert answer.out.startswith(f"generation 1, hash {kept.in_force.digest}, from policy.yaml")
    assert "lets no node pass" in answer.out
    asyncio.run(kept.offer(offer(BAD["type error"])))
    answer = stowplan("policy", "status", "--server", running(scene, kept))
    assert answer.code == 1
    assert "REFUSED 1970-01-01T00:16:40Z: policy.yaml" in answer.out
    assert "policy.yaml:7:" in answer.out


def divided(**rollout):
    """A rollout whose candidate takes one node only."""
    profiles = [{"schedulerName": "default-scheduler"}]
    candidate = {"rules": [{"name": "only-n1", "filter": 'node.name == "n1"'}]}
    head = {"apiVersion": "stowplan.io/v1alpha1", "kind": "SchedulerPolicy", "profiles": profiles}
    return head | {"rollout": {"profile": "default-scheduler", "candidate": candidate} | rollout}


def test_policy_status_compares_the_versions_of_a_rollout(stowplan, running):
    match = 'pod.labels[?"track"].orValue("") == "canary"'
    scene = Scene(divided(match=match)).start(CLUSTER)
    pods = ["pod a cpu=1", "pod b cpu=1", "pod c cpu=1 labels=track=canary", "pod d cpu=9 labels=track=canary"]
    for text in pods:
        scene.show(text)
        scene.run(1)
    server = running(scene)
    answer = stowplan("policy", "status", "--server", server)
    assert answer.code == 0
    assert f"ROLLOUT of default-scheduler: the candidate gets 100% of the workloads, those for which {match}" in answer.out
    lines = answer.words.splitlines()
    start = lines.index("STABLE CANDIDATE")
    assert lines[start + 1 : start + 6] == [
        "placed 2 1",
        "pending 0 1",
        "unschedulable 0 1",
        "attempts: scheduled 2 1",
        "attempts: unschedulable 0 1",
    ]
    told = json.loads(stowplan("policy", "status", "--server", server, "-o", "json").out)
    assert told["rollout"] == rollout_json(scene.loop.ledger)
    versions = told["rollout"]["versions"]
    assert versions["stable"]["margin"]["decisions"] == 2
    margin = next(line for line in lines if line.startswith("margin"))
    assert margin == f"margin over the runner-up: mean {versions['stable']['margin']['mean']:.4g} -"
    assert next(line for line in lines if line.startswith("time to place")).count(" ms") == 2


def test_times_to_place_are_told_by_their_bounds():
    """A share of the pods is told by the bound it stays within, which is not beyond the longest time there was."""
    tally = Tally()
    for seconds in (0.03,) * 9 + (3.0,):
        tally.bound(seconds)
    times = tally.to_json()["secondsToPlace"]
    assert [within(times, share) for share in (0.5, 0.9, 0.95)] == ["40 ms", "40 ms", "3 s"]


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.4, "0s"), (59, "59s"), (60, "1m"), (192, "3m12s"), (7500, "2h5m"), (90000, "1d1h"), (-3, "0s")]
)
def test_spans(seconds, shown):
    assert span(seconds) == shown


LEADER = "stowplan-7d9f-abc leads (lease holder stowplan-7d9f-abc_0b5e)"


def test_a_replica_that_does_not_lead_says_so_first(stowplan, running):
    scene = Scene()
    scene.show(CLUSTER + "pod a cpu=1")
    kept, _ = keeper(document(), scene)
    url = running(scene, kept)
    for verb, code in ((("queue",), 0), (("why", "default/a"), 1), (("policy", "status"), 0)):
        answer = stowplan(*verb, "--server", url)
        assert answer.code == code
        first, second, third = answer.out.splitlines()[:3]
        assert first.startswith("this replica does not lead")
        assert second.startswith(LEADER)
        assert third.strip() == "kubectl -n stowplan-system port-forward pod/stowplan-7d9f-abc 10259"
        told = json.loads(stowplan(*verb, "--server", url, "-o", "json").out)
        assert (told["leads"], told["leader"]) == (False, "stowplan-7d9f-abc_0b5e")


def test_the_leader_does_not_speak_of_leading(stowplan, running):
    scene = Scene().start(CLUSTER + "pod a cpu=1")
    scene.run()
    url = running(scene)
    for verb in (("queue",), ("why", "default/a"), ("policy", "status")):
        assert "lead" not in stowplan(*verb, "--server", url).out


def test_why_takes_the_name_of_a_pod_that_is_the_only_one(stowplan, running, tmp_path):
    path, scene = tmp_path / "decisions.jsonl", Scene()
    diary = Diary(str(path), scene.loop.ledger.records)
    scene.start(CLUSTER + "pod a cpu=2\npod x/b cpu=1\npod y/b cpu=1\npod z/c cpu=1 gates=example.com/wait")
    scene.run()
    diary.close()
    url = running(scene)
    for where in (("--server", url), ("--decisions", path)):
        assert "default/a -> " in stowplan("why", "a", *where).out
        answer = stowplan("why", "b", *where)
        assert (answer.code, "several pods: x/b, y/b" in answer.err) == (2, True)
        assert stowplan("why", "nobody", *where).code == 2
    assert "z/c is gated" in stowplan("why", "c", "--server", url).out


def test_queue_refuses_states_that_there_are_not(stowplan, running):
    answer = stowplan("queue", "--server", running(Scene().start(CLUSTER)), "--state", "foo")
    assert answer.code == 2
    assert all(state in answer.err for state in STATES)
    assert ORDER == STATES
    reply = queue(lambda: Scene().loop.ledger).answer(Asked({}, {"state": ("foo",)}, "", local=True))
    assert (reply.status, b'"foo" is no state; states: being bound, ' in reply.body) == (400, True)


def test_the_version_is_named_where_it_is_known(stowplan, running):
    scene = Scene().start(CLUSTER + "pod a cpu=2")
    kept, _ = keeper(document(), scene)
    asyncio.run(kept.offer(offer(document(NEVER))))
    scene.run()
    kept.numbers = {kept.in_force.digest: 8}
    url = running(scene, kept)
    name = f"version 8 (generation 1 here, hash {kept.in_force.digest})"
    assert stowplan("policy", "status", "--server", url).out.startswith(f"{name}, from policy.yaml")
    assert f"under policy {name}" in stowplan("why", "default/a", "--server", url).out
    assert kept.note().startswith(name)


def test_times_are_written_as_kubernetes_writes_them(stowplan, running):
    scene = Scene().start(CLUSTER + "pod a cpu=2\npod b cpu=99")
    kept, _ = keeper(document(), scene)
    asyncio.run(kept.offer(offer(BAD["syntax"])))
    scene.run()
    url = running(scene, kept)
    told = json.loads(stowplan("policy", "status", "--server", url, "-o", "json").out)
    (record,) = json.loads(stowplan("why", "default/a", "--server", url, "-o", "json").out)["items"]
    (waiting,) = json.loads(stowplan("queue", "--server", url, "-o", "json").out)["items"]
    for moment in (told["since"], told["rejected"]["time"], record["time"], waiting["since"], waiting["nextTry"]):
        assert moment.startswith("1970-01-01T00:")
        assert moment.endswith("Z")


def test_records_of_earlier_releases_can_be_read(stowplan, tmp_path):
    path = tmp_path / "decisions.jsonl"
    record = {"kind": "Decision", "pod": "default/a", "profile": "p", "result": "skipped", "attempt": 1, "detailed": False}
    path.write_text(json.dumps(record | {"time": 1000.5, "policy": {"generation": 4}}) + "\n")
    answer = stowplan("why", "a", "--decisions", path)
    assert "decided 1970-01-01T00:16:40Z (" in answer.out
    assert "in attempt 1, under policy generation 4\n" in answer.out


def test_while_there_is_no_policy_every_page_says_why(stowplan):
    answers = {}

    async def test():
        kept, _ = keeper()
        await kept.offer(offer(BAD["syntax"]))
        lobby = _lobby(kept)
        await lobby.start("127.0.0.1", 0)
        url = f"http://127.0.0.1:{lobby.port}"
        verbs = (("queue",), ("why", "default/a"), ("why", "a"), ("shadow",), ("policy", "status"))
        for verb in verbs:
            answers[verb] = await asyncio.to_thread(stowplan, *verb, "--server", url)
        await lobby.close()

    asyncio.run(test())
    status = answers.pop(("policy", "status"))
    assert (status.code, "no policy yet: the scheduler waits: policy.yaml:3:12: error" in status.out) == (1, True)
    for answer in answers.values():
        assert answer.code == 3
        assert "waits for a policy: policy.yaml:3:12: error" in answer.err


def beside(cluster):
    """A scene that another scheduler acts in."""
    scene = Scene()
    scene.loop.ledger.shadow = Shadow()
    return scene.start(cluster)


def watched():
    """A shadow that has seen a placement as its own, a worse one, and one that it would refuse."""
    scene = beside("node n1 cpu=4\nnode n2 cpu=64\npod a cpu=1\npod b cpu=1\npod c cpu=60")
    for pod, node in (("a", "n2"), ("b", "n1"), ("c", "n1")):
        scene.show(f"pod {pod} cpu={60 if pod == 'c' else 1} on={node}")
    return scene


def test_shadow_shows_agreement_and_disagreements(stowplan, running, tmp_path):
    scene = watched()
    url, path = running(scene), tmp_path / "shadow.json"
    path.write_text(json.dumps(scene.loop.ledger.shadow.to_json()))
    answer = stowplan("shadow", "--server", url)
    assert (answer.code, answer.out) == (0, stowplan("shadow", path).out)
    lines = answer.words.splitlines()
    assert lines[0] == "agreement: 33.33% of 3 placements"
    assert "same 1 the node that is the best here" in lines
    assert any(line.startswith("1970-01-01T00:16:40Z default/b lower n1 n2 n2 scores ") for line in lines)
    assert any(
        line.startswith("1970-01-01T00:16:40Z default/c rejected n1 n2 n1 is rejected by NodeResourcesFit") for line in lines
    )
    assert "default/b" not in stowplan("shadow", path, "--limit", "1").out
    assert json.loads(stowplan("shadow", path, "-o", "json").out)["outcomes"] == {"same": 1, "lower": 1, "rejected": 1}
    assert stowplan("shadow", tmp_path / "none").code == 3
    assert stowplan("shadow", "--server", running(Scene())).code == 3


def test_every_outcome_is_explained():
    assert set(watched().loop.ledger.shadow.outcomes) < set(KINDS)
    assert list(KINDS) == ["same", "tied", "lower", "rejected", "skipped"]


@pytest.mark.usefixtures("own_logging")
def test_disagreements_are_logged_once(capsys):
    scene = beside("node n1 cpu=4\nnode n2 cpu=64\npod b cpu=1")
    scene.loop.ledger.shadow.told = disagreed
    set_up("text", 2)
    scene.show("pod b cpu=1 on=n1")
    (line,) = capsys.readouterr().err.splitlines()
    assert 'info disagreement pod="default/b" kind="lower" theirs="n1" ours="n2" explanation="n2 scores ' in line
    set_up("text", 1)
    scene.show("pod d cpu=1")
    scene.show("pod d cpu=1 on=n1")
    assert capsys.readouterr().err == ""
