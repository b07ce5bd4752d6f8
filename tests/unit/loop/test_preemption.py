"""Preemption that is carried out in a simulated cluster, and the cluster that is as before."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.snapshots import assert_equal, snapshot
from stowplan import load_cluster, load_policy, simulate
from stowplan.edge.notation import read_notation
from stowplan.objects import DisruptionBudget

POLICY = load_policy(None)


def cluster(text):
    return load_cluster(read_notation(text))


def applied(text, policy=POLICY):
    """Where pods went and who was evicted for whom, without the namespace."""
    simulation = simulate(policy, cluster(text), preemption="apply")
    return (
        {placement.pod.name: placement.node for placement in simulation.placements},
        [(eviction.pod.name, eviction.node, eviction.preemptor.name) for eviction in simulation.evictions],
    )


FULL = """
node n1 cpu=2 mem=8Gi
node n2 cpu=2 mem=8Gi
pod a cpu=1 priority=1 on=n1
pod b cpu=1 priority=2 on=n1
pod c cpu=2 priority=9 on=n2
pod urgent cpu=1 priority=100
"""


def test_the_victim_goes_and_the_preemptor_takes_its_place():
    assert applied(FULL) == ({"urgent": "n1"}, [("a", "n1", "urgent")])


def test_a_report_evicts_nobody():
    simulation = simulate(POLICY, cluster(FULL))
    assert [placement.node for placement in simulation.placements] == [None]
    assert list(simulation.evictions) == []
    assert simulation.to_json()["preemption"] == {"mode": "report"}
    step = simulation.to_json()["sequence"][0]
    assert step["preemption"]["victims"] == ["default/a"]
    assert "evicted" not in step


def test_the_result_says_who_went_for_whom():
    found = simulate(POLICY, cluster(FULL + "budget tight match=app=x allowed=0\n"), preemption="apply").to_json()
    assert found["preemption"] == {
        "mode": "apply",
        "victims": "deleted at once, not scheduled again",
        "evictions": [{"pod": "default/a", "node": "n1", "preemptor": "default/urgent"}],
    }
    step = found["sequence"][0]
    assert step["evicted"] == step["preemption"]["victims"] == ["default/a"]
    assert (step["node"], step["feasible"], "message" in step) == ("n1", 1, False)


def test_amounts_follow():
    use = simulate(POLICY, cluster(FULL.replace("pod urgent cpu=1", "pod urgent cpu=2")), preemption="apply").use
    assert use.before["pods"].tolist() == [2, 1]
    assert use.after["pods"].tolist() == [1, 1]
    assert np.array_equal(use.before["cpu"], use.after["cpu"])


def test_each_preemptor_sees_what_earlier_ones_have_done():
    places, evictions = applied(FULL + "pod later cpu=1 priority=50\npod last cpu=2 priority=40\n")
    assert places == {"urgent": "n1", "later": "n1", "last": "n2"}
    assert evictions == [("a", "n1", "urgent"), ("b", "n1", "later"), ("c", "n2", "last")]


def test_the_nominated_node_is_taken_though_another_would_score_better():
    # without the victims both nodes have room for the pod, and n2 then is the emptier one
    text = """
    node n1 cpu=2 mem=8Gi
    node n2 cpu=16 mem=8Gi
    pod low cpu=2 priority=1 on=n1
    pod mid cpu=16 priority=2 on=n2
    pod urgent cpu=2 priority=100
    """
    assert applied(text) == ({"urgent": "n1"}, [("low", "n1", "urgent")])


def test_equal_nodes_go_by_name_whatever_their_order():
    nodes = ["node n2 cpu=1 mem=8Gi", "node n1 cpu=1 mem=8Gi", "node n3 cpu=1 mem=8Gi"]
    pods = "\n".join(f"pod v{i} cpu=1 priority=0 on=n{i}" for i in (3, 2, 1)) + "\npod p cpu=1 priority=1"
    for order in (nodes, nodes[::-1], sorted(nodes)):
        assert applied("\n".join([*order, pods])) == ({"p": "n1"}, [("v1", "n1", "p")])


def test_pods_that_never_preempt_evict_nobody_and_do_not_speak_for_others():
    text = FULL + "pod meek cpu=2 priority=100 patient\npod bold cpu=2 priority=100\n"
    places, evictions = applied(text.replace("pod urgent cpu=1 priority=100\n", ""))
    assert places == {"meek": None, "bold": "n1"}
    assert [name for name, _, _ in evictions] == ["b", "a"]
    reports = simulate(POLICY, cluster(text)).placements
    assert {report.pod.name: bool(report.preemption.victims) for report in reports} == {"urgent": True, "meek": False, "bold": True}


NOMINATED = """
node n1 cpu=2 mem=8Gi
node n2 cpu=1 mem=8Gi
pod low cpu=2 priority=0 on=n1
pod waiting cpu=1 priority=5 nominated=n1
pod urgent cpu=2 priority=100
"""


def test_less_important_pods_lose_their_nomination():
    store = cluster(NOMINATED)
    seen = []

    def watch(done, _):
        pod = store.pending.get("default/waiting")
        seen.append((done, pod.nominated_node if pod else "placed", dict(store.nominated)))

    placements = simulate(POLICY, store, watch, "apply").placements
    assert [(placement.pod.name, placement.node) for placement in placements] == [("urgent", "n1"), ("waiting", "n2")]
    assert seen == [(1, "", {}), (2, "placed", {})]
    assert placements[1].pod.nominated_node == "n1"  # pods are reported as they were
    assert store.nominated["n1"].keys() == {"default/waiting"}


def test_a_pod_without_any_candidate_loses_its_nomination():
    text = """
    node n1 cpu=2 mem=8Gi
    pod low cpu=1 priority=0 on=n1
    pod stuck cpu=4 priority=10 nominated=n1
    pod small cpu=1 priority=1
    """
    assert applied(text) == ({"stuck": None, "small": "n1"}, [])
    # while it counts as running there, nobody else gets the room
    assert [placement.node for placement in simulate(POLICY, cluster(text)).placements] == [None, None]


def test_budgets_shrink_with_every_eviction():
    text = """
    node n1 cpu=1 mem=8Gi
    node n2 cpu=1 mem=8Gi
    node n3 cpu=1 mem=8Gi
    pod a cpu=1 priority=0 labels=app=ab on=n1
    pod b cpu=1 priority=0 labels=app=ab on=n2
    pod c cpu=1 priority=5 on=n3
    budget ab match=app=ab allowed=1
    pod p cpu=1 priority=100
    pod q cpu=1 priority=100
    """
    store = cluster(text)
    simulation = simulate(POLICY, store, preemption="apply")
    assert [(eviction.pod.name, eviction.budget) for eviction in simulation.evictions] == [("a", None), ("c", None)]
    assert store.facts[DisruptionBudget]["default/ab"].allowed == 1


def test_a_broken_budget_is_named():
    text = """
    node n1 cpu=1 mem=8Gi
    pod a cpu=1 priority=0 labels=app=a on=n1
    budget strict match=app=a allowed=0
    pod p cpu=1 priority=100
    """
    found = simulate(POLICY, cluster(text), preemption="apply").to_json()["preemption"]["evictions"]
    assert found == [{"pod": "default/a", "node": "n1", "preemptor": "default/p", "brokenBudget": "default/strict"}]


def test_victims_free_what_they_held_for_pods_that_come_later():
    text = """
    node n1 cpu=4 mem=8Gi
    pod low cpu=4 priority=0 on=n1 port=80
    pod urgent cpu=1 priority=100 port=80
    pod small cpu=3 priority=0
    """
    assert applied(text) == ({"urgent": "n1", "small": "n1"}, [("low", "n1", "urgent")])


def test_another_word_is_refused():
    with pytest.raises(ValueError, match="maybe"):
        simulate(POLICY, cluster(FULL), preemption="maybe")


CROWD = """
node n{1..3} cpu=3 mem=8Gi zone=z
budget all match=app=v allowed=2
pod v1 cpu=1 priority=0 labels=app=v on=n1
pod v2 cpu=1 priority=0 labels=app=v on=n1 port=80
pod v3 cpu=1 priority=0 labels=app=w apart=host:match=app=q on=n1
pod u{1..3} cpu=1 priority=1 labels=app=v on=n2
pod t{1..3} cpu=1 priority=2 on=n3
pod waiting cpu=1 priority=3 nominated=n2
pod first cpu=2 priority=50 labels=app=f spread=zone:max=9
pod second cpu=3 priority=40 port=80
pod third cpu=1 priority=30
"""


def orders(store):
    """What equality of mappings does not tell: the order of pods."""
    return [list(seats) for seats in store.seats], list(store.pending), {name: list(pods) for name, pods in store.nominated.items()}


def warmed():
    """The crowd with every column made that a simulation looks at, and a copy of what they show."""
    store = cluster(CROWD)
    simulate(POLICY, store, preemption="apply")
    return store, snapshot(store, store), orders(store)


def test_the_cluster_is_as_before():
    store, before, order = warmed()
    first = simulate(POLICY, store, preemption="apply")
    assert len(list(first.evictions)) > 2
    assert snapshot(store, store) == before
    assert orders(store) == order
    fresh = cluster(CROWD)
    assert_equal(store, fresh)
    assert orders(store) == orders(fresh)
    assert (
        simulate(POLICY, store, preemption="apply").to_json()
        == first.to_json()
        == simulate(POLICY, fresh, preemption="apply").to_json()
    )


@pytest.mark.parametrize("mode", ["report", "apply"])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_cluster_is_as_before_when_something_breaks_off(mode, count):
    store, before, order = warmed()

    def stop(done, _):
        if done == count:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(POLICY, store, stop, mode)
    assert snapshot(store, store) == before
    assert orders(store) == order


@pytest.mark.parametrize("failing", ["assume", "evict", "set_fact"])
def test_the_cluster_is_as_before_when_a_change_fails(failing):
    store, before, order = warmed()
    real, calls = getattr(store, failing), []

    class Broken(type(store)):
        pass

    def fail(_, *arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise RuntimeError("disk on fire")
        return real(*arguments)

    setattr(Broken, failing, fail)
    store.__class__ = Broken
    with pytest.raises(RuntimeError, match="disk on fire"):
        simulate(POLICY, store, preemption="apply")
    assert snapshot(store, store) == before
    assert orders(store) == order


WORDS = ("labels=app=x", "labels=app=y", "port=80", "apart=host:match=app=x", "spread=zone:max=1;match=app=x", "terminating")


@st.composite
def crowds(draw):
    """Nodes that are as good as full, and pods of all priorities."""
    lines = [f"node n{i} cpu={draw(st.integers(1, 2))} mem=8Gi zone={draw(st.sampled_from('ab'))}" for i in range(3)]
    lines += [f"budget {app} match=app={app} allowed={draw(st.integers(0, 2))}" for app in "xy"]
    words, cpus = st.lists(st.sampled_from(WORDS), max_size=2, unique=True), st.integers(1, 2)
    for i in range(draw(st.integers(4, 8))):
        where = i % 3
        lines.append(f"pod r{i} cpu={draw(cpus)} priority={draw(st.integers(0, 3))} on=n{where} {' '.join(draw(words))}")
    for i in range(draw(st.integers(1, 4))):
        nominated = draw(st.sampled_from(("", "nominated=n0", "nominated=n1")))
        lines.append(f"pod w{i} cpu={draw(cpus)} priority={draw(st.integers(2, 9))} {nominated} {' '.join(draw(words))}")
    return "\n".join(lines)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(crowds())
def test_any_cluster_is_as_before(text):
    store = cluster(text)
    facts = {kind: dict(kept) for kind, kept in store.facts.items()}
    simulation = simulate(POLICY, store, preemption="apply")
    assert store.facts == facts
    assert_equal(store, cluster(text))
    assert orders(store) == orders(cluster(text))
    assert simulate(POLICY, store, preemption="apply").to_json() == simulation.to_json()


@settings(max_examples=80, deadline=None, derandomize=True)
@given(crowds())
def test_victims_are_less_important_and_only_once_there(text):
    simulation = simulate(POLICY, cluster(text), preemption="apply")
    evictions = list(simulation.evictions)
    assert len({eviction.pod.key for eviction in evictions}) == len(evictions)
    assert all(eviction.pod.spec.priority < eviction.preemptor.spec.priority for eviction in evictions)
    for placement in simulation.placements:
        if placement.evicted:
            assert placement.preemption.node == placement.evicted[0].node_name
            assert placement.node in {placement.preemption.node, None}


def test_the_random_clusters_hold_what_they_are_made_for():
    seen = []

    @settings(max_examples=40, deadline=None, derandomize=True, database=None)
    @given(crowds())
    def look(text):
        simulation = simulate(POLICY, cluster(text), preemption="apply")
        seen.append((len(list(simulation.evictions)), any(eviction.budget for eviction in simulation.evictions)))

    look()
    assert sum(count > 0 for count, _ in seen) > 10
    assert any(broken for _, broken in seen)
