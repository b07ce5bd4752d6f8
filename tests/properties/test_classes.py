"""Classes = full evaluation: what is kept and patched between decisions never changes one."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.clusters import (
    ODD_FRAGMENTS,
    STORAGE,
    TOPOLOGY_FRAGMENTS,
    ZONE,
    configurations,
    labelled,
    node,
    node_palettes,
    palettes,
    pod,
    pod_looks,
    port,
    requests,
    taint,
)
from properties.events import World, fact_of
from stowplan import load_policy
from stowplan.policy.attempt import attempt
from stowplan.policy.choose import Chooser, unreservable


def expected(policy, store, found):
    """What a full evaluation says, in the shape of `seen`."""
    fault = unreservable(policy.profiles[found.profile]) if found.skipped != "no profile" else None
    node = store.nodes[int(found.best[0])].name if len(found.best) else None
    totals = found.scoring.totals if found.scoring is not None else []
    return {
        "skipped": found.skipped,
        "node": None if fault else node,
        "total": int(max(totals)) if node is not None and len(totals) else 0,
        "tied": {store.nodes[row].name for row in found.best.tolist()},
        "feasible": len(found.feasible) if node is not None else 0,
        "message": fault if node is not None and fault else found.message,
        "preemption": found.preemption and found.preemption.to_json(),
    }


def seen(store, choice):
    return {
        "skipped": choice.skipped,
        "node": None if choice.row is None else store.nodes[choice.row].name,
        "total": choice.total,
        "tied": {store.nodes[row].name for row in choice.tied.nonzero()[0].tolist()} if choice.tied is not None else set(),
        "feasible": choice.feasible,
        "message": choice.message,
        "preemption": choice.preemption and choice.preemption.to_json(),
    }


class Replicas(World):
    """Changes of a cluster whose pods are replicas of a few, so that classes live long."""

    __slots__ = ("templates",)

    def populate(self, nodes, pods):
        self.palette = self.draw(palettes(*ODD_FRAGMENTS))
        for item in STORAGE:
            self.keep(fact_of(item))
        self.templates = [self.draw(pod_looks(self.palette)) for _ in range(self.draw(st.integers(1, 3)))]
        looks = self.draw(node_palettes())
        for i in range(nodes):
            self.nodes[f"n{i}"] = fact_of(node(f"n{i}", self.draw(looks)))
            self.store.set_node(self.nodes[f"n{i}"])
        for i in range(pods):
            self.add(i)

    def add(self, number):
        found = fact_of(pod(f"p{number}", self.draw(st.sampled_from(self.templates))))
        self.pods[found.key] = found
        self.store.set_pod(found)


def decide(policy, chooser, world):
    """Compare the decisions for all waiting pods, and place the first that fits."""
    placed = None
    for key, found in list(world.store.pending.items()):
        choice = chooser.choose(found)
        assert seen(world.store, choice) == expected(policy, world.store, attempt(policy, world.store, found))
        if placed is None and choice.row is not None:
            placed = key, world.store.nodes[choice.row].name
    if placed is not None:
        world.place(*placed)


def check(data, steps):
    world = Replicas(data)
    world.populate(data.draw(st.integers(2, 12)), data.draw(st.integers(4, 12)))
    policy = load_policy(data.draw(configurations()))
    chooser = Chooser(policy, world.store)
    for _ in range(data.draw(st.integers(1, steps))):
        decide(policy, chooser, world)
        if data.draw(st.booleans()):
            world.step()


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.data())
def test_classes_decide_as_a_full_evaluation_does(data):
    check(data, 8)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.data())
def test_classes_decide_as_a_full_evaluation_does_for_long(data):
    check(data, 25)


class Reserved(Replicas):
    """Replicas of several priorities, some of them nominated to nodes that have little room."""

    __slots__ = ()

    def add(self, number):
        more = ({"spec": {"priority": self.draw(st.sampled_from((0, 5, 10)))}}, self.draw(SHARES))
        found = fact_of(pod(f"p{number}", (*self.draw(st.sampled_from(self.templates)), *more)))
        self.pods[found.key] = found
        self.store.set_pod(found)

    def nominate(self):
        """A waiting pod is nominated to a node, to another one, to one that is not there, or no longer."""
        if self.store.pending:
            key = self.draw(st.sampled_from(sorted(self.store.pending)))
            name = self.draw(st.sampled_from((*sorted(self.nodes), "nowhere", "")))
            self.pods[key] = replace(self.store.pending[key], nominated_node=name)
            self.store.set_pod(self.pods[key])


SHARES = st.sampled_from((requests(cpu="1"), requests(cpu="3"), port(80), labelled(app="x"), TOPOLOGY_FRAGMENTS[0], {}))


def check_reserved(data, steps):
    world = Reserved(data)
    world.populate(data.draw(st.integers(2, 8)), data.draw(st.integers(4, 10)))
    policy = load_policy(data.draw(st.none() | configurations()))
    chooser = Chooser(policy, world.store)
    for _ in range(data.draw(st.integers(1, steps))):
        for _ in range(data.draw(st.integers(0, 3))):
            world.nominate()
        decide(policy, chooser, world)
        if data.draw(st.integers(0, 2)) == 0:
            world.step()


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.data())
def test_classes_respect_nominated_pods_as_a_full_evaluation_does(data):
    check_reserved(data, 8)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_classes_respect_nominated_pods_as_a_full_evaluation_does_for_long(data):
    check_reserved(data, 15)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.data())
def test_classes_notice_what_other_pods_change(data):
    """Counts of domains, and the number of nodes that fit: both change with pods that are placed past the class."""
    world = Replicas(data)
    for i in range(data.draw(st.integers(4, 8))):
        room = {"status": {"allocatable": {"pods": data.draw(st.sampled_from(["1", "2", "30"]))}}}
        world.nodes[f"n{i}"] = fact_of(node(f"n{i}", (room, {"metadata": {"labels": {ZONE: data.draw(st.sampled_from("abc"))}}})))
        world.store.set_node(world.nodes[f"n{i}"])
    names, looks = st.sampled_from(sorted(world.nodes)), st.sampled_from([(), (labelled(app="x"),), (labelled(app="y"),)])
    for i in range(data.draw(st.integers(0, 15))):
        world.store.set_pod(fact_of(pod(f"r{i}", data.draw(looks), data.draw(names))))
    waiting = fact_of(pod("w", (labelled(app="x"), data.draw(st.sampled_from(TOPOLOGY_FRAGMENTS)))))
    world.store.set_pod(waiting)
    policy = load_policy()
    chooser = Chooser(policy, world.store)
    for i in range(10):
        choice = chooser.choose(waiting)
        assert seen(world.store, choice) == expected(policy, world.store, attempt(policy, world.store, waiting))
        world.store.set_pod(fact_of(pod(f"other{i}", data.draw(looks), data.draw(names))))


@settings(max_examples=250, deadline=None, derandomize=True)
@given(st.data())
def test_a_failure_is_remembered_only_as_long_as_a_new_attempt_would_find_the_same(data):
    """A pod that asks for much beside others that come and go, of which those of lower priority could be evicted for it."""
    world = Replicas(data)
    for i in range(data.draw(st.integers(2, 6))):
        look = labelled(**{ZONE: data.draw(st.sampled_from("ab"))})
        world.nodes[f"n{i}"] = fact_of(node(f"n{i}", (look, data.draw(st.sampled_from(({}, ROOMY, taint("team", "NoSchedule")))))))
        world.store.set_node(world.nodes[f"n{i}"])
    sizes = st.sampled_from((requests(cpu="1"), requests(cpu="2", memory="6Gi"), port(80), {}))
    priorities = st.sampled_from((0, 0, 0, data.draw(st.sampled_from((0, -1)))))
    wanted = (
        requests(cpu="3500m", memory="7Gi"),
        port(80),
        labelled(app="x"),
        data.draw(st.sampled_from((*TOPOLOGY_FRAGMENTS, {}))),
    )
    waiting = fact_of(pod("w", wanted[data.draw(st.integers(0, 1)) :]))
    world.store.set_pod(waiting)
    policy = load_policy(data.draw(st.none() | configurations()))
    chooser = Chooser(policy, world.store)
    for _ in range(12):
        choice, found = chooser.choose(waiting), attempt(policy, world.store, waiting)
        assert seen(world.store, choice) == expected(policy, world.store, found)
        if choice.row is None and choice.skipped is None:
            assert choice.refused == found.infeasible
            assert choice.rejectors == found.rejectors
        key, name = f"r{data.draw(st.integers(0, 9))}", data.draw(st.sampled_from((None, *sorted(world.nodes))))
        looks = (data.draw(sizes), labelled(app=data.draw(st.sampled_from("xy"))), {"spec": {"priority": data.draw(priorities)}})
        if name is None:
            world.store.remove_pod(f"default/{key}")
        else:
            world.store.set_pod(fact_of(pod(key, looks, name)))


ROOMY = {"status": {"allocatable": {"cpu": "5", "memory": "12Gi"}}}
