"""kube-scheduler and stowplan at work on one cluster: each pod goes to a node that the other one would have taken too.

Pods are created one after the other, in turn for one scheduler and for the other. Every node chosen is one of the best by
stowplan's judgement of the cluster at that moment, offline; a pod that fits nowhere is given to both, and both must say the same.
"""

import copy
import random

import pytest

from controlplane.components import start_scheduler
from controlplane.objects import condition
from controlplane.waiting import eventually
from e2e.mixture import mixed_nodes, mixed_pod, services
from e2e.running import policy
from e2e.scenes import decided, told
from stowplan import load_cluster, load_policy
from stowplan.objects import read
from stowplan.policy.attempt import attempt

pytestmark = pytest.mark.slow
NAMES = ("stowplan", "default-scheduler")
PODS, SEED = 500, 9


def judge(client):
    """The cluster as it stands, and a policy that knows both schedulers."""
    kinds = ("namespaces", "nodes", "services")
    items = []
    for resource in kinds:
        kind = client.resource(resource).kind
        items += [{"apiVersion": "v1", "kind": kind, **each} for each in client.list(resource)]
    return load_policy(policy(*({"schedulerName": name} for name in NAMES))), load_cluster(items)


def said(found):
    told = condition(found, "PodScheduled")
    return told["status"], told["reason"], told["message"]


def given_to(made, scheduler, suffix=""):
    each = copy.deepcopy(made)
    each["metadata"]["name"] += suffix
    each["spec"]["schedulerName"] = scheduler
    return each


def about(events, name, suffix):
    """Events about a pod without its name."""
    return {
        (kind, reason, action, note.replace(name + suffix, name))
        for who, kind, reason, action, note in events
        if who == name + suffix
    }


def test_both_place_pods_alike(cluster, run):
    client, rng = cluster.admin, random.Random(SEED)  # noqa: S311 -- the same for a seed
    client.create_all([*mixed_nodes(60, rng), *services()])
    run(policy())
    start_scheduler(cluster)
    judging, store = judge(client)
    counts = dict.fromkeys((*NAMES, "nowhere"), 0)
    for number in range(PODS):
        made, turn = mixed_pod(f"pod-{number:03}", rng), NAMES[number % 2]
        created = client.create(given_to(made, turn))
        found = decided(client, made["metadata"]["name"])
        fact = read(created)
        expected = attempt(judging, store, fact)
        if found["spec"].get("nodeName"):
            best = {store.nodes[row].name for row in expected.best}
            assert found["spec"]["nodeName"] in best, (turn, made, found["spec"]["nodeName"], best)
            store.set_pod(read(found))
            counts[turn] += 1
            continue
        assert said(found) == ("False", "Unschedulable", expected.message), (turn, made)
        other = NAMES[1 - number % 2]
        client.create(given_to(made, other, "-twin"))
        twin = decided(client, made["metadata"]["name"] + "-twin")
        assert said(twin) == said(found)
        counts["nowhere"] += 1
        compare_events(client, made["metadata"]["name"], (turn, other), (found, twin))
        for each in (found, twin):
            client.delete("pods", each["metadata"]["name"], grace=0)
    print(counts)
    assert min(counts.values()) > 20


def compare_events(client, name, schedulers, pods):
    """Both have told the same about their pod."""

    def seen():
        found = [
            about(told(client, who, [each]), name, suffix)
            for who, each, suffix in zip(schedulers, pods, ("", "-twin"), strict=True)
        ]
        return found if all(found) else None

    first, second = eventually(seen)
    assert first == second
