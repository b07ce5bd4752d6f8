"""The smallest changes that flip a decision, compared with trying every change in turn."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowplan import load_cluster, load_policy
from stowplan.policy.attempt import attempt
from stowplan.policy.flip import _bisect, margin, ranking, request_flips, resized, weight_flips, written

POLICY = load_policy(None)


def node(name, cpu, memory, *, disk="hdd", nasty=False):
    taints = [{"key": "slow", "effect": "PreferNoSchedule"}] if nasty else []
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {"disk": disk}},
        "spec": {"taints": taints},
        "status": {"allocatable": {"cpu": str(cpu), "memory": f"{memory}Gi", "pods": "110"}},
    }


def pod(cpu="500m", memory="1Gi", **more):
    term = {"weight": 50, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    requests = {"cpu": cpu, "memory": memory}
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}], "affinity": affinity}
    return {"kind": "Pod", "metadata": {"name": "p", "namespace": "web"}, "spec": spec | more}


def judged(*objects):
    store = load_cluster(objects)
    return store, attempt(POLICY, store, store.pending["web/p"])


nodes = st.lists(
    st.tuples(st.integers(1, 16), st.integers(2, 64), st.sampled_from(["ssd", "hdd"]), st.booleans()), min_size=2, max_size=6
).map(lambda rows: [node(f"n{i}", cpu, memory, disk=disk, nasty=nasty) for i, (cpu, memory, disk, nasty) in enumerate(rows)])


def best_with_weight(store, found, plugin, weight):
    """Rows that win with another weight of one plugin; 0 disables its score."""
    profile = POLICY.profiles[found.profile]
    score = tuple(name for name in profile.points["score"] if weight or name != plugin)
    changed = replace(profile, points={**profile.points, "score": score}, weights={**profile.weights, plugin: weight})
    return attempt(replace(POLICY, profiles={found.profile: changed}), store, found.pod).best.tolist()


@settings(max_examples=25, deadline=None)
@given(nodes)
def test_weight_flips_are_the_smallest_that_change_the_winner(some):
    store, found = judged(*some, pod())
    winner, flips = int(found.best[0]), {flip.plugin: flip for flip in weight_flips(found)}
    for plugin, scored in found.scoring.scores.items():
        flip = flips.get(plugin)
        reach = abs(flip.changed - scored.weight) if flip else 12
        for step in range(1, min(reach, 12)):
            for weight in {scored.weight + step, max(0, scored.weight - step)}:
                assert winner in best_with_weight(store, found, plugin, weight)
        if flip is not None:
            after = best_with_weight(store, found, plugin, flip.changed)
            assert winner not in after
            assert after[0] == flip.winner
    steps = [abs(flip.changed - flip.weight) for flip in weight_flips(found)]
    assert steps == sorted(steps)


@settings(max_examples=50, deadline=None)
@given(nodes)
def test_parts_of_the_margin_add_up(some):
    store, found = judged(*some, pod())
    ahead = margin(found)
    order = ranking(found)
    totals = found.scoring.totals[order].tolist()
    assert totals == sorted(totals, reverse=True)
    assert ahead.winner == found.best[0]
    assert ahead.points == totals[0] - totals[1] == sum(points for _, points in ahead.parts)
    assert all(points for _, points in ahead.parts)
    assert store.nodes[ahead.winner].name != store.nodes[ahead.runner_up].name


@settings(max_examples=15, deadline=None)
@given(nodes)
def test_request_flips_hold_when_the_changed_pod_is_read_anew(some):
    store, found = judged(*some, pod())
    for flip in request_flips(POLICY, store, found):
        amounts = {flip.resource: f"{flip.changed}m" if flip.resource == "cpu" else str(flip.changed)}
        _, again = judged(*some, pod(**amounts))
        assert again.best[0] == flip.winner
        assert found.best[0] not in again.best
        assert (found.best[0] in again.infeasible) == flip.full
        unit = 1 if flip.resource == "cpu" else 1 << 20
        nearer = flip.changed + (unit if flip.changed < flip.amount else -unit)
        assert found.best[0] in attempt(POLICY, store, resized(found.pod, flip.resource, nearer)).best


def test_a_larger_request_drives_a_pod_from_a_small_node():
    small, large = node("small", 2, 64, disk="ssd"), node("large", 16, 64)
    store, found = judged(small, large, pod(cpu="1"))
    assert store.nodes[found.best[0]].name == "small"
    flips = {flip.resource: flip for flip in request_flips(POLICY, store, found)}
    assert flips["cpu"].changed == 2001
    assert flips["cpu"].full
    assert store.nodes[flips["cpu"].winner].name == "large"


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"name": "c"}]},
        {"containers": [{"name": "c"}, {"name": "d", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]},
        {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
    ],
    ids=["silent", "half silent", "pod level"],
)
def test_requests_that_do_not_count_alike_everywhere_are_left_alone(spec):
    store, found = judged(node("a", 2, 64), node("b", 16, 64), pod(**spec))
    assert request_flips(POLICY, store, found) == []


def test_nothing_to_flip_with_one_feasible_node_or_none():
    for objects in ([node("a", 4, 8)], [node("a", 4, 8), node("b", 0, 8)], [node("a", 0, 8)], []):
        store, found = judged(*objects, pod())
        assert margin(found) is None
        assert weight_flips(found) == []
        assert request_flips(POLICY, store, found) == []


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_search_finds_the_threshold_wherever_it_is(threshold, most):
    found = _bisect(lambda units: "yes" if units >= threshold else None, most)
    assert found == ((threshold, "yes") if threshold <= most else None)


def test_search_has_an_end():
    asked = []

    def never(units):
        asked.append(units)

    assert _bisect(never, 1 << 60) is None
    assert _bisect(never, 0) is None
    assert len(asked) <= 62


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 250, "250m"),
        ("cpu", 2000, "2"),
        ("cpu", -1500, "-1500m"),
        ("memory", 1536 << 20, "1536Mi"),
        ("memory", 2 << 30, "2Gi"),
        ("nvidia.com/gpu", 3, "3"),
    ],
)
def test_amounts_can_be_copied_into_a_manifest(resource, amount, text):
    assert written(resource, amount) == text
