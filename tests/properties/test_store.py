"""Incremental = rebuilt: after any changes a store shows what a new store made from the same facts shows."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.clusters import FACTS, configurations, node, pod
from properties.events import NAMESPACE, World, fact_of
from properties.snapshots import assert_equal, snapshot
from stowplan import load_policy
from stowplan.objects import Namespace
from stowplan.policy.attempt import attempt
from stowplan.state import Column, Store, catalogue, label

COLUMNS = [column for column in vars(catalogue).values() if isinstance(column, Column)]
KEYS = ("topology.kubernetes.io/zone", "kubernetes.io/hostname", "disk")


def touch(store, policy):
    """Make columns, counters and domain tables, as decisions do."""
    for column in (*COLUMNS, *map(label, KEYS)):
        store.storage(column)
    for waiting in list(store.pending.values()):
        attempt(policy, store, waiting)


def check(data, steps):
    world = World(data)
    policy = load_policy(data.draw(configurations()))
    world.populate(data.draw(st.integers(0, 5)), data.draw(st.integers(2, 8)))
    for _ in range(data.draw(st.integers(1, steps))):
        world.step()
        if data.draw(st.booleans()):
            touch(world.store, policy)
            fresh = world.rebuilt()
            touch(fresh, policy)
            assert_equal(world.store, fresh)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.data())
def test_a_changed_store_equals_a_new_one(data):
    check(data, 8)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_store_that_lived_long_equals_a_new_one(data):
    check(data, 30)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_forgetting_undoes_assuming_with_its_facts(data):
    world = World(data)
    world.populate(data.draw(st.integers(1, 4)), data.draw(st.integers(1, 6)))
    world.set_fact()
    before = snapshot(world.store, world.store)
    pods = list(world.store.pending.values())
    for waiting in pods:
        world.store.assume(waiting, data.draw(st.sampled_from(sorted(world.nodes))), [fact_of(NAMESPACE)])
    for waiting in reversed(pods):
        world.store.forget(waiting)
    assert snapshot(world.store, world.store) == before


def test_what_a_confirmed_pod_did_is_not_undone_by_another_of_its_name():
    store = Store()
    old, new = fact_of(FACTS[0]), fact_of(NAMESPACE)
    for item in (node("n1", ()), pod("p", ())):
        store.add(fact_of(item))
    store.set_fact(old)
    store.assume(store.pending["default/p"], "n1", [new])
    store.set_pod(fact_of(pod("p", (), "n1")))
    store.remove_pod("default/p")
    again = fact_of(pod("p", ()))
    store.set_pod(again)
    store.assume(again, "n1")
    store.forget(again)
    assert store.facts[Namespace]["web"] == new
