"""The live loop by itself: events in, effects out, no clock."""

import msgspec
import pytest

from stowplan.edge.load import load_policy
from stowplan.loop.effects import Bind, Denominate, Evict, Mark, Prepare, Why
from stowplan.loop.events import Bound, Evicted, Failure, Leading, NotBound, PodGone, PolicyChanged, Prepared
from unit.loop.driving import Scene

NODES = "node a cpu=4 mem=8Gi\nnode b cpu=4 mem=8Gi\n"


def test_a_pod_is_bound_and_reported():
    scene = Scene().start(NODES + "pod default/p cpu=1")
    scene.run()
    assert set(scene.where()) == {"p"}
    assert scene.notes("p") == [("Scheduled", f"Successfully assigned default/p to {scene.where()['p']}")]
    assert scene.place("default/p") == "gone"


def test_nothing_is_tried_before_the_lists_are_there_or_by_a_follower():
    scene = Scene()
    scene.show(NODES + "pod default/p cpu=1")
    assert not scene.loop.ready(scene.now)
    scene.start()
    scene.handle(Leading(leads=False))
    scene.run(60)
    assert scene.where() == {}
    scene.handle(Leading(leads=True))
    scene.run()
    assert set(scene.where()) == {"p"}


def test_assumed_pods_take_their_room_before_the_server_says_so():
    scene = Scene(answers=False).start("node a cpu=2\npod default/p-{1..3} cpu=1")
    scene.run()
    assert sorted(scene.where()) == ["p-1", "p-2"]
    assert scene.place("default/p-3") == "unschedulable"


def test_more_important_pods_come_first():
    scene = Scene().start("node a cpu=1\npod default/low cpu=1\npod default/high cpu=1 priority=10")
    scene.run()
    assert list(scene.where()) == ["high"]


def test_an_unschedulable_pod_is_marked_and_reported():
    scene = Scene().start("node a cpu=1\npod default/p cpu=2")
    scene.run()
    (mark,) = scene.of(Mark)
    assert mark.why is Why.UNSCHEDULABLE
    assert mark.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert mark.nominated == ""
    assert scene.notes("p") == [("FailedScheduling", mark.message)]


@pytest.mark.parametrize(
    ("change", "helps"),
    [
        ("node b cpu=4", True),
        ("node b cpu=1", False),
        ("node a cpu=3", True),
        ("node a cpu=1 labels=x=y", False),
        ("pod default/other cpu=1 on=a", False),
        ("namespace web", False),
    ],
)
def test_a_rejected_pod_comes_back_when_and_only_when_that_helps(change, helps):
    scene = Scene().start("node a cpu=1\npod default/p cpu=2")
    scene.run(5)
    attempts = len(scene.of(Mark))
    scene.show(change)
    scene.run(20)
    assert ("p" in scene.where()) == helps
    assert len(scene.of(Mark)) == attempts


def test_a_pod_that_leaves_makes_room():
    scene = Scene().start("node a cpu=2\npod default/old cpu=2 on=a\npod default/p cpu=2")
    scene.run(5)
    assert scene.where() == {}
    scene.delete("Pod", "default/old")
    scene.run()
    assert scene.where() == {"p": "a"}


def test_a_pod_that_comes_can_be_what_was_missed():
    scene = Scene().start("node a cpu=2 zone=z1\npod default/p near=zone:match=app=db")
    scene.run(5)
    scene.show("pod default/db labels=app=db on=a")
    scene.run(1)
    assert scene.where() == {"p": "a"}


def test_gates_hold_a_pod_back_until_they_are_lifted():
    scene = Scene().start(NODES)
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p", "namespace": "default"}}
    scene.put(pod | {"spec": {"schedulingGates": [{"name": "quota"}]}})
    scene.run(400)
    assert scene.place("default/p") == "gated"
    assert scene.effects == []
    scene.put(pod | {"spec": {}})
    scene.run()
    assert set(scene.where()) == {"p"}


def test_pods_of_others_are_left_alone_but_counted():
    scene = Scene().start("node a cpu=2\npod default/theirs scheduler=other cpu=1\npod default/p cpu=2")
    scene.run()
    assert scene.where() == {"p": "a"}
    scene = Scene().start("node a cpu=2\npod default/theirs scheduler=other cpu=1 on=a\npod default/p cpu=2")
    scene.run(3)
    assert scene.where() == {}


def test_a_refused_binding_is_undone_and_tried_again_later():
    scene = Scene(answers=False).start("node a cpu=2\npod default/p cpu=2")
    scene.run()
    (bind,) = scene.of(Bind)
    scene.handle(NotBound("default/p", bind.pod.uid, Failure.REFUSED, "binding rejected: no"))
    assert scene.place("default/p") == "errorbackoff"
    assert not scene.loop.ledger.store.seats[0]
    (mark,) = scene.of(Mark)
    assert (mark.why, mark.message) == (Why.ERROR, "binding rejected: no")
    scene.run(3)
    assert len(scene.of(Bind)) == 2


@pytest.mark.parametrize("failure", [Failure.GONE, Failure.ELSEWHERE])
def test_a_pod_that_is_gone_or_another_s_is_forgotten_without_a_word(failure):
    scene = Scene(answers=False).start("node a cpu=2\npod default/p cpu=2")
    scene.run()
    (bind,) = scene.of(Bind)
    before = len(scene.effects)
    scene.handle(NotBound("default/p", bind.pod.uid, failure, ""))
    assert not scene.loop.ledger.store.seats[0]
    scene.delete("Pod", "default/p")
    scene.run(60)
    assert len(scene.effects) == before
    assert scene.place("default/p") == "gone"


@pytest.mark.parametrize("failure", [Failure.GONE, Failure.ELSEWHERE])
def test_a_pod_that_was_said_to_be_gone_and_is_not_is_tried_again(failure):
    scene = Scene(answers=False).start("node a cpu=2\npod default/p cpu=2")
    scene.run()
    scene.handle(NotBound("default/p", scene.of(Bind)[0].pod.uid, failure, ""))
    scene.run(5)
    assert len(scene.of(Bind)) == 2


def test_an_unanswered_binding_keeps_its_room_and_is_asked_again():
    scene = Scene(answers=False).start("node a cpu=2\npod default/p cpu=2\npod default/q cpu=2")
    scene.run()
    (bind,) = scene.of(Bind)
    scene.handle(NotBound(bind.pod.key, bind.pod.uid, Failure.UNKNOWN, "timeout"))
    scene.run(10)
    assert [each.pod.key for each in scene.of(Bind)] == [bind.pod.key] * 2
    assert len(scene.loop.ledger.store.seats[0]) == 1


def test_the_watch_may_be_faster_than_the_answer():
    scene = Scene(answers=False).start("node a cpu=2\npod default/p cpu=1")
    scene.run()
    (bind,) = scene.of(Bind)
    scene.patch("Pod", "default/p", spec={"nodeName": "a"})
    scene.handle(NotBound("default/p", bind.pod.uid, Failure.REFUSED, "already assigned"))
    assert [reason for reason, _ in scene.notes("p")] == ["Scheduled"]
    assert not scene.loop.ledger.flights.by_uid


def test_a_stale_view_of_an_assumed_pod_does_not_free_its_node():
    scene = Scene(answers=False).start("node a cpu=2\npod default/p cpu=2\npod default/q cpu=2")
    scene.run()
    (bind,) = scene.of(Bind)
    scene.patch("Pod", bind.pod.key, metadata={"labels": {"new": "label"}})
    scene.run(30)
    assert len(scene.of(Bind)) == 1
    scene.handle(Bound(bind.pod.key, bind.pod.uid))
    scene.patch("Pod", bind.pod.key, metadata={"labels": {"new": "other"}})
    scene.run(30)
    assert len(scene.of(Bind)) == 1


def test_a_recreated_pod_is_another_pod():
    scene = Scene(answers=False).start("node a cpu=2\npod default/web-0 cpu=1")
    scene.run()
    (first,) = scene.of(Bind)
    scene.patch("Pod", "default/web-0", metadata={"uid": "another"})
    scene.run()
    assert [bind.pod.uid for bind in scene.of(Bind)] == [first.pod.uid, "another"]
    scene.handle(NotBound("default/web-0", first.pod.uid, Failure.GONE, "conflict"))
    scene.handle(PodGone("default/web-0", first.pod.uid))
    assert set(scene.loop.ledger.flights.by_uid) == {"another"}
    assert len(scene.loop.ledger.store.seats[0]) == 1


def test_preemption_evicts_nominates_and_waits_for_the_victims():
    scene = Scene(answers=False).start("node a cpu=2\npod default/low cpu=2 on=a\npod default/high cpu=2 priority=10")
    scene.run(10)
    (evict,) = scene.of(Evict)
    assert [pod.name for pod in evict.victims] == ["low"]
    assert scene.of(Mark)[-1].nominated == "a"
    uid = evict.preemptor.uid
    assert scene.notes("low") == [("Preempted", f"Preempted by pod {uid} on node a")]
    assert len(scene.of(Mark)) == 1
    scene.answers = True
    scene._answer(evict)
    scene.run()
    assert scene.where() == {"high": "a"}


def test_a_failed_eviction_is_undone_and_the_pod_tried_again():
    scene = Scene(answers=False).start("node a cpu=2\npod default/low cpu=2 on=a\npod default/high cpu=2 priority=10")
    scene.run()
    (evict,) = scene.of(Evict)
    (victim,) = scene.loop.ledger.store.seats[0].values()
    assert victim.terminating
    scene.handle(Evicted("default/high", evict.preemptor.uid, "forbidden"))
    (victim,) = scene.loop.ledger.store.seats[0].values()
    assert not victim.terminating
    scene.run()
    assert len(scene.of(Evict)) == 2


def test_a_reserved_node_is_kept_from_less_important_pods():
    scene = Scene(answers=False).start("node a cpu=2\npod default/low cpu=2 on=a\npod default/high cpu=2 priority=10")
    scene.run()
    (evict,) = scene.of(Evict)
    scene.show("pod default/small cpu=1")
    scene.delete("Pod", "default/low")
    scene.handle(Evicted("default/high", evict.preemptor.uid))
    scene.run()
    assert scene.where() == {"high": "a"}


def test_lower_nominations_are_cleared():
    scene = Scene(answers=False).start(
        "node a cpu=2\npod default/v1 cpu=1 on=a\npod default/v2 cpu=1 on=a\npod default/mid cpu=2 priority=5"
    )
    scene.run()
    scene.show("pod default/high cpu=2 priority=10")
    scene.run()
    assert [each.pod.name for each in scene.of(Denominate)] == ["mid"]
    assert set(scene.loop.ledger.store.nominated["a"]) == {"default/high"}


def test_a_changed_policy_is_in_force_at_once_and_tries_all_that_wait():
    scene = Scene().start("node a cpu=2\npod default/p cpu=2 select=disk=ssd")
    scene.run(30)
    assert scene.where() == {}
    lenient = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"filter": {"disabled": [{"name": "NodeAffinity"}]}}}],
    }
    scene.handle(PolicyChanged(load_policy(lenient), 2))
    scene.run()
    assert scene.where() == {"p": "a"}


def test_backoff_doubles_and_a_pod_is_flushed_after_five_minutes():
    scene = Scene(answers=False).start("node a cpu=2\npod default/p cpu=1")
    gaps, last = [], None
    for _ in range(6):
        scene.run(0)
        while len(scene.of(Bind)) <= len(gaps) + (last is not None):
            scene.run(1)
        if last is not None:
            gaps.append(scene.now - last)
        last = scene.now
        scene.handle(NotBound("default/p", scene.of(Bind)[-1].pod.uid, Failure.REFUSED, "no"))
    assert gaps == sorted(gaps)
    assert gaps[0] <= 2
    assert 10 < gaps[-1] <= 12


STORAGE_CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "wait"},
    "provisioner": "example.com/disk",
    "volumeBindingMode": "WaitForFirstConsumer",
}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "default"},
    "spec": {"storageClassName": "wait", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
WITH_CLAIM = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]},
}
SELECTED = "volume.kubernetes.io/selected-node"


def volume(node):
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "wait",
            "claimRef": {"namespace": "default", "name": "data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
        "status": {"phase": "Bound"},
    }


def waiting_for_a_volume():
    scene = Scene(answers=False).start(NODES)
    for item in (STORAGE_CLASS, CLAIM, WITH_CLAIM):
        scene.put(msgspec.json.decode(msgspec.json.encode(item)))
    scene.run()
    (prepare,) = scene.of(Prepare)
    assert [(fact.name, fact.selected_node) for fact in prepare.facts] == [("data", prepare.node)]
    scene.handle(Prepared("default/p", prepare.pod.uid))
    return scene, prepare


def bind_claim(scene, node):
    scene.put(volume(node))
    bound = {"annotations": {SELECTED: node, "pv.kubernetes.io/bind-completed": "yes"}}
    scene.patch("PersistentVolumeClaim", "default/data", metadata=bound, spec={"volumeName": "pv"}, status={"phase": "Bound"})


def test_volumes_are_written_and_waited_for_before_the_binding():
    scene, prepare = waiting_for_a_volume()
    scene.run(60)
    assert scene.of(Bind) == []
    scene.patch("PersistentVolumeClaim", "default/data", metadata={"annotations": {SELECTED: prepare.node}})
    scene.run(60)
    assert scene.of(Bind) == []
    bind_claim(scene, prepare.node)
    assert [bind.node for bind in scene.of(Bind)] == [prepare.node]


def test_a_volume_elsewhere_undoes_the_decision():
    scene, prepare = waiting_for_a_volume()
    other = "b" if prepare.node == "a" else "a"
    bind_claim(scene, other)
    assert scene.of(Bind) == []
    assert scene.of(Mark)[-1].message == (
        f'binding volumes: pv "pv" node affinity doesn\'t match node "{prepare.node}": no matching NodeSelectorTerms'
    )
    scene.run(5)
    assert [bind.node for bind in scene.of(Bind)] == [other]


def test_failed_provisioning_undoes_the_decision_and_the_pod_is_tried_again():
    scene, prepare = waiting_for_a_volume()
    scene.patch("PersistentVolumeClaim", "default/data", metadata={"annotations": {SELECTED: prepare.node}})
    scene.patch("PersistentVolumeClaim", "default/data", metadata={"annotations": {}})
    scene.objects["PersistentVolumeClaim", "default/data"]["metadata"]["annotations"] = {}
    scene.put(scene.objects["PersistentVolumeClaim", "default/data"])
    assert scene.of(Mark)[-1].message == 'binding volumes: provisioning failed for PVC "data"'
    scene.run(5)
    assert len(scene.of(Prepare)) == 2


def test_a_selected_node_that_is_never_shown_was_taken_back_unseen():
    scene, _ = waiting_for_a_volume()
    scene.run(99)
    assert scene.of(Mark) == []
    scene.run(2)
    assert scene.of(Mark)[-1].message == 'binding volumes: provisioning failed for PVC "data"'


def test_volumes_that_do_not_come_end_the_attempt():
    scene, prepare = waiting_for_a_volume()
    scene.patch("PersistentVolumeClaim", "default/data", metadata={"annotations": {SELECTED: prepare.node}})
    scene.run(599)
    assert scene.of(Mark) == []
    scene.run(2)
    assert scene.of(Mark)[-1].message == "binding volumes: context deadline exceeded"


def test_a_pod_in_wait_for_volumes_that_another_scheduler_binds_is_its():
    scene, prepare = waiting_for_a_volume()
    scene.patch("Pod", "default/p", spec={"nodeName": prepare.node})
    assert not scene.loop.ledger.flights.by_uid
    scene.run(700)
    assert scene.of(Mark) == []
    assert list(scene.loop.ledger.store.seats[scene.loop.ledger.store.row_of[prepare.node]]) == ["default/p"]


def test_a_gated_pod_is_not_tried_by_a_new_policy():
    scene = Scene().start("node n1 cpu=4\npod p cpu=1 gates=example.com/wait")
    for _ in range(3):
        scene.handle(PolicyChanged(scene.loop.ledger.policy, 1, "h"))
        scene.run()
    entry = scene.loop.ledger.queue.pods["default/p"]
    assert (scene.place("default/p"), entry.attempts) == ("gated", 0)
    scene.show("pod p cpu=1")
    scene.run()
    assert [each.attempt for each in scene.loop.ledger.records.of("default/p")][-1] == 1
