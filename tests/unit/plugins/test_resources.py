"""NodeResourcesFit and NodeResourcesBalancedAllocation: many rows and few, floats and integers, are ways to one answer."""

import random

import numpy as np
import pytest

from stowplan.objects import read
from stowplan.plugins import node_resources_balanced_allocation as balanced
from stowplan.plugins import node_resources_fit as fit
from stowplan.policy.compile import load
from stowplan.state import Cluster, Feasible, Ledger, Store

PROFILE = load(None).profiles["default-scheduler"]
FEW = 50


def seeded(number):
    return random.Random(number)  # noqa: S311 - the same cases in every run


def node(number, draw, **more):
    amounts = {"cpu": str(draw.randint(2, 9)), "memory": f"{draw.randint(4, 19)}Gi", "pods": str(draw.randint(3, 9))} | more
    return read({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}"}, "status": {"allocatable": amounts}})


def pod(name, on=None, **requests):
    containers = [{"name": "c", "resources": {"requests": requests}}]
    spec = {"priority": 0, "containers": containers} | ({"nodeName": on} if on else {})
    metadata = {"name": name, "namespace": "default", "uid": name}
    return read({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def some_pod(name, draw, on=None):
    requests = {"cpu": f"{draw.randint(1, 3000)}m", "memory": f"{draw.randint(1, 6000)}Mi"}
    return pod(name, on, **{key: amount for key, amount in requests.items() if draw.random() < 0.8})


def filled_store(draw, **more):
    store = Store()
    for number in range(balanced.MANY + FEW):
        store.add(node(number, draw, **more))
    for number in range(2 * len(store.nodes)):
        store.add(some_pod(f"p{number}", draw, f"n{draw.randrange(len(store.nodes))}"))
    return store


def answers(store, asking, rows=None):
    """What both plugins say: whether some resource is short, and the scores."""
    cluster = Cluster(store, rows)
    everyone = Feasible(np.ones(cluster.size, dtype=np.int64))
    ask = fit.asks(asking, PROFILE.args["NodeResourcesFit"], cluster)
    masks = {reason.text: mask.tolist() for reason, mask in fit.rejects(ask, cluster).items() if mask.any()}
    found = [[text for text, mask in masks.items() if mask[place]] for place in range(cluster.size)]
    even = balanced.asks(asking, PROFILE.args["NodeResourcesBalancedAllocation"], cluster)
    scores = [fit.scores(ask, cluster, everyone), balanced.scores(even, cluster, everyone)]
    return list(zip(found, *(score.tolist() for score in scores), strict=True))


def in_pieces(store, asking):
    size = len(store.nodes)
    return [answer for start in range(0, size, FEW) for answer in answers(store, asking, np.arange(start, min(start + FEW, size)))]


@pytest.fixture
def integers_only(monkeypatch):
    """Floats are never exact."""
    return lambda: monkeypatch.setattr(Ledger, "__init__", _without_floats)


def _without_floats(self, storage, _):
    self._storage, self._block = storage, None


def test_all_rows_few_rows_and_integers_agree_while_things_change(integers_only):
    draw = seeded(1)
    store, said = filled_store(draw), []
    asking = pod("asking", cpu="700m", memory="900Mi")
    for step in range(6):
        said.append(answers(store, asking))
        assert said[-1] == in_pieces(store, asking) == answers(as_new(store), asking)
        change(store, draw, step)
    assert len({str(found) for found in said}) == len(said)
    assert any(found for found, *_ in said[0])
    integers_only()
    assert answers(as_new(store), asking) == answers(store, asking) == in_pieces(store, asking)


def as_new(store):
    new = Store()
    for fact in (*store.nodes, *(pod for seats in store.seats for pod in seats.values())):
        new.add(fact)
    return new


def change(store, draw, step):
    for number in range(20):
        store.add(some_pod(f"late{step}-{number}", draw, f"n{draw.randrange(FEW, len(store.nodes))}"))
    if step == 1:
        store.set_node(node(7, draw))
    if step == 2:
        store.set_node(node("new", draw))
    if step == 3:
        store.remove_node("n3")
    if step == 4:
        for key in [key for seats in store.seats[:200] for key in seats]:
            store.remove_pod(key)


def test_a_pod_may_bring_a_resource_that_no_node_knows():
    store = filled_store(seeded(2))
    asking = pod("asking", cpu="100m", **{"example.com/gpu": "1"})
    before = answers(store, asking)
    store.add(pod("first", "n5", cpu="1", **{"example.com/gpu": "1"}))
    after = answers(store, asking)
    assert after == answers(as_new(store), asking)
    assert [row for row, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]] == [5]


def test_amounts_that_float64_cannot_hold_are_compared_as_integers():
    have = (1 << 53) + 1
    store = Store()
    for name in ("n0", "n1"):
        store.add(node(name[1:], seeded(3), memory=str(have)))
    store.add(pod("runs", "n1", memory="1"))
    found = answers(store, pod("asking", memory=str(have)))
    assert [reasons for reasons, *_ in found] == [[], ["Insufficient memory"]]


def test_sums_that_leave_the_exact_range_are_compared_as_integers():
    store = Store()
    store.add(node(0, seeded(4), memory="1Ti", cpu="4"))
    assert [reasons for reasons, *_ in answers(store, pod("asking", cpu="1"))] == [[]]
    store.add(pod("huge", "n0", cpu=str(1 << 52)))
    store.add(pod("small", "n0", cpu="1m"))
    store.remove_pod("default/huge")
    assert [reasons for reasons, *_ in answers(store, pod("exact", cpu="3999m"))] == [[]]
    assert [reasons for reasons, *_ in answers(store, pod("more", cpu="4"))] == [["Insufficient cpu"]]
