from __future__ import annotations

import asyncio

import pytest

from stowplan.edge.policies.examine import Examiner, Offer
from stowplan.edge.policies.keeper import described
from stowplan.edge.policies.telling import ComparisonGauges, PolicyGauges
from stowplan.edge.policies.worker import worked
from stowplan.edge.serve.configz import policy_hash
from stowplan.loop.effects import Bind
from stowplan.loop.events import Cycle, Failure, NotBound, PolicyChanged
from stowplan.policy.compile import PolicyError
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


def test_a_text_that_is_checked_without_end_makes_room_for_a_newer_one():
    """It computes no more once it is given up, and is refused once."""
    kept, told = keeper(document())
    steps = []

    class Slow(Examiner):
        def examine(self, found, running):
            while found.source.text == "endless":
                steps.append(None)
            return Examiner().examine(found, running)

    async def test():
        kept.examiner, kept.beside = Slow(), worked
        overtaken = asyncio.Event()
        asyncio.get_running_loop().call_later(0.05, overtaken.set)
        await kept.offer(offer("endless"), overtaken.wait)
        await kept.offer(offer(document(LABELLED.format("disk"))))
        await asyncio.sleep(0.1)
        before = len(steps)
        await asyncio.sleep(0.1)
        return len(steps) - before

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stowplan.edge.policies.keeper.PATIENCE", 0.2)
        assert asyncio.run(test()) == 0
    ((reason, stays),) = told.refusals
    assert "it takes too long to check" in reason
    assert (stays, told.generations) == (0, [0, 1])


def test_a_text_that_is_checked_without_end_is_given_up_if_none_follows(monkeypatch):
    monkeypatch.setattr("stowplan.edge.policies.keeper.PATIENCE", 0.05)
    monkeypatch.setattr("stowplan.edge.policies.keeper.LONGEST", 0.2)
    kept, told = keeper(document())

    async def beside(work):  # noqa: ARG001 - never done
        await asyncio.sleep(60)

    kept.beside = beside
    asyncio.run(kept.offer(offer(document(NEVER)), asyncio.Event().wait))
    assert [reason for reason, _ in told.refusals] == [
        "error[STW301]: given up: it takes too long to check; shorten it, or its rules"
    ]


def test_a_slow_text_is_waited_for_while_nothing_newer_is_there(monkeypatch):
    monkeypatch.setattr("stowplan.edge.policies.keeper.PATIENCE", 0.01)
    kept, told = keeper(document())

    async def beside(work):
        await asyncio.sleep(0.1)
        return work()

    kept.beside = beside
    asyncio.run(kept.offer(offer(document(NEVER)), asyncio.Event().wait))
    assert (told.refusals, told.generations) == ([], [0, 1])


@pytest.mark.parametrize(
    "text",
    [
        HEAD,
        f"{HEAD}profiles:\n",
        f"{HEAD}profiles: []\n",
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n",
        "",
        "# nothing\n",
        "{}",
        "---\n",
    ],
)
def test_a_text_that_says_nothing_of_profiles_is_refused(text):
    scene, kept, told = started(CLUSTER + "pod a cpu=1 scheduler=other", document(name="other"))
    asyncio.run(kept.offer(offer(text)))
    assert (len(told.refusals), scene.loop.ledger.generation) == (1, 0)
    assert list(kept.in_force.policy.profiles) == ["other"]


def test_a_file_without_profiles_may_go_on_so():
    """As kube-scheduler takes it at a start."""
    scene, kept, told = started(CLUSTER, HEAD)
    asyncio.run(kept.offer(offer(f"{HEAD}percentageOfNodesToScore: 50\n")))
    assert (told.refusals, scene.loop.ledger.generation) == ([], 1)
    asyncio.run(kept.offer(offer(document(name="other"))))
    asyncio.run(kept.offer(offer(HEAD)))
    ((reason, _),) = told.refusals
    assert "profiles: missing: pods of the profiles so far would wait, and only default-scheduler would be served" in reason


def test_a_configmap_does_not_begin_without_profiles():
    """What an edit is refused with, a restart does not accept."""
    with pytest.raises(PolicyError, match="profiles: missing"):
        Examiner().examine(offer(HEAD, about={"name": "policy"}), None)


@pytest.mark.parametrize("rest", [document(name="other"), "kind: ConfigMap\n", "a: [\n", "- 1\n"])
def test_further_documents_are_refused(rest):
    _, kept, told = started()
    asyncio.run(kept.offer(offer(f"{document(NEVER)}---\n{rest}")))
    ((reason, _),) = told.refusals
    assert reason.startswith("policy.yaml:8:1: error[STW106]: only the first document of a file is read")


@pytest.mark.parametrize("text", [f"---\n{document(NEVER)}", f"{document(NEVER)}---\n", f"# first\n---\n{document(NEVER)}...\n"])
def test_marks_around_the_one_document_are_fine(text):
    _, kept, told = started()
    asyncio.run(kept.offer(offer(text)))
    assert (told.refusals, told.generations) == ([], [0, 1])


def test_a_name_that_is_served_no_more_is_warned_of_until_it_is_again():
    _, kept, _ = started(CLUSTER + "pod a cpu=1 scheduler=other\npod b cpu=100", document(name="other"))
    asyncio.run(kept.offer(offer(document(name="new"))))
    (warning,) = kept.in_force.warnings
    assert (warning.code, warning.severity) == (Code.NAME_REMOVED, Severity.WARNING)
    assert 'no profile has schedulerName "other" any more: 1 pod of it waits (default/a)' in warning.message
    assert warning.span.line == 3
    assert described(kept)["unserved"] == {"other": 1}
    assert kept.note().endswith('1 pod waits for schedulerName "other", which the policy has no more')
    (family,) = [each for each in PolicyGauges(kept).collect() if each.name == "stowplan_policy_unserved_pods"]
    assert [(sample.labels, sample.value) for sample in family.samples] == [({"scheduler_name": "other"}, 1)]
    asyncio.run(kept.offer(offer(document(NEVER, name="new"))))
    assert described(kept)["unserved"] == {"other": 1}, "an edit of something else does not make it right"
    asyncio.run(kept.offer(offer(document(name="other"))))
    assert [each.message for each in kept.in_force.warnings] == [
        'no profile has schedulerName "new" any more: new pods of it will wait'
    ]
    assert described(kept)["unserved"] == {"new": 0}


def test_the_policy_of_a_start_is_tried_once_the_cluster_is_known():
    scene, kept, told = started(CLUSTER + "pod a cpu=1", document(NEVER))
    looks = iter((False, True))
    asyncio.run(kept.try_start(lambda: next(looks)))
    ((generation, (warning,)),) = told.found
    assert generation == 0
    assert "rule r0: the filter lets no node pass (2 nodes of the live cluster, for default/a)" in warning.message
    assert kept.in_force.warnings == (warning,)
    assert (scene.loop.ledger.generation, told.refusals) == (0, [])
    asyncio.run(kept.try_start(lambda: True))
    assert len(told.found) == 1


def test_the_policy_of_a_start_that_fails_on_the_live_cluster_stays(monkeypatch):
    _, kept, told = started()

    def fails(*_):
        raise RuntimeError("boom")

    monkeypatch.setattr("stowplan.edge.policies.keeper.tried", fails)
    asyncio.run(kept.try_start(lambda: True))
    ((_, (warning,)),) = told.found
    assert (warning.severity, warning.message) == (Severity.WARNING, "fails on the live cluster: RuntimeError: boom")
    assert kept.in_force.generation == 0


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
