"""Which version of a profile decides for a pod, and what may be written about that."""

import dataclasses
from copy import deepcopy

import pytest

from stowplan import explain, load_cluster, load_policy, simulate
from stowplan.edge.notation import read_notation
from stowplan.policy.check import Options, check
from stowplan.policy.choose import Chooser
from stowplan.policy.compile import PolicyError
from stowplan.policy.rollout import place_of
from stowplan.text import Source

HEAD = {"apiVersion": "stowplan.io/v1alpha1", "kind": "SchedulerPolicy"}
STABLE, CANDIDATE = "default-scheduler", "default-scheduler (candidate)"
NODES = "node a cpu=4 mem=8Gi label.open=yes\nnode b cpu=4 mem=8Gi\n"
ONLY_B = {"rules": [{"name": "only-b", "filter": 'node.name == "b"'}]}


def policy(**rollout):
    written = {"profile": STABLE, "candidate": {}} | rollout
    return load_policy(HEAD | {"profiles": [{"schedulerName": STABLE}], "rollout": written})


def pod_of(store, name):
    return store.pending[f"default/{name}"]


def served(found, text):
    store = load_cluster(read_notation(NODES + text))
    return {pod.name: found.profile_of(pod, store) for pod in store.pending.values()}


def test_a_policy_without_a_rollout_has_no_versions():
    found = load_policy(HEAD | {"profiles": [{"schedulerName": STABLE}]})
    assert found.rollout is None
    assert served(found, "pod p\npod q scheduler=other") == {"p": STABLE, "q": None}


def test_nobody_can_ask_for_the_candidate():
    found = policy(percent=100)
    store = load_cluster(read_notation(NODES + "pod p\npod q"))
    sly = store.pending["default/q"]
    sly = dataclasses.replace(sly, spec=dataclasses.replace(sly.spec, scheduler_name=CANDIDATE))
    assert found.profile_of(pod_of(store, "p"), store) == CANDIDATE
    assert found.profile_of(sly, store) is None
    assert not found.serves(sly)
    assert found.serves(pod_of(store, "p"))


def test_labels_of_the_namespace_count_as_they_are_now():
    found = policy(match='namespace.labels[?"track"].orValue("") == "canary"')
    store = load_cluster(read_notation(NODES + "namespace default labels=track=canary\npod p"))
    pod = pod_of(store, "p")
    assert found.profile_of(pod, store) == CANDIDATE
    (changed,) = load_cluster(read_notation("namespace default")).facts.values()
    store.set_fact(changed["default"])
    assert found.profile_of(pod, store) == STABLE


def test_annotations_count_although_pods_are_alike_otherwise():
    found = policy(match='pod.annotations[?"v"].orValue("") == "2"', candidate=ONLY_B)
    plain, marked = read_notation("pod p cpu=1\npod q cpu=1")
    marked["metadata"]["annotations"] = {"v": "2"}
    store = load_cluster([*read_notation(NODES), plain, marked])
    nodes = [placement.node for placement in simulate(found, store).placements]
    assert nodes == ["a", "b"]
    chooser = Chooser(found, store)
    assert chooser.likeness(pod_of(store, "p")) != chooser.likeness(pod_of(store, "q"))


def test_simulate_and_explain_say_which_version_decided():
    found = policy(match='pod.name == "q"', candidate=ONLY_B)
    store = load_cluster(read_notation(NODES + "pod p cpu=1\npod q cpu=1"))
    simulated = simulate(found, store).to_json()
    assert [item.get("profile") for item in simulated["sequence"]] == [None, CANDIDATE]
    assert set(simulated["profiles"]) == {STABLE, CANDIDATE}
    explained = explain(found, store).to_json()["pods"]
    assert [item["profile"] for item in explained] == [STABLE, CANDIDATE]
    assert [item["feasible"] for item in explained] == [["a", "b"], ["b"]]


def test_unmarked_nodes_are_refused_for_good():
    found = policy(percent=100, nodes={"matchExpressions": [{"key": "open", "operator": "In", "values": ["yes"]}]})
    store = load_cluster(read_notation(NODES + "pod low cpu=3 on=b\npod p cpu=5 priority=9"))
    (told,) = explain(found, store, "p").to_json()["pods"]
    assert told["infeasible"]["b"] == {
        "code": "UnschedulableAndUnresolvable",
        "plugin": "stowplan.io/Rollout",
        "reasons": ["node(s) are not part of the rollout"],
    }


def test_the_candidate_may_switch_off_the_plugins_it_likes_but_not_the_rollout():
    off = {
        "plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": "PrioritySort"}, {"name": "DefaultBinder"}]}}
    }
    found = policy(percent=100, nodes={"matchLabels": {"open": "yes"}}, candidate=off)
    assert found.profiles[CANDIDATE].points["filter"] == ("stowplan.io/Rollout",)
    assert "stowplan.io/Rollout" not in found.profiles[STABLE].plugins


WRONG = [
    ("percent: 101", ("INVALID", "percent")),
    ("percent: -0.5", ("INVALID", "percent")),
    ("percent: 10\n  profile: other", ("UNSUPPORTED", "profile")),
    ("percent: 10\n  profile: ''", ("REQUIRED", "profile")),
    ("{}", ("REQUIRED", "percent")),
    ("match: pod.name", ("EXPRESSION", "match")),
    ("match: ''", ("REQUIRED", "match")),
    ("match: node.name == 'a'", ("UNKNOWN_NAME", "match")),
    ("match: pod.nam == 'a'", ("UNKNOWN_NAME", "match")),
    ("match: pod.age > duration('1h')", ("EXPRESSION", "match")),
    ("match: pod.status.phase == 'Pending'", ("EXPRESSION", "match")),
    ("match: now > timestamp('2026-01-01T00:00:00Z')", ("UNKNOWN_NAME", "match")),
    ("percent: 10\n  nodes: {matchLabel: {a: b}}", ("UNKNOWN_FIELD", 'unknown field "rollout.nodes.matchLabel"')),
    ("percent: 10\n  nodes: {matchExpressions: [{key: a, operator: Gt}]}", ("INVALID", "nodes.matchExpressions[0].operator")),
    ("percent: 10\n  nodes: {matchExpressions: [{key: a, operator: In}]}", ("INVALID", "nodes.matchExpressions[0].values")),
    ("percent: 10\n  nodes: {}", ("NO_EFFECT", "nodes")),
    ("percent: 10\n  candidate: {schedulerName: x}", ("FORBIDDEN", "candidate.schedulerName")),
    ("percent: 10\n  candidate: null", ("REQUIRED", "candidate")),
    (
        "percent: 10\n  candidate: {plugins: {queueSort: {disabled: [{name: PrioritySort}]}}}",
        ("INVALID", "candidate.plugins.queueSort"),
    ),
    ("percent: 10\n  candidate: {plugins: {filter: {enabled: [{name: Nope}]}}}", ("FOREIGN_PLUGIN", "candidate.plugins.filter")),
    ("percent: 10\n  candidate: {pluginConfig: [{name: A}, {name: A}]}", ("DUPLICATE", "candidate.pluginConfig[1]")),
    ("percent: 10\n  candidate: {rules: [{name: r, filter: nod}]}", ("UNKNOWN_NAME", "candidate.rules[0].filter")),
]


@pytest.mark.parametrize(("body", "wanted"), WRONG, ids=[body.replace("\n ", ";") for body, _ in WRONG])
def test_mistakes_are_told_where_they_are(body, wanted):
    lines = body if body != "{}" else "nodes: null"
    rest = "".join(f"\n  {key}: {value}" for key, value in (("profile", STABLE), ("candidate", "{}")) if f"{key}:" not in lines)
    head = f"apiVersion: {HEAD['apiVersion']}\nkind: {HEAD['kind']}\nprofiles:\n- schedulerName: {STABLE}\n"
    text = f"{head}rollout:\n  {lines}{rest}\n"
    found = check(Source("f", text), Options()).diagnostics
    told = {(d.code.name, d.path.removeprefix("rollout.") or d.message): d for d in found}
    near = [key for key in told if key[0] == wanted[0] and key[1].startswith(wanted[1])]
    assert near, told
    assert all(told[key].span is not None for key in near)


def test_the_name_of_the_candidate_is_taken_by_another_profile():
    with pytest.raises(PolicyError, match="explanations call the candidate so"):
        load_policy(
            HEAD
            | {
                "profiles": [{"schedulerName": STABLE}, {"schedulerName": CANDIDATE}],
                "rollout": {"profile": STABLE, "percent": 1, "candidate": {}},
            }
        )


def test_kube_scheduler_has_no_rollout():
    document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "rollout": {}}
    with pytest.raises(PolicyError, match='unknown field "rollout"'):
        load_policy(document)


def test_promotion_is_to_put_the_candidate_in_the_place_of_the_profile():
    candidate = {"plugins": {"score": {"disabled": [{"name": "ImageLocality"}]}}, **deepcopy(ONLY_B)}
    tried = policy(percent=100, candidate=candidate)
    promoted = load_policy(HEAD | {"profiles": [{"schedulerName": STABLE} | candidate]})
    assert tried.profiles[CANDIDATE].points == promoted.profiles[STABLE].points
    assert tried.profiles[CANDIDATE].weights == promoted.profiles[STABLE].weights


def test_places_are_those_of_every_release():
    """Another way to reckon them would move workloads from one version to the other when stowplan is upgraded."""
    places = [place_of(STABLE, f"default/Deployment/{name}") for name in ("web", "api", "cache")]
    assert [round(place, 3) for place in places] == [64.964, 99.727, 4.504]
