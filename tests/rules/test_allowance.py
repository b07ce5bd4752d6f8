"""All rules of a profile together: each is within its own budget, and yet a decision does not last."""

import json
from dataclasses import replace

import numpy as np
import pytest

from rules.scenes import cluster, explained, policy
from stowplan.cli.main import run
from stowplan.loop.simulate import simulate
from stowplan.plugins.cel_rule.allowance import LEAST, Allowance, Purpose
from stowplan.policy.attempt import attempt
from stowplan.policy.choose import Chooser
from stowplan.state import Cluster

NODES, RULES = 300, 60
DEAR = "lists.range(60).filter(x, node.name.contains(string(x) + 'x')).size()"
TOGETHER = "the rules of the profile together take more than 3,000,000 units of work for one decision"


def nodes(number=NODES, *more):
    return cluster("\n".join([*(f"node n{i:03} cpu=4" for i in range(number)), "pod p cpu=1", "pod q cpu=2", *more]))


def scores(number, text=DEAR):
    return policy(*({"name": f"s{i}", "score": f"{text} + {i}"} for i in range(number)))


def filters(number, text=DEAR, **rule):
    return policy(*({"name": f"f{i}", "filter": f"{text} == {i * 0}", **rule} for i in range(number)))


def allowance(compiled):
    return compiled.profiles["default-scheduler"].allowance


def overdrawn(compiled):
    """How much more was used than there was: at most what one row takes."""
    found = allowance(compiled)
    assert found.limit == LEAST
    return found.spent / found.limit - 1


def test_each_rule_is_within_its_own_budget():
    found = explained(scores(1), nodes())
    assert set(found["scores"]["s0"]["raw"].values()) == {0}
    assert "ruleErrors" not in found


def test_scores_that_are_too_dear_together():
    compiled, store = scores(RULES), nodes()
    found = explained(compiled, store)
    raw = {name: set(each["raw"].values()) for name, each in found["scores"].items() if name[0] == "s"}
    assert raw["s1"] == {1}
    assert raw["s59"] == {0}
    assert f"s{RULES - 1}" in found["ruleErrors"]
    assert "s1" not in found["ruleErrors"]
    assert all(why.startswith(TOGETHER) for errors in found["ruleErrors"].values() for why in errors.values())
    chooser = Chooser(compiled, store)
    for name in ("default/p", "default/q"):  # every decision has all of it
        choice = chooser.choose(store.pending[name])
        assert choice.row is not None
        assert overdrawn(compiled) < 0.01
        assert {"s1", "s59"} & choice.no_values.keys() == {"s59"}
        assert choice.no_values["s59"].exhausted


def test_filters_that_are_too_dear_together_fail_closed():
    found = explained(filters(RULES), nodes())
    assert found.get("feasible", []) == []
    assert f" failed: {TOGETHER}" in found["message"]
    assert "rule f0 " not in found["message"]
    compiled = filters(RULES, onError="Admit")
    assert len(explained(compiled, nodes())["feasible"]) == NODES


WHEN = "lists.range(9000).all(x, pod.name + string(x) != '')"


def test_conditions_count_as_well():
    compiled = policy(*({"name": f"s{i}", "when": WHEN, "score": "node.free.cpu"} for i in range(60)))
    store = nodes(3)
    choice = Chooser(compiled, store).choose(store.pending["default/p"])
    assert overdrawn(compiled) < 0.1
    assert choice.no_values["s59"].why.startswith(f"when: {TOGETHER}")


def test_messages_do_not_take_from_decisions():
    text = "lists.range(900).map(x, string(x) + node.name).join()"
    rules = [{"name": f"f{i}", "filter": f'node.name != "n{i:03}"', "messageExpression": text} for i in range(40)]
    compiled = policy(*rules)
    assert len(explained(compiled, nodes())["feasible"]) == NODES - 40
    assert allowance(compiled).spent < LEAST / 2


@pytest.mark.parametrize("text", ["int(node.free.cpu)", "node.pods.size()", 'node.labels[?"a"].orValue("") == "b" ? 1 : 0'])
def test_cheap_rules_are_far_from_it(text):
    compiled, store = scores(20, text), nodes(3000)
    choice = Chooser(compiled, store).choose(store.pending["default/p"])
    assert not choice.no_values
    assert allowance(compiled).spent < LEAST / 5


def crowded(number=20):
    seats = [f"pod r{i}-{j} cpu=1 on=n{i:03} priority={j}" for i in range(number) for j in range(4)]
    return nodes(number, *seats, "pod big cpu=2 priority=100")


def test_a_search_for_victims_ends_without_any(monkeypatch):
    """A rule that has no value any more must not cost a pod its place that would fit."""
    text = "node.pods.all(p, lists.range(150).all(x, x >= 0 || p.name == string(x))) && node.pods.size() < 9"
    compiled, store = filters(1, f"({text} ? 0 : 1)", preemptionHelps=True), crowded()
    fits = attempt(compiled, store, store.pending["default/big"]).preemption
    assert fits.chosen is not None
    assert [pod.key for pod in fits.victims] == ["default/r0-1", "default/r0-0"]
    renew = Allowance.renew

    def poorly(self, number):
        renew(self, number)
        self.purses[Purpose.SUPPOSING].left = 10_000

    monkeypatch.setattr(Allowance, "renew", poorly)
    found = attempt(compiled, store, store.pending["default/big"])
    assert found.preemption.chosen is None
    assert "too much work to find victims" in found.message
    assert found.opening.asks["f0"].no_value is None  # what was only supposed leaves nothing behind


FAULTY = {"name": "s", "score": 'int(node.labels["n"]) > 3 ? 1 : 0'}


def test_a_node_that_is_mended_is_no_fault_any_more():
    store = cluster("node a cpu=4 label.n=1\nnode b cpu=4 label.n=x\nnode c cpu=4 label.n=5\npod p cpu=1")
    compiled = policy(FAULTY)
    rule = compiled.profiles["default-scheduler"].plugins["s"]
    ask = rule.asks(store.pending["default/p"], None, Cluster(store))

    def look(*rows):
        rule.scores(ask, Cluster(store, np.array(rows)), None)
        return ask.no_value

    assert look(0, 2) is None
    assert "type conversion" in look(0, 1).why or "int" in look(0, 1).why
    assert look(0, 2) is not None  # another node says nothing about it
    store.set_node(replace(store.nodes[1], labels=store.nodes[0].labels))
    assert look(1) is None


def test_a_simulation_counts():
    store = cluster("node a cpu=4 label.n=1\nnode b cpu=4\n" + "\n".join(f"pod p{i} cpu=1" for i in range(3)))
    (found,) = simulate(policy(FAULTY), store).rule_errors
    assert (found.rule, found.count, found.error, found.pod.key) == ("s", 3, "no such key: n", "default/p0")
    answer = simulate(policy(FAULTY), store).to_json()
    error = {"profile": "default-scheduler", "rule": "s", "count": 3, "error": "no such key: n", "pod": "default/p0"}
    assert answer["ruleErrors"] == [error]
    assert answer["sequence"][0]["ruleErrors"] == {"s": "no such key: n"}
    assert "ruleErrors" not in simulate(policy({"name": "s", "score": "1"}), store).to_json()


def test_a_simulation_tells(tmp_path, capsys):
    nodes_file, rules = tmp_path / "nodes.json", tmp_path / "policy.yaml"
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "4", "pods": "9"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "d"}, "spec": {"containers": [{"name": "c"}]}}
    nodes_file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, pod]}))
    rules.write_text(
        "apiVersion: stowplan.io/v1alpha1\nkind: SchedulerPolicy\nprofiles:\n- schedulerName: default-scheduler\n"
        "  rules:\n  - {name: s, score: 'int(node.labels[\"n\"])'}\n"
    )
    run(["simulate", "--cluster", str(nodes_file), "--policy", str(rules)])
    assert "rule s had no value on some node for 1 of 1 pod, for d/p: no such key: n" in capsys.readouterr().out
