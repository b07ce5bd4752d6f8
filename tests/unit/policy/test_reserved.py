"""What is kept between decisions while pods are nominated, or a pod fits nowhere: random walks of other pods around it."""

import numpy as np
import pytest

from stowplan import load_cluster, load_policy
from stowplan.objects import read
from stowplan.policy.attempt import attempt
from stowplan.policy.choose import Chooser

ZONE = "topology.kubernetes.io/zone"
SELECTOR = {"matchLabels": {"app": "x"}}
SPREAD = {
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
    ]
}
APART = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": ZONE, "labelSelector": SELECTOR}]}
KINDS = (
    {},
    SPREAD,
    {"affinity": {"podAntiAffinity": APART}},
    {"affinity": {"podAffinity": APART}},
    SPREAD | {"affinity": {"podAntiAffinity": APART}},
)


def node(number):
    name, amounts = f"n{number}", {"cpu": "8", "memory": "16Gi", "pods": "20"}
    labels = {ZONE: "ab"[number % 2]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {"allocatable": amounts}}


def pod(name, cpu, app="x", *, on=None, nominated="", priority=0, **spec):
    container = {"name": "c", "image": "a", "resources": {"requests": {"cpu": str(cpu)}}}
    spec = {"schedulerName": "default-scheduler", "priority": priority, "containers": [container], **spec}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "x", "uid": name, "labels": {"app": app}},
        "spec": spec | ({"nodeName": on} if on else {}),
        "status": {"phase": "Pending", "nominatedNodeName": nominated},
    }


def walk(store, seed, steps, largest, priorities=(0,)):
    """Other pods come and go, one at a time."""
    draw = np.random.default_rng(seed)
    for _ in range(steps):
        name = f"r{draw.integers(9)}"
        store.remove_pod(f"x/{name}")
        if draw.random() < 0.75:
            at, app, priority = f"n{draw.integers(4)}", "xy"[draw.integers(2)], int(draw.choice(priorities))
            store.set_pod(read(pod(name, draw.integers(1, largest + 1), app, on=at, priority=priority)))
        yield


def same(policy, store, choice, waiting):
    found = attempt(policy, store, waiting)
    assert choice.row == (int(found.best[0]) if len(found.best) else None)
    assert choice.message == found.message
    if choice.row is not None:
        assert choice.feasible == len(found.feasible)
        assert choice.tied.nonzero()[0].tolist() == sorted(found.best.tolist())
    else:
        assert choice.refused == found.infeasible
        assert (choice.preemption and choice.preemption.to_json()) == (found.preemption and found.preemption.to_json())


@pytest.mark.parametrize("kind", range(len(KINDS)))
@pytest.mark.parametrize("priority", [0, 5, 20])
def test_rows_with_nominated_pods_are_judged_as_they_stand(kind, priority):
    nominated = [pod("a", 3, nominated="n0", priority=10), pod("b", 4, "y", nominated="n1", priority=5)]
    store, policy = load_cluster([*map(node, range(4)), *nominated]), load_policy(None)
    chooser, waiting = Chooser(policy, store), [read(pod(f"w{p}", 2, priority=p, **KINDS[kind])) for p in (0, priority)]
    rows = set()
    for _ in walk(store, 7 * kind + priority, 50, 3):
        for found in waiting:
            choice = chooser.choose(found)
            same(policy, store, choice, found)
            rows.add(choice.row)
    assert len(rows) > 1


@pytest.mark.parametrize("kind", range(len(KINDS)))
@pytest.mark.parametrize("priorities", [(0,), (0, 0, 0, 0, -1)])
def test_a_failure_is_given_again_only_while_it_is_true(kind, priorities, monkeypatch):
    attempts = []
    monkeypatch.setattr("stowplan.policy.failures.attempt", lambda *args: attempts.append(args) or attempt(*args))
    full = [pod(f"f{i}", 5, on=f"n{i}") for i in range(4)]
    store, policy = load_cluster([*map(node, range(4)), *full]), load_policy(None)
    chooser, waiting, failures = Chooser(policy, store), read(pod("w", (3, 3, 3, 3, 1)[kind], **KINDS[kind])), 0
    for _ in walk(store, kind, 80, 1, priorities):
        choice = chooser.choose(waiting)
        same(policy, store, choice, waiting)
        failures += choice.row is None
    assert 0 < len(attempts) < failures or len(priorities) > 1
