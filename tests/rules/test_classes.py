"""Classes = full evaluation, with rules: what is kept and patched between decisions never changes one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from rules.scenes import ZONE, cluster, policy
from stowplan.policy.attempt import attempt
from stowplan.policy.choose import Chooser
from stowplan.policy.evaluate import points

RULES = (
    {"filter": 'node.labels[?"pool"].orValue("") == pod.labels[?"pool"].orValue("")'},
    {"filter": 'node.labels["pool"] != "x"'},
    {"filter": "node.free.cpu >= 2.0 * pod.requests.cpu", "when": 'pod.labels[?"app"].orValue("") == "a"'},
    {"filter": "node.pods.size() < 3"},
    {"filter": 'node.pods.filter(p, p.labels[?"app"].orValue("") == pod.labels.app).size() < 2', "preemptionHelps": True},
    {"filter": f'node.domain("{ZONE}").pods({{"app": "a"}}) < 3'},
    {"filter": "cluster.free.cpu > 4.0", "mode": "Audit"},
    {"filter": "variables.busy < 0.7"},
    {"score": "variables.busy * 100.0", "weight": 0.3},
    {"score": "node.free.cpu", "normalize": "MinMax", "weight": -0.25},
    {"score": "node.pods.size()", "normalize": "MaxToHundred"},
    {"score": 'node.labels[?"pool"].orValue("") == "x" ? 10 : 0', "weight": 3},
    {"score": f'node.domain("{ZONE}").pods({{"app": pod.labels.app}})', "normalize": "Reverse", "weight": 2},
    {"score": f'node.domain("{ZONE}").free.cpu / cluster.allocatable.cpu', "normalize": "MinMax", "weight": 0.5},
    {"score": "100.0 / (node.requested.cpu - 1.0) - 1.0 / 0.0"},
    {"score": "1 / int(node.requested.cpu)", "onError": "Reject"},
    {"score": "double(node.taints.size()) + variables.busy"},
)
VARIABLES = (("busy", "node.requested.cpu / node.allocatable.cpu"), ("unused", 'pod.labels["none"]'))
NODES = st.lists(
    st.sampled_from(("", " label.pool=x", " label.pool=y taint=a=b:PreferNoSchedule", " zone=z1", " zone=z2 label.pool=x"))
)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_classes_are_full_evaluations(data):
    chosen = data.draw(st.lists(st.sampled_from(range(len(RULES))), min_size=1, max_size=5, unique=True))
    compiled = policy(*({"name": f"rule-{i}", **RULES[i]} for i in chosen), variables=VARIABLES)
    looks = data.draw(NODES.filter(lambda found: 0 < len(found) < 14))
    lines = [f"node n{i:02} cpu={2 + i % 3} mem=8Gi{look}" for i, look in enumerate(looks)]
    looks = data.draw(st.lists(st.sampled_from(("app=a", "app=b", "app=a,pool=x", "team=q")), min_size=1, max_size=9))
    lines += [f"pod p{i} cpu={(i % 4 + 1) * 100}m labels={look}" for i, look in enumerate(looks)]
    lines += [f"pod q{i} cpu=200m on=n{i % 3:02} labels=app={'ab'[i % 2]}" for i in range(data.draw(st.integers(0, 5)))]
    store = cluster("\n".join(lines))
    chooser = Chooser(compiled, store)
    waiting = list(store.pending.values())
    for pod in [*waiting, *waiting]:
        choice, found = chooser.choose(pod), attempt(compiled, store, pod)
        best = [int(row) for row in found.best]
        assert choice.row == (best[0] if best else None)
        assert choice.message == found.message
        if best:
            scoring = found.scoring
            assert choice.total == points(int(scoring.totals.max()), scoring.scale)
            assert sorted(choice.tied.nonzero()[0].tolist()) == sorted(best)
            assert choice.feasible == len(found.feasible)
            if pod.key in store.pending:
                store.assume(pod, store.nodes[best[0]].name)
        elif store.place_of(pod.key) is None and data.draw(st.booleans()) and store.nodes:
            store.assume(pod, store.nodes[0].name)
        if store.place_of(pod.key) is not None and data.draw(st.booleans()):
            store.forget(pod)
