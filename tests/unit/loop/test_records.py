"""Decision records and the shadow of another scheduler."""

import numpy as np

from stowplan.edge.load import load_policy
from stowplan.loop.loop import Loop
from stowplan.loop.records import LONGEST, REASONS, Record, Records, reasons
from stowplan.plugins.plugin import Code
from stowplan.policy.decision import Refusals, Status
from unit.loop.driving import Scene

NODES = "node a cpu=4 mem=8Gi\nnode b cpu=8 mem=8Gi\n"


def records(scene, key):
    return scene.loop.ledger.records.of(key)


def test_a_placement_is_recorded_with_scores_runner_up_and_margin():
    scene = Scene().start(NODES + "node c cpu=1\npod default/p cpu=2")
    scene.run()
    (record,) = records(scene, "default/p")
    assert (record.result, record.node, record.feasible, record.generation) == ("scheduled", "b", 2, 0)
    assert [each.node for each in record.best] == ["b", "a"]
    assert record.best[0].total == record.score
    assert record.margin == record.best[0].total - record.best[1].total
    assert record.margin > 0
    assert sum(part[2] for part in record.best[0].scores.values()) == record.best[0].total
    (reason,) = record.reasons
    assert (reason.text, reason.plugin, reason.nodes, reason.examples) == ("Insufficient cpu", "NodeResourcesFit", 1, ("c",))
    told = record.to_json()
    assert told["runnerUp"] == "a"
    assert told["candidates"][0]["scores"]["NodeResourcesFit"]["weighted"] > 0


def test_a_failed_attempt_is_recorded_with_reasons():
    scene = Scene().start("node c cpu=1\npod default/p cpu=2")
    scene.run(3)
    (record,) = records(scene, "default/p")
    assert (record.result, record.node) == ("unschedulable", "")
    assert [reason.text for reason in record.reasons] == ["Insufficient cpu"]
    assert record.message.startswith("0/1 nodes are available")


def test_where_decisions_come_quickly_scores_are_left_out_and_that_is_said():
    scene = Scene().start(NODES + "pod default/p-{1..40}")
    scene.run()
    detailed = [record.detailed for record in scene.loop.ledger.records]
    assert len(detailed) == 40
    assert detailed[0]
    assert not any(detailed[1:])
    scene.now += 1
    scene.show("pod default/later")
    scene.run()
    (record,) = records(scene, "default/later")
    assert record.detailed


def test_only_so_many_are_kept():
    scene = Scene()
    scene.loop.ledger.records.__init__(size=3)
    scene.start(NODES + "pod default/p-{1..5}")
    scene.run()
    assert len(scene.loop.ledger.records) == 3
    assert scene.loop.ledger.records.written == 5


def shadowing(text):
    scene = Scene()
    scene.loop = Loop(load_policy(None), lambda _: 0, shadow=True)
    return scene.start(text)


def test_a_shadow_decides_nothing_and_agrees_with_the_same_node():
    scene = shadowing(NODES + "pod default/p cpu=2")
    scene.run(60)
    assert scene.effects == []
    scene.patch("Pod", "default/p", spec={"nodeName": "b"})
    shadow = scene.loop.ledger.shadow
    assert dict(shadow.outcomes) == {"same": 1}
    assert shadow.agreement == 1.0


def test_a_shadow_explains_what_it_would_have_done_otherwise():
    scene = shadowing(NODES + "node c cpu=1\nnode d cpu=8 mem=8Gi\npod default/p cpu=2\npod default/q cpu=2\npod default/r cpu=2")
    scene.patch("Pod", "default/p", spec={"nodeName": "a"})
    scene.patch("Pod", "default/q", spec={"nodeName": "c"})
    scene.patch("Pod", "default/r", spec={"nodeName": "d"})
    shadow = scene.loop.ledger.shadow
    assert dict(shadow.outcomes) == {"lower": 1, "rejected": 1, "tied": 1}
    lower, rejected = shadow.disagreements
    assert (lower.theirs, lower.ours) == ("a", "b")
    assert "NodeResourcesFit +" in lower.explanation
    assert rejected.explanation == "c is rejected by NodeResourcesFit: Insufficient cpu"
    assert shadow.to_json()["agreement"] == 0.333333


def test_as_many_reasons_as_nodes_are_not_all_kept():
    """Extenders give each node a reason of its own."""
    scene = Scene().start("".join(f"node n{number} cpu=1\n" for number in range(200)))
    refused = Refusals(200)
    refused.put(np.arange(20), Status(Code.UNSCHEDULABLE, ("common",), "Extender"))
    for row in range(20, 200):
        refused.put(row, Status(Code.UNSCHEDULABLE, (f"node {row} is odd",), "Extender"))
    found = reasons(refused, scene.loop.ledger.store)
    assert len(found) == REASONS + 1
    assert (found[0].text, found[0].nodes) == ("common", 20)
    assert (found[-1].text, found[-1].nodes) == ("131 other reasons", 131)
    assert sum(each.nodes for each in found) == 200


def test_long_messages_are_not_kept_whole():
    found = Records()
    record = Record("a/b", "u", 1000.0, "p", 0, "", 1, "unschedulable", message="x" * 10**6)
    found.add(record)
    (kept,) = found
    assert len(kept.message) == LONGEST + 4
    assert kept.message.endswith("x ...")
