from __future__ import annotations

from dataclasses import replace
from itertools import count

from stowplan.edge.load import load_policy
from stowplan.edge.policies.trial import tried
from unit.edge.policies.offering import HEAD, LABELLED, NEVER, document
from unit.loop.driving import Scene


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
    """A clock that runs a hundredth of a second with every look: what is left is not looked at."""
    ticks = count()
    store = Scene().start("node n1 cpu=4\npod a cpu=1").loop.ledger.store
    found = tried(policy(tmp_path, document(*[NEVER] * 40)), store, lambda: next(ticks) / 100)
    assert len(found) < 5
    assert next(ticks) < 60


def test_a_rule_that_goes_row_by_row_is_not_tried_on_all_nodes(tmp_path):
    """A clock by which every look at a node of some 64 costs a second."""
    scene = Scene().start("\n".join(f"node n{i} cpu=4" for i in range(1000)) + "\npod a cpu=1")
    looked = []

    def timer():
        return sum(looked)

    compiled = policy(tmp_path, document(NEVER))
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
