"""What classes keep: bounded memory, shared layers, logs that forget."""

import numpy as np
import pytest

from stowplan import load_cluster, load_policy
from stowplan.policy.attempt import attempt
from stowplan.policy.choose import Chooser
from stowplan.policy.classes import Classes
from stowplan.state import ChangeLog, Gone
from stowplan.state.changelog import KEPT
from stowplan.state.changes import Kinds
from stowplan.state.counters import MOVES_KEPT

NODES, KINDS = 64, 12


def node(number):
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "20"}
    name = f"n{number:03}"
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {}, "status": {"allocatable": amounts}}


def pod(name, milli, image="a", on=None):
    container = {"name": "c", "image": image, "resources": {"requests": {"cpu": f"{milli}m", "memory": "100Mi"}}}
    spec = {"schedulerName": "default-scheduler", "containers": [container]} | ({"nodeName": on} if on else {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "x", "uid": name},
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def cluster(*pods):
    return load_cluster([*map(node, range(NODES)), *pods])


def test_memory_stays_within_the_budget_and_decisions_are_the_same():
    store, policy = cluster(*(pod(f"p{i}", 100 + i) for i in range(KINDS))), load_policy(None)
    roomy, tight = Chooser(policy, store), Chooser(policy, store)
    tight._classes = Classes(store, budget=3000)
    for _ in range(3):
        for found in list(store.pending.values()):
            assert (tight.choose(found).row, tight.choose(found).total) == (roomy.choose(found).row, roomy.choose(found).total)
    assert tight._classes.nbytes <= 3000 < roomy._classes.nbytes
    assert 0 < len(tight._classes) < len(roomy._classes) == KINDS


def test_pods_that_request_the_same_share_what_depends_on_requests():
    store = cluster(pod("a", 100, "image-a"), pod("b", 100, "image-b"), pod("c", 200, "image-a"))
    chooser = Chooser(load_policy(None), store)
    sizes = []
    for found in list(store.pending.values()):
        chooser.choose(found)
        sizes.append(chooser._classes.nbytes)
    assert sizes[0] == sizes[1] < sizes[2]


def test_ties_are_those_of_the_moment_they_are_asked_for_first():
    store = cluster(pod("a", 4000), pod("b", 100))
    chooser = Chooser(load_policy(None), store)
    first, second = store.pending.values()
    choice = chooser.choose(first)
    tied = choice.tied
    store.assume(first, "n000")
    assert choice.tied is tied
    assert tied is not None
    assert tied.all()
    assert chooser.choose(second).tied.nonzero()[0].tolist() == list(range(1, NODES))


def test_a_class_that_fell_behind_further_than_the_log_reaches():
    store, policy = cluster(pod("a", 100), pod("b", 7900)), load_policy(None)
    chooser = Chooser(policy, store)
    small, large = store.pending.values()
    chooser.choose(large)
    store.log.extend([0] * (2 * KEPT))
    store.assume(small, "n000")
    store.log.extend([1] * (2 * KEPT))
    choice = chooser.choose(large)
    assert choice.feasible == NODES
    assert choice.row == int(attempt(policy, store, large).best[0]) == 1


def apart(name, on=None):
    """A pod that keeps its own kind off its node."""
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
    found = pod(name, 100, on=on)
    found["metadata"]["labels"] = {"app": "a"}
    found["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return found


def test_a_class_that_fell_behind_further_than_a_counter_keeps_account():
    labelled = [node(number) for number in range(NODES)]
    for item in labelled:
        item["metadata"]["labels"] = {"kubernetes.io/hostname": item["metadata"]["name"]}
    store, policy = load_cluster([*labelled, *(apart(f"p{number}") for number in range(NODES))]), load_policy(None)
    chooser = Chooser(policy, store)
    late, *others = store.pending.values()
    store.assume(others[0], "n000")
    assert chooser.choose(late).row == 1
    store.forget(others[0])
    assert chooser.choose(late).row == 0
    for _ in range(2 * MOVES_KEPT // (NODES - 1) + 2):
        for number, other in enumerate(others):
            store.assume(other, f"n{number:03}")
        for other in others:
            store.forget(other)
    for number, other in enumerate(others):
        store.assume(other, f"n{number:03}")
    choice = chooser.choose(late)
    assert (choice.row, choice.feasible) == (NODES - 1, 1)
    assert attempt(policy, store, late).best.tolist() == [NODES - 1]


@pytest.mark.parametrize("written", [0, 1, 1023, 1024, 5000, KEPT, 2 * KEPT, 2 * KEPT + 1, 5 * KEPT])
def test_a_log_keeps_the_newest(written):
    log = ChangeLog()
    log.extend(range(written))
    assert len(log) == written
    for behind in (0, 1, 1000, KEPT):
        if behind <= written:
            assert log.since(written - behind).tolist() == list(range(written - behind, written))
    assert log.since(written - 5, most=4) is None
    assert log.since(written - KEPT - 1) is None


def test_sums_follow_pods_that_come_back_and_go_again():
    rng = np.random.default_rng(7)
    pods = list(cluster(*(pod(f"p{i}", 100 * i + 50) for i in range(4))).pending.values())
    kinds = Kinds()
    kinds_of = [kinds.code(found) for found in pods]
    codes = rng.choice(kinds_of, (6, 5)).astype(np.intp)
    gone = Gone(kinds, codes, rng.random((6, 5)) < 0.8)

    def number(found):
        return found.requested.get("cpu")

    for step in range(20):
        table = np.array([number(found) for found in kinds.pods])
        assert gone.sum("cpu", number).tolist() == (table[codes] * gone.mask).sum(axis=1).tolist()
        place, back = step % 5, bool(step % 2)
        rows = (gone.mask[:, place] == back).nonzero()[0]
        gone.set(rows, place, gone=not back)
