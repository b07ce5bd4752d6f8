"""A share of the workloads: it is kept to, it only grows with the percentage, and it splits no Deployment."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowplan import load_cluster, load_policy
from stowplan.policy.rollout import place_of

PERCENT = st.one_of(st.integers(0, 100), st.floats(0, 100))
NAME = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
HASH = st.text("bcdfghjklmnpqrstvwxz2456789", min_size=1, max_size=10)
STORE = load_cluster([])


def divided(percent):
    document = {"apiVersion": "stowplan.io/v1alpha1", "kind": "SchedulerPolicy", "profiles": [{"schedulerName": "s"}]}
    return load_policy(document | {"rollout": {"profile": "s", "percent": percent, "candidate": {}}})


POLICY = divided(50)


def taken(percent, pod):
    rollout = replace(POLICY.rollout, percent=float(percent))
    return rollout.takes(pod, STORE)


def pod_of(name, owner=None, labels=None):
    metadata = {"name": name, "namespace": "n", "uid": name, "labels": labels or {}}
    if owner is not None:
        kind, controller = owner
        metadata["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": kind, "name": controller, "uid": "u", "controller": True}]
    spec = {"schedulerName": "s", "containers": [{"name": "c"}]}
    store = load_cluster([{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}])
    return store.pending[f"n/{name}"]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(NAME, st.sampled_from(["StatefulSet", "Job", "ReplicaSet"]), st.tuples(PERCENT, PERCENT).map(sorted))
def test_raising_the_percentage_only_adds(name, kind, percents):
    pod = pod_of("p", (kind, name))
    low, high = percents
    assert taken(high, pod) or not taken(low, pod)
    assert not taken(0, pod)
    assert taken(100, pod)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(NAME, st.lists(HASH, min_size=2, max_size=4, unique=True), PERCENT)
def test_a_deployment_is_not_split(name, hashes, percent):
    pods = [pod_of(f"p{i}", ("ReplicaSet", f"{name}-{each}"), {"pod-template-hash": each}) for i, each in enumerate(hashes)]
    assert len({taken(percent, pod) for pod in pods}) == 1
    assert {pod.workload for pod in pods} == {f"n/Deployment/{name}"}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(NAME, PERCENT)
def test_a_pod_keeps_its_version_whatever_else_becomes_of_it(name, percent):
    pod = pod_of(name)
    later = replace(pod, nominated_node="a", uid="another", created=5.0)
    assert taken(percent, pod) == taken(percent, later)


@pytest.mark.parametrize("percent", [1, 10, 50, 90])
def test_the_share_is_about_that(percent):
    places = [place_of("s", f"n/Deployment/app-{number}") for number in range(4000)]
    share = sum(place < percent for place in places) / len(places) * 100
    assert abs(share - percent) < 3


def test_profiles_begin_with_different_workloads():
    workloads = [f"n/Deployment/app-{number}" for number in range(200)]
    first, second = ({each for each in workloads if place_of(profile, each) < 10} for profile in ("s", "t"))
    assert first != second
