"""Two versions of a profile in the loop: who decides, how they compare, and what an edit changes."""

from stowplan.edge.gauges import Gauges
from stowplan.edge.load import load_policy
from stowplan.edge.metrics import Metrics
from stowplan.edge.rollouts import RolloutGauges
from stowplan.edge.serve.pages import Asked
from stowplan.loop.effects import Bind, Prepare
from stowplan.loop.events import Bound, Cycle, PolicyChanged
from stowplan.loop.rollout import rollout_json
from unit.edge.watched import Listening
from unit.edge.watched import scene as watched
from unit.loop.driving import Scene

HEAD = {"apiVersion": "stowplan.io/v1alpha1", "kind": "SchedulerPolicy"}
STABLE, CANDIDATE = "default-scheduler", "default-scheduler (candidate)"
NODES = "node a cpu=4 mem=8Gi\nnode b cpu=4 mem=8Gi label.open=yes\n"
ONLY_B = {"rules": [{"name": "only-b", "filter": 'node.name == "b"'}]}
CANARY = 'pod.labels[?"track"].orValue("") == "canary"'


def document(**rollout):
    return HEAD | {"profiles": [{"schedulerName": STABLE}], "rollout": {"profile": STABLE, "candidate": ONLY_B} | rollout}


def change(scene, written):
    scene.handle(PolicyChanged(load_policy(written), generation=scene.loop.ledger.generation + 1))


def test_each_pod_is_placed_by_its_version_and_counted():
    scene = Scene(document(match=CANARY)).start(NODES)
    scene.show("pod p cpu=1\npod q cpu=1 labels=track=canary")
    scene.run()
    assert scene.where() == {"p": "a", "q": "b"}
    told = rollout_json(scene.loop.ledger)
    assert (told["profile"], told["match"]) == (STABLE, CANARY)
    stable, candidate = told["versions"]["stable"], told["versions"]["candidate"]
    assert (stable["placed"], candidate["placed"]) == (1, 1)
    assert (stable["attempts"], candidate["attempts"]) == ({"scheduled": 1}, {"scheduled": 1})
    assert stable["margin"]["decisions"] == 1
    assert [record.profile for record in scene.loop.ledger.records] == [STABLE, CANDIDATE]


def test_pods_that_wait_are_told_apart_and_time_to_place_counts_from_the_first_try():
    scene = Scene(document(match=CANARY)).start(NODES)
    scene.show("pod p cpu=9\npod q cpu=9 labels=track=canary\npod r cpu=4 labels=track=canary")
    scene.run(3)
    versions = rollout_json(scene.loop.ledger)["versions"]
    assert {word: (each["pending"], each["placed"]) for word, each in versions.items()} == {"stable": (1, 0), "candidate": (1, 1)}
    assert versions["candidate"]["waiting"] == {"unschedulable": 1}
    scene.show("node c cpu=16 mem=8Gi")
    scene.run(20)
    stable = rollout_json(scene.loop.ledger)["versions"]["stable"]
    assert (stable["pending"], stable["placed"]) == (0, 1)
    assert 3 <= stable["secondsToPlace"]["max"] <= 23
    assert stable["secondsToPlace"]["le"]["+Inf"] == 1
    assert stable["secondsToPlace"]["le"]["1.28"] == 0
    families = {family.name: family for family in Gauges(scene.loop.ledger).collect()}
    (sample,) = families["scheduler_unschedulable_pods"].samples
    assert (sample.labels, sample.value) == ({"plugin": "NodeResourcesFit", "profile": CANDIDATE}, 1)


def test_nodes_open_to_the_candidate_are_counted():
    scene = Scene(document(percent=100, nodes={"matchLabels": {"open": "yes"}})).start(NODES)
    assert rollout_json(scene.loop.ledger)["nodes"] == {"candidate": 1, "total": 2}


def test_promotion_and_abort_decide_anew_about_pods_that_wait():
    scene = Scene(document(match=CANARY)).start("node a cpu=4 mem=8Gi\n")
    scene.show("pod q cpu=1 labels=track=canary")
    scene.run(1)
    assert scene.loop.ledger.queue.pods["default/q"].rejectors == {"only-b"}
    change(scene, HEAD | {"profiles": [{"schedulerName": STABLE}]})
    scene.run(1)
    assert not scene.loop.ledger.queue.pods
    assert rollout_json(scene.loop.ledger) == {}
    change(scene, HEAD | {"profiles": [{"schedulerName": STABLE} | ONLY_B]})
    scene.show("pod s cpu=1")
    scene.run(1)
    assert scene.loop.ledger.queue.pods["default/s"].rejectors == {"only-b"}


def test_figures_go_on_under_another_percentage_and_begin_anew_with_another_candidate():
    scene = Scene(document(percent=100)).start(NODES)
    scene.show("pod p cpu=1")
    scene.run()
    change(scene, document(percent=50))
    told = rollout_json(scene.loop.ledger)
    assert (told["percent"], told["versions"]["candidate"]["placed"]) == (50, 1)
    change(scene, document(percent=50, candidate={}))
    assert rollout_json(scene.loop.ledger)["versions"]["candidate"]["placed"] == 0


def test_a_binding_under_way_is_credited_to_the_version_that_found_the_node():
    scene = Scene(document(percent=100), answers=False).start(NODES + "pod p cpu=1")
    (bind,) = [effect for effect in scene.handle(Cycle()) if isinstance(effect, Bind | Prepare)]
    change(scene, document(percent=0))
    scene.handle(Bound(bind.pod.key, bind.pod.uid))
    scene.handle(Bound(bind.pod.key, bind.pod.uid))
    versions = rollout_json(scene.loop.ledger)["versions"]
    assert (versions["candidate"]["placed"], versions["stable"]["placed"]) == (1, 0)


def test_attempts_are_told_under_the_name_of_the_version():
    listening = Listening()
    scene = watched(listening, policy=document(match=CANARY)).start(NODES)
    scene.show("pod p cpu=1\npod q cpu=1 labels=track=canary\npod r cpu=9 labels=track=canary")
    scene.run(1)
    assert {attempt.pod.name: attempt.profile for attempt in listening.attempts} == {"p": STABLE, "q": CANDIDATE, "r": CANDIDATE}


def test_metrics_compare_the_versions():
    scene = Scene(document(match=CANARY)).start(NODES)
    scene.show("pod p cpu=1\npod q cpu=9 labels=track=canary")
    scene.run(1)
    metrics = Metrics()
    metrics.registry.register(RolloutGauges(scene.loop.ledger))
    metrics.look_into(scene.loop.ledger)
    text = metrics.page().answer(Asked({}, {}, "", local=True)).body.decode()
    labels = f'profile="{STABLE}",version='
    assert f'stowplan_rollout_pending_pods{{{labels}"candidate"}} 1.0' in text
    assert f'stowplan_rollout_placing_duration_seconds_count{{{labels}"stable"}} 1.0' in text
    (line,) = [line for line in text.splitlines() if line.startswith("stowplan_rollout_attempts") and "unschedulable" in line]
    assert 'version="candidate"' in line
    assert line.endswith(" 1.0")
    assert f'scheduler_unschedulable_pods{{plugin="NodeResourcesFit",profile="{CANDIDATE}"}} 1.0' in text
    change(scene, HEAD | {"profiles": [{"schedulerName": STABLE}]})
    assert "stowplan_rollout" not in metrics.page().answer(Asked({}, {}, "", local=True)).body.decode()
