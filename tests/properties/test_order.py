"""The order of nodes in the input means nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.clusters import ODD_FRAGMENTS, clusters, configurations
from stowplan import explain, load_cluster, load_policy, simulate


def check(data):
    objects = data.draw(clusters(odd=ODD_FRAGMENTS))
    policy = load_policy(data.draw(configurations()))
    # pods keep their order: it decides who is first in the queue and among equally important victims
    pods = [item for item in objects if item["kind"] == "Pod"]
    others = data.draw(st.permutations([item for item in objects if item["kind"] != "Pod"]))
    cut = data.draw(st.integers(0, len(others)))
    shuffled = [*others[:cut], *pods, *others[cut:]]
    assert explain(policy, load_cluster(objects)).to_json() == explain(policy, load_cluster(shuffled)).to_json()
    assert simulate(policy, load_cluster(objects)).to_json() == simulate(policy, load_cluster(shuffled)).to_json()


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.data())
def test_shuffled_input_gives_the_same_answers(data):
    check(data)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.data())
def test_shuffled_input_gives_the_same_answers_in_many_clusters(data):
    check(data)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_simulation_leaves_the_cluster_as_it_was(data):
    cluster = load_cluster(data.draw(clusters(odd=ODD_FRAGMENTS)))
    policy = load_policy(data.draw(configurations()))
    facts, order = {kind: dict(kept) for kind, kept in cluster.facts.items()}, list(cluster.pending)
    before = explain(policy, cluster).to_json()
    first = simulate(policy, cluster).to_json()
    assert cluster.facts == facts
    assert list(cluster.pending) == order
    assert simulate(policy, cluster).to_json() == first
    assert explain(policy, cluster).to_json() == before
