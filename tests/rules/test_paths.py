"""Columns = distinct rows = single rows: however a rule is evaluated, it says the same."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.scenes import ZONE, cluster, policy
from rules.test_classes import RULES, VARIABLES
from stowplan.plugins import cel_rule
from stowplan.plugins.cel_rule import columns, rows
from stowplan.state import Cluster, Feasible

MORE = (
    {"filter": 'node.labels.pool == "x" && node.free.cpu > 1.0'},
    {"filter": 'has(node.labels.pool) && node.labels[?"pool"].hasValue() && "pool" in node.labels'},
    {"filter": 'node.labels.?pool.orValue("z") != "z"', "messageExpression": 'node.labels.pool + " " + variables.label'},
    {"filter": "variables.label == pod.labels.pool", "onError": "Admit"},
    {"filter": "has(variables.label) && variables.busy < 0.5 || node.unschedulable"},
    {"filter": 'node.name.endsWith("1") || node.labels.pool.startsWith("y")'},
    {"filter": 'dyn(node.labels[?"pool"].orValue("")) == pod.labels[?"pool"].orValue("")'},
    {"filter": "node.taints.size() == 0 && node.allocatable.cpu > node.requested.cpu * 2.0"},
    {"filter": 'node.allocatable["example.com/gpu"] > 0.0 || node.free["example.com/gpu"] == 0.0'},
    {"filter": "node.labels.size() > 1"},
    {"filter": 'node.labels.exists(k, k == "pool" && node.labels[k] == "x")'},
    {"filter": 'node.metadata.labels["pool"] == "x" && node.metadata.name != "n1"'},
    {"filter": 'node.metadata.labels["pool"] == "x" && !has(node.metadata.annotations)'},
    {"filter": "node.pods.exists(p, p.labels.app == pod.labels.app && p.priority >= 0)"},
    {"filter": 'node.pods.exists(p, p.labels["none"] == "x")'},
    {"filter": 'node.pods.all(p, p.name != "q1")'},
    {"filter": 'node.pods.all(p, p.namespace == "default" && p.requests.cpu < node.free.cpu)'},
    {"filter": 'node.pods.exists(i, p, i > 0 && p.labels.app == "a")'},
    {"filter": "node.pods.exists_one(p, p.requests.cpu > 0.2)"},
    {"score": "node.pods.filter(p, p.requests.cpu > 0.1).size()"},
    {"score": "node.pods.map(p, p.requests.cpu).sum()"},
    {"score": "node.pods.size() + (node.pods.size() > 0 && node.pods[0].priority == 0 ? 1 : 0)"},
    {"score": 'node.labels.pool == "x" ? node.free.cpu : 1.5 * variables.busy'},
    {"score": "int(node.free.cpu) / (int(node.requested.cpu) - 1)"},
    {"score": "node.free.memory"},
    {"score": f'node.domain("{ZONE}").nodes + cluster.nodes + cluster.pods({{"app": "a"}})'},
    {"score": 'node.domain("pool").pods({"app": pod.labels.app}, ["default", "web"]) * 2'},
    {"score": 'node.domain("pool").requested.cpu + cluster.allocatable["memory"] / 1000000.0', "weight": 0.1},
    {"filter": 'node.domain("pool").value == "x"'},
    {"filter": "node.domain(node.labels.pool).nodes > 0"},
    {"filter": 'node.domain("pool").free.cpu > 1.0 && node.free.cpu > 0.5'},
    {"filter": 'node.labels.pool == "x" ? node.domain("pool").nodes > 1 : cluster.free.cpu > 2.0'},
    {"score": 'node.labels[?"pool"].orValue("") == "x" ? 10 : 0', "weight": 0.5},
)
ALL = (*RULES, *MORE)
LABEL = ("label", 'node.labels["pool"]')


@cache
def compiled(index):
    rule = {"name": "r", **ALL[index], "mode": "Enforce"}
    return policy(rule, variables=(*VARIABLES, LABEL)).profiles["default-scheduler"].plugins["r"]


def outcome(plugin, ask, view):
    """What a plugin says, in a form that can be compared."""
    rejections = (plugin.rejects(ask, view) if plugin.rejects else {}) or {}
    scores = plugin.scores(ask, view, Feasible(np.ones(view.size, dtype=np.int64))) if plugin.scores else None
    return (
        {(reason.text, reason.final, tuple(np.flatnonzero(mask).tolist())) for reason, mask in rejections.items() if mask.any()},
        None if scores is None else scores.tolist(),
    )


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_paths_agree(data):
    looks = data.draw(st.lists(st.sampled_from(("", " label.pool=x", " label.pool=y taint=a=b:NoSchedule", " example.com/gpu=2"))))
    lines = [f"node n{i} cpu={2 + i % 4} mem=8Gi{look}" for i, look in enumerate(looks[:12])]
    lines += [f"pod q{i} cpu={i}00m on=n{i % 3} labels=app=a" for i in range(data.draw(st.integers(0, 6)))]
    lines.append("pod p cpu=500m labels=app=a,pool=x")
    store = cluster("\n".join(lines))
    view = Cluster(store)
    pod = store.pending["default/p"]
    for index, rule in enumerate(ALL):
        plugin = compiled(index)
        found = []
        # in columns; by distinct rows; row by row, with answers remembered
        for in_columns, some in ((True, -1), (False, -1), (False, 10**9)):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(cel_rule, "SOME", some)
                patch.setattr(rows, "SOME", some)
                patch.setattr(rows, "FEW", some)
                if not in_columns:
                    patch.setattr(cel_rule, "suits", lambda _: False)
                found.append(outcome(plugin, plugin.asks(pod, None, view), view))
        assert found[0] == found[1] == found[2], rule
        single = [outcome(plugin, plugin.asks(pod, None, view), view.rows(np.array([row]))) for row in range(view.size)]
        assert [scores[0] for _, scores in single] == found[0][1] if found[0][1] is not None else True
        for row, (rejections, _) in enumerate(single):
            assert {(text, final) for text, final, _ in rejections} == {
                (text, final) for text, final, places in found[0][0] if row in places
            }


def test_columns_are_used():
    """The point of the exercise: rules over labels and amounts never look at single nodes."""
    store = cluster("node a cpu=4 label.pool=x\nnode b cpu=2\npod p cpu=1 labels=pool=x")
    rule = {"name": "r", "filter": 'node.labels[?"pool"].orValue("") == pod.labels.pool && variables.busy < 0.7'}
    plugin = policy(rule, variables=VARIABLES).profiles["default-scheduler"].plugins["r"]
    view = Cluster(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cel_rule, "SOME", -1)
        patch.setattr(columns.NodeColumns, "value", None)
        ((reason, mask),) = plugin.rejects(plugin.asks(store.pending["default/p"], None, view), view).items()
    assert reason.text == "node(s) did not pass rule r"
    assert mask.tolist() == [False, True]
