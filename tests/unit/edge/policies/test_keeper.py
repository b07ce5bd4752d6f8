from __future__ import annotations

import asyncio

import pytest

from stowplan.edge.policies.examine import Examiner, Offer
from stowplan.edge.policies.telling import ComparisonGauges
from stowplan.edge.serve.configz import policy_hash
from stowplan.loop.effects import Bind
from stowplan.loop.events import Cycle, Failure, NotBound, PolicyChanged
from stowplan.text import Code, Diagnostic, Severity, Source
from unit.edge.policies.offering import BAD, HEAD, LABELLED, NEVER, document, keeper, offer
from unit.loop.driving import Scene

CLUSTER = "node n1 cpu=4 label.disk=ssd\nnode n2 cpu=4\n"


def kept_policy(text):
    return Examiner().examine(offer(text), None).policy


def started(cluster=CLUSTER, first=None):
    scene = Scene().start(cluster)
    kept, told = keeper(first or document(), scene)
    return scene, kept, told


def test_an_edit_alone_places_a_pod_that_no_node_took():
    scene, kept, _ = started(CLUSTER, document(NEVER))
    scene.handle(PolicyChanged(kept.in_force.policy, 0, kept.in_force.digest))
    scene.show("pod a cpu=1")
    scene.run()
    assert scene.loop.ledger.queue.pending()["unschedulable"] == 1
    asyncio.run(kept.offer(offer(document(LABELLED.format("disk")))))
    scene.run()
    assert scene.where() == {"a": "n1"}
    first, *_, last = scene.loop.ledger.records.of("default/a")
    assert (first.result, first.generation, last.result, last.generation) == ("unschedulable", 0, "scheduled", 1)
    assert (first.digest, last.digest) == (policy_hash(kept_policy(document(NEVER))), kept.in_force.digest)


@pytest.mark.parametrize("what", BAD)
def test_a_bad_text_changes_nothing(what):
    scene, kept, told = started()
    policy, digest = scene.loop.ledger.policy, kept.in_force.digest
    asyncio.run(kept.offer(offer(BAD[what])))
    assert scene.loop.ledger.policy is policy
    assert (scene.loop.ledger.generation, kept.in_force.digest) == (0, digest)
    ((reason, stays),) = told.refusals
    assert stays == 0
    assert reason.startswith("policy.yaml:")
    line, column = reason.split(":")[1:3]
    assert int(line) >= 3
    assert int(column) >= 1
    assert reason in kept.note()


def test_the_good_text_again_ends_the_refusal():
    _, kept, told = started()
    asyncio.run(kept.offer(offer(BAD["syntax"])))
    assert kept.refused is not None
    asyncio.run(kept.offer(offer("# as before\n" + document())))
    assert kept.refused is None
    assert kept.results == {"rejected": 1, "unchanged": 1}
    assert told.generations == [0]
    assert kept.in_force.offer.source.text.startswith("# as before")


def test_a_bad_text_is_told_once():
    _, kept, told = started()
    for _ in range(3):
        asyncio.run(kept.offer(offer(BAD["syntax"])))
    assert len(told.refusals) == 1


def test_half_a_text_is_read_once_more():
    whole = document(LABELLED.format("disk"))
    scene, kept, told = started()

    async def again():
        return offer(whole)

    asyncio.run(kept.offer(offer(whole[:-10]), again))
    assert told.refusals == []
    assert scene.loop.ledger.generation == 1


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("leaderElection: {leaseDuration: 20s}\n", ":3:33: error[STW205]: leaderElection.leaseDuration: cannot change"),
        ("leaderElection:\n  resourceName: other\n", ":4:17: error[STW205]: leaderElection.resourceName: cannot change"),
        ("clientConnection: {qps: 7}\n", ":3:25: error[STW205]: clientConnection.qps: cannot change"),
        ("delayCacheUntilActive: true\n", ":3:24: error[STW205]: delayCacheUntilActive: cannot change"),
    ],
)
def test_what_needs_a_restart_is_refused_at_its_place(more, says):
    _, kept, told = started()
    asyncio.run(kept.offer(offer(document(more=more))))
    ((reason, _),) = told.refusals
    assert reason.startswith(f"policy.yaml{says}")
    assert "while the scheduler runs" in reason


def test_what_the_command_line_says_is_no_change():
    scene = Scene().start(CLUSTER)
    text = document(more="leaderElection: {resourceName: a}\n")
    kept, told = keeper(text, scene, {"resource_name": "mine"})
    asyncio.run(kept.offer(offer(document(NEVER, more="leaderElection: {resourceName: b}\n"))))
    assert told.refusals == []
    assert kept.in_force.policy.configuration.leader_election.resource_name == "mine"


def test_a_rule_that_rejects_everything_is_in_force_with_a_warning():
    scene, kept, _ = started(CLUSTER + "pod a cpu=1")
    asyncio.run(kept.offer(offer(document(NEVER))))
    assert scene.loop.ledger.generation == 1
    (warning,) = kept.in_force.warnings
    assert warning.severity is Severity.WARNING
    assert "rule r0: the filter lets no node pass (2 nodes of the live cluster, for default/a)" in warning.message
    assert warning.span.line == 7


def test_what_fails_on_the_live_cluster_is_refused(monkeypatch):
    scene, kept, told = started()

    def fails(*_):
        raise RuntimeError("boom")

    monkeypatch.setattr("stowplan.edge.policies.keeper.tried", fails)
    asyncio.run(kept.offer(offer(document(NEVER))))
    assert scene.loop.ledger.generation == 0
    assert "failed on the live cluster: RuntimeError: boom" in told.refusals[0][0]


def test_an_unreadable_text_is_refused_and_looked_at_again():
    _, kept, told = started()
    wrong = Offer(Source("p", ""), Diagnostic(Code.UNREADABLE, Severity.ERROR, "p: the input is empty"))
    asyncio.run(kept.offer(wrong))
    asyncio.run(kept.offer(offer(document(NEVER))))
    assert told.refusals == [("error[STW117]: p: the input is empty", 0)]
    assert told.generations == [0, 1]


def test_a_text_that_is_gone_leaves_the_policy_in_force():
    scene, kept, told = started()
    kept.lost("it is not there")
    kept.lost("it is not there")
    assert told.losses == ["it is not there"]
    assert kept.note().endswith("; it is not there")
    asyncio.run(kept.offer(offer(document())))
    assert kept.trouble == ""
    assert scene.loop.ledger.generation == 0


def test_twenty_edits_a_third_of_them_bad():
    """The scheduler goes on placing under the last good policy, and every decision was made under one that was in force."""
    scene, kept, told = started("\n".join(f"node n{i} cpu=64 label.a{i}=x" for i in range(8)))
    wrong, digests = list(BAD.values()), {0: kept.in_force.digest}
    for edit in range(20):
        text = wrong[edit // 3 % 3] if edit % 3 == 2 else document(LABELLED.format(f"a{edit % 8}"))
        asyncio.run(kept.offer(offer(text)))
        digests[scene.loop.ledger.generation] = kept.in_force.digest
        scene.now += 0.5
        scene.show(f"pod p{edit} cpu=1")
        scene.run()
        placed = scene.loop.ledger.records.of(f"default/p{edit}")[-1]
        good = edit - 1 if edit % 3 == 2 else edit
        assert (placed.result, placed.node) == ("scheduled", f"n{good % 8}")
        assert placed.digest == digests[placed.generation]
    assert len(told.refusals) == 6
    assert told.generations == list(range(15))


def test_profiles_that_come_and_go():
    scene, kept, _ = started(CLUSTER + "pod a cpu=1 scheduler=other")
    scene.run()
    assert scene.where() == {}
    asyncio.run(kept.offer(offer(f"{HEAD}profiles:\n- schedulerName: default-scheduler\n- schedulerName: other\n")))
    scene.run()
    assert scene.where() == {"a": "n1"}


def test_a_profile_that_goes_while_a_pod_of_it_is_being_bound():
    scene = Scene(answers=False).start(CLUSTER)
    kept, _ = keeper(document(), scene)
    scene.show("pod a cpu=1")
    (bind,) = [each for each in scene.handle(Cycle()) if isinstance(each, Bind)]
    asyncio.run(kept.offer(offer(document(name="other"))))
    scene.handle(NotBound(bind.pod.key, bind.pod.uid, Failure.REFUSED, "no"))
    scene.run(60)
    assert scene.place("default/a") == "gone"
    asyncio.run(kept.offer(offer(document())))
    assert [each.pod.name for each in scene.handle(Cycle()) if isinstance(each, Bind)] == ["a"]
    assert scene.loop.ledger.records.of("default/a")[-1].generation == 2


def test_rules_in_audit_are_counted():
    scene = Scene().start(CLUSTER)
    kept, _ = keeper(document(), scene)
    audit = f"{HEAD}profiles:\n- rules:\n  - {{name: r, mode: Audit, filter: '{NEVER}', message: none of these}}\n"
    asyncio.run(kept.offer(offer(audit)))
    scene.show("pod a cpu=1")
    scene.run()
    (family,) = [each for each in ComparisonGauges(scene.loop.ledger).collect() if each.name == "stowplan_audit_objections"]
    assert [(sample.labels, sample.value) for sample in family.samples] == [({"rule": "r"}, 1)]
    assert scene.where()["a"] in ("n1", "n2")


def test_the_same_text_found_elsewhere_is_the_source_from_then_on():
    """The last good file at the start, and then the ConfigMap with that text."""
    _, kept, told = started()
    asyncio.run(kept.offer(offer(document(), "configmap s/policy[p]")))
    assert kept.in_force.source == "configmap s/policy[p]"
    assert told.generations == [0]
    asyncio.run(kept.offer(offer(BAD["syntax"], "configmap s/policy[p]")))
    asyncio.run(kept.offer(offer(BAD["syntax"], "elsewhere")))
    assert kept.in_force.source == "configmap s/policy[p]"
