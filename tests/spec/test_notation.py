"""The notation for clusters: each word against the object it stands for, and each kind of mistake against its place."""

import pytest

from stowplan import load_cluster
from stowplan.edge.notation import NotationError, read_notation
from stowplan.text import Source


def only(text):
    (found,) = read_notation(text)
    return found


def test_a_node():
    assert only(
        "node a cpu=4 mem=8Gi storage=10Gi pods=20 nvidia.com/gpu=2 zone=z1 region=r label.foo=bar labels=x=1,host=other "
        "taint=team=x:NoSchedule taint=old:NoExecute image=nginx:1500Mi image=reg:5000/app:2:1M unschedulable"
    ) == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "a",
            "labels": {
                "kubernetes.io/hostname": "other",
                "topology.kubernetes.io/zone": "z1",
                "topology.kubernetes.io/region": "r",
                "foo": "bar",
                "x": "1",
            },
        },
        "spec": {
            "unschedulable": True,
            "taints": [
                {"key": "team", "value": "x", "effect": "NoSchedule"},
                {"key": "old", "value": "", "effect": "NoExecute"},
            ],
        },
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "10Gi", "pods": "20", "nvidia.com/gpu": "2"},
            "images": [
                {"names": ["nginx:latest"], "sizeBytes": 1500 * 1024 * 1024},
                {"names": ["reg:5000/app:2"], "sizeBytes": 1000000},
            ],
        },
    }


def test_a_pod_with_containers():
    found = only("pod web/api cpu=500m image=app:1 port=80 port=53/UDP init=a:cpu=3;mem=1Gi sidecar=b:cpu=1 container=c on=n1")
    assert found["metadata"] == {"name": "api", "namespace": "web"}
    assert found["spec"] == {
        "nodeName": "n1",
        "containers": [
            {
                "name": "main",
                "image": "app:1",
                "resources": {"requests": {"cpu": "500m"}},
                "ports": [
                    {"containerPort": 80, "hostPort": 80, "protocol": "TCP"},
                    {"containerPort": 53, "hostPort": 53, "protocol": "UDP"},
                ],
            },
            {"name": "c", "image": "c", "resources": {"requests": {}}},
        ],
        "initContainers": [
            {"name": "a", "image": "a", "resources": {"requests": {"cpu": "3", "memory": "1Gi"}}},
            {"name": "b", "image": "b", "resources": {"requests": {"cpu": "1"}}, "restartPolicy": "Always"},
        ],
    }


REQUIRED, PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"


def terms(*lists):
    return {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": list(expressions)} for expressions in lists]}}


@pytest.mark.parametrize(
    ("words", "spec"),
    [
        ("select=disk=ssd,zone=a", {"nodeSelector": {"disk": "ssd", "topology.kubernetes.io/zone": "a"}}),
        (
            "require=a=1|2,!b require=c>3",
            {
                "affinity": {
                    "nodeAffinity": terms(
                        [{"key": "a", "operator": "In", "values": ["1", "2"]}, {"key": "b", "operator": "DoesNotExist"}],
                        [{"key": "c", "operator": "Gt", "values": ["3"]}],
                    )
                }
            },
        ),
        (
            "require=a,b!=1,c<3",
            {
                "affinity": {
                    "nodeAffinity": terms(
                        [
                            {"key": "a", "operator": "Exists"},
                            {"key": "b", "operator": "NotIn", "values": ["1"]},
                            {"key": "c", "operator": "Lt", "values": ["3"]},
                        ]
                    )
                }
            },
        ),
        (
            "prefer=foo=bar:100",
            {
                "affinity": {
                    "nodeAffinity": {
                        PREFERRED: [
                            {
                                "weight": 100,
                                "preference": {"matchExpressions": [{"key": "foo", "operator": "In", "values": ["bar"]}]},
                            }
                        ]
                    }
                }
            },
        ),
        (
            "toleration=a toleration=b=1:NoExecute toleration=*",
            {
                "tolerations": [
                    {"key": "a", "operator": "Exists"},
                    {"key": "b", "operator": "Equal", "value": "1", "effect": "NoExecute"},
                    {"operator": "Exists"},
                ]
            },
        ),
        (
            "near=zone:match=app=x;weight=5;namespaces=a,b apart=host:match=app=y;everywhere",
            {
                "affinity": {
                    "podAffinity": {
                        PREFERRED: [
                            {
                                "weight": 5,
                                "podAffinityTerm": {
                                    "topologyKey": "topology.kubernetes.io/zone",
                                    "labelSelector": {"matchLabels": {"app": "x"}},
                                    "namespaces": ["a", "b"],
                                },
                            }
                        ]
                    },
                    "podAntiAffinity": {
                        REQUIRED: [
                            {
                                "topologyKey": "kubernetes.io/hostname",
                                "labelSelector": {"matchLabels": {"app": "y"}},
                                "namespaceSelector": {},
                            }
                        ]
                    },
                }
            },
        ),
        (
            "spread=zone:max=2;soft;min=3;taints=Honor;affinity=Ignore;keys=h labels=app=x",
            {
                "topologySpreadConstraints": [
                    {
                        "topologyKey": "topology.kubernetes.io/zone",
                        "maxSkew": 2,
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": {"matchLabels": {"app": "x"}},
                        "minDomains": 3,
                        "nodeTaintsPolicy": "Honor",
                        "nodeAffinityPolicy": "Ignore",
                        "matchLabelKeys": ["h"],
                    }
                ]
            },
        ),
        ("priority=-5 patient scheduler=foo", {"priority": -5, "preemptionPolicy": "Never", "schedulerName": "foo"}),
        ("gates=a,b class=high", {"schedulingGates": [{"name": "a"}, {"name": "b"}], "priorityClassName": "high"}),
    ],
)
def test_words_of_a_pod(words, spec):
    found = only(f"pod p {words}")["spec"]
    del found["containers"]
    assert found == spec


def test_other_kinds():
    found = read_notation("namespace web label.team=blue\nservice web/s match=app=x\nbudget b match=app=x allowed=2")
    assert found == [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web", "labels": {"team": "blue"}}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "s", "namespace": "web"},
            "spec": {"selector": {"app": "x"}},
        },
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "x"}}},
            "status": {"disruptionsAllowed": 2},
        },
    ]


def test_ranges_and_comments():
    found = read_notation("# nodes\nnode n{08..10} cpu=1 # three\n\nnode {1..2}-{1..2}")
    assert [item["metadata"]["name"] for item in found] == ["n08", "n09", "n10", "1-1", "1-2", "2-1", "2-2"]


def test_objects_can_be_loaded():
    store = load_cluster(
        read_notation("node a cpu=4 mem=8Gi\npod web/api-{1..2} cpu=1 on=a labels=app=x\npod next owner=ReplicaSet/r")
    )
    assert store.row_of == {"a": 0}
    assert set(store.seats[0]) == {"web/api-1", "web/api-2"}
    assert store.pending["default/next"].owner.name == "r"


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("nod a", 1, "there is no kind nod; kinds are node, pod, "),
        ("node", 1, "the node has no name"),
        ("node a cpu=four", 8, '"four" is not a quantity'),
        ("node a cpu", 8, "there is no word cpu here; words are cpu=, "),
        ("node a taint=team:Never", 8, "Never is none of NoSchedule, "),
        ("node a  image=nginx", 9, "nginx is not image:size"),
        ("node a{3..1}", 1, "the range {3..1} is empty"),
        ("pod p zone=a", 7, "there is no word zone here; "),
        ("pod p cpu=1 priority=high", 13, "high is not a whole number"),
        ("pod p prefer=foo=bar", 7, "foo=bar is not expression:weight"),
        ("pod p require==x", 7, "=x is none of key, !key, "),
        ("pod p labels=app", 7, "app is not key=value"),
        ("pod p spread=zone:skew=1", 7, "there is no detail skew here; "),
        ("pod p owner=web", 7, "web is not Kind/name"),
        ("pod p port=80/HTTP", 7, "HTTP is none of TCP, "),
    ],
)
def test_mistakes_are_told_with_their_place(line, column, message):
    with pytest.raises(NotationError) as caught:
        read_notation(Source("page.md", f"# a comment\n{line}\nnode z cpu=1"))
    (found,) = caught.value.diagnostics
    assert (found.span.line, found.span.column) == (2, column)
    assert found.message.startswith(message)
    assert str(caught.value).startswith(f"page.md:2:{column}: error")


def test_all_mistakes_are_told():
    with pytest.raises(NotationError) as caught:
        read_notation("node a cpu=x mem=y\npod p{1..3} port=z")
    assert [(found.span.line, found.span.column) for found in caught.value.diagnostics] == [(1, 8), (1, 14), (2, 13)]
