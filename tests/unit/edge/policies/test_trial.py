from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest

from stowplan.edge.load import load_policy
from stowplan.edge.policies import trial
from stowplan.text import Code
from unit.edge.policies.offering import HEAD, LABELLED, NEVER, document
from unit.loop.driving import Scene


def tried(policy, store, timer=lambda: 0.0):
    """A trial that has all the time it wants, unless a test gives it a clock."""
    return trial.tried(policy, store, timer)


def policy(tmp_path, text):
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    return load_policy(path)


def texts(found):
    return [each.message for each in found]


def test_without_pods_rules_about_nodes_alone_are_tried(tmp_path):
    store = Scene().start("node n1 cpu=4").loop.ledger.store
    (found,) = texts(tried(policy(tmp_path, document(NEVER)), store))
    assert found == "rule r0: the filter lets no node pass (1 node of the live cluster, for any pod)"
    assert tried(policy(tmp_path, document('pod.labels["a"] == "b" && node.name == "x"')), store) == ()


def test_a_rule_that_some_pod_passes_is_fine(tmp_path):
    store = Scene().start("node n1 cpu=4\npod a cpu=1\npod b cpu=2").loop.ledger.store
    assert tried(policy(tmp_path, document("pod.requests.cpu > 1.5")), store) == ()
    (found,) = texts(tried(policy(tmp_path, document("pod.requests.cpu > 3.0")), store))
    assert "for default/a, default/b" in found


def test_labels_that_no_node_has(tmp_path):
    store = Scene().start("node n1 cpu=4 label.disk=ssd").loop.ledger.store
    text = f"{HEAD}profiles:\n- rules:\n  - {{name: r, score: '{LABELLED.format('disc')} ? 1 : 0'}}\n"
    (found,) = tried(policy(tmp_path, text), store)
    assert 'have the label "disc"' in found.message
    assert found.notes == ('did you mean "disk"?',)


def test_an_empty_cluster_has_nothing_to_say(tmp_path):
    assert tried(policy(tmp_path, document(NEVER)), Scene().start().loop.ledger.store) == ()


def test_the_trial_ends_in_time(tmp_path):
    """A clock that runs a twentieth of a second with every look: what is left is not looked at."""
    ticks = count()
    store = Scene().start("node n1 cpu=4\npod a cpu=1").loop.ledger.store
    found = tried(policy(tmp_path, document(*[NEVER] * 40)), store, lambda: next(ticks) / 20)
    assert len(found) < 5
    assert next(ticks) < 60


def test_a_rule_that_goes_row_by_row_is_not_tried_on_all_nodes(tmp_path):
    """A clock by which every look at a node of some 64 costs a second."""
    scene = Scene().start("\n".join(f"node n{i} cpu=4" for i in range(1000)) + "\npod a cpu=1")
    looked = []

    def timer():
        return sum(looked)

    compiled = policy(tmp_path, document('node.pods.exists(p, p.name == "x")'))
    profile = compiled.profiles["default-scheduler"]
    (rule,) = [plugin for name, plugin in profile.plugins.items() if name == "r0"]

    def rejects(ask, cluster):
        looked.append(cluster.size / 1000)
        return rule.rejects(ask, cluster)

    plugins = {**profile.plugins, "r0": replace(rule, rejects=rejects)}
    slow = replace(compiled, profiles={"default-scheduler": replace(profile, plugins=plugins)})
    (found,) = texts(tried(slow, scene.loop.ledger.store, timer))
    assert found == "rule r0 takes about 1.0 s for one decision on 1000 nodes"
    assert max(looked) < 0.1


DEAR = 'node.pods.filter(p, p.name.matches("p[0-9]+-[0-4]")).size()'
CROWD = "\n".join(f"node n{i} cpu=40\n" + "\n".join(f"pod p{i}-{j} cpu=1 on=n{i}" for j in range(10)) for i in range(200))


def scored(tmp_path, number, score=DEAR):
    rules = "".join(f"  - {{name: s{i}, score: '{score} + {i}'}}\n" for i in range(number))
    return policy(tmp_path, f"{HEAD}profiles:\n- rules:\n{rules}")


def test_scores_that_are_too_dear_together(tmp_path):
    """Each of them is within its own budget."""
    store = Scene().start(f"{CROWD}\npod a cpu=1").loop.ledger.store
    assert tried(scored(tmp_path, 10), store) == ()
    (found,) = tried(scored(tmp_path, 60), store)
    assert found.code is Code.FAILING
    assert found.message.startswith("the 60 rules of profile default-scheduler would take about ")
    assert found.message.endswith("units of work, 3,000,000 are allowed")


def test_what_there_was_no_time_for_is_taken_for_average(tmp_path):
    ticks = count()
    store = Scene().start(f"{CROWD}\npod a cpu=1").loop.ledger.store
    *_, found = tried(scored(tmp_path, 60), store, lambda: next(ticks) / 100)
    assert found.message.startswith("the 60 rules of profile default-scheduler would take about ")
    assert next(ticks) < 120


def test_scores_are_timed(tmp_path):
    """A clock by which every look at a node of some 64 costs a second."""
    scene = Scene().start("\n".join(f"node n{i} cpu=4" for i in range(1000)) + "\npod a cpu=1")
    looked = []
    compiled = scored(tmp_path, 1)
    profile = compiled.profiles["default-scheduler"]
    rule = profile.plugins["s0"]

    def scores(ask, cluster, feasible):
        looked.append(cluster.size / 1000)
        return rule.scores(ask, cluster, feasible)

    slow = {"default-scheduler": replace(profile, plugins={**profile.plugins, "s0": replace(rule, scores=scores)})}
    (found,) = texts(tried(replace(compiled, profiles=slow), scene.loop.ledger.store, lambda: sum(looked)))
    assert found == "rule s0 takes about 1.0 s for one decision on 1000 nodes"
    assert max(looked) < 0.1


def ruled(tmp_path, rule):
    return policy(tmp_path, f"{HEAD}profiles:\n- rules:\n  - {{name: r, {rule}}}\n")


THREE = "node n1 cpu=4\nnode n2 cpu=4\nnode n3 cpu=4 label.disk=ssd"
ZONE = """filter: 'now.isBetween("08:00", "18:00", node.labels[?"tz"].orValue("Europe/Nowhere"))'"""


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (ZONE, "Europe/Nowhere"),
        ('filter: \'node.labels["tier"] == "a"\'', "tier"),
        ("filter: 'int(node.name) > 3'", "int"),
        ('when: \'pod.labels["app"] == "x"\', filter: \'node.name != ""\'', "when: "),
    ],
)
def test_a_filter_that_fails_everywhere_says_how(tmp_path, rule, says):
    store = Scene().start(f"{THREE}\npod a cpu=1").loop.ledger.store
    (found,) = [each for each in tried(ruled(tmp_path, rule), store) if each.code is Code.CONSTANT]
    lead = "rule r: the filter lets no node pass (3 nodes of the live cluster, for default/a): "
    assert found.message.startswith(lead)
    assert says in found.message.removeprefix(lead)


def test_a_filter_that_fails_everywhere_and_admits(tmp_path):
    store = Scene().start(f"{THREE}\npod a cpu=1").loop.ledger.store
    (found,) = [each for each in tried(ruled(tmp_path, f"{ZONE}, onError: Admit"), store) if each.code is not Code.UNKNOWN_LABEL]
    assert found.code is Code.FAILING
    assert "fails on every node, which lets all of them pass (3 nodes" in found.message


@pytest.mark.parametrize(
    ("score", "says"),
    [
        ("0.0 / 0.0", "NaN, as 0.0 / 0.0"),
        ('node.free["example.com/gpu"] / node.allocatable["example.com/gpu"]', "NaN, as 0.0 / 0.0"),
        ("1.0 / 0.0", "no number in range"),
        ('int(node.labels["disk"]) > 3 ? 1 : 0', "disk"),
    ],
)
@pytest.mark.parametrize("more", ["", "\npod a cpu=1"])
def test_a_score_that_fails_everywhere(tmp_path, score, says, more):
    store = Scene().start("node n1 cpu=4\nnode n2 cpu=4" + more).loop.ledger.store
    (found,) = [each for each in tried(ruled(tmp_path, f"score: '{score}'"), store) if each.code is Code.FAILING]
    assert "rule r: the score fails on every node, which counts as 0 (2 nodes of the live cluster, for " in found.message
    assert says in found.message.partition("): ")[2]


def test_a_score_that_some_node_has_is_fine(tmp_path):
    store = Scene().start(f"{THREE}\npod a cpu=1").loop.ledger.store
    assert tried(ruled(tmp_path, "score: 'node.name == \"n3\" ? 1.0 : 0.0 / 0.0'"), store) == ()


def test_a_score_that_rejects_where_it_fails(tmp_path):
    store = Scene().start(f"{THREE}\npod a cpu=1").loop.ledger.store
    (found,) = tried(ruled(tmp_path, "score: '0.0 / 0.0', onError: Reject"), store)
    assert found.code is Code.CONSTANT
    assert found.message.startswith("rule r: the score lets no node pass (3 nodes")
    assert found.message.endswith("the score is NaN, as 0.0 / 0.0 is")


@pytest.mark.parametrize("number", [3, 300])
def test_many_nodes_are_told_as_few(tmp_path, number):
    """Columns and single rows say the same."""
    store = Scene().start("\n".join(f"node n{i} cpu=4" for i in range(number))).loop.ledger.store
    (found,) = tried(ruled(tmp_path, "score: 'node.free[\"x.y/z\"] / 0.0'"), store, lambda: 0.0)
    assert found.message.endswith(": the score is NaN, as 0.0 / 0.0 is")
