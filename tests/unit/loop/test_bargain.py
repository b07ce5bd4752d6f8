"""Extenders have a say in who is evicted, and claims that are out of reach are given up: both in the loop, without a network."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowplan import load_cluster
from stowplan.edge.load import load_policy
from stowplan.edge.notation import read_notation
from stowplan.loop.effects import Bind, ConsultVictims, Deallocate, Evict, Mark, Prepare
from stowplan.loop.events import Advice, Deallocated, Evicted, PolicyChanged, VictimAdvice
from stowplan.policy.attempt import attempt
from stowplan.policy.offers import Offer, first_offers, picked
from unit.loop.driving import Consult, Scene
from unit.plugins.test_dynamic_resources import claim, device_class, devices, node, pod, status

FULL = """
node n1 cpu=2 mem=8Gi
node n2 cpu=2 mem=8Gi
node n3 cpu=2 mem=8Gi
pod low cpu=2 priority=1 on=n1
pod middle cpu=2 priority=2 on=n2
pod high cpu=2 priority=50 on=n3
pod urgent cpu=2 priority=100
"""


def extenders(*members):
    base = {"urlPrefix": "http://e", "preemptVerb": "preempt", "nodeCacheCapable": True}
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return kind | {"extenders": [base | each for each in members or ({},)]}


def asking(text=FULL, *members):
    """A scene in which the first question about victims is asked."""
    scene = Scene(extenders(*members), answers=False).start(text)
    scene.run()
    return scene


def uid(scene, name):
    return scene.objects["Pod", f"default/{name}"]["metadata"]["uid"]


def say(scene, *claims, error=""):
    """The extender answers with nodes, names of pods there, and numbers of broken budgets."""
    told = tuple((where, tuple(uid(scene, name) for name in names), broken) for where, names, broken in claims)
    return scene.handle(VictimAdvice("default/urgent", uid(scene, "urgent"), told, error))


def evicted(scene):
    return [(effect.node, [victim.name for victim in effect.victims]) for effect in scene.of(Evict)]


def message(scene):
    (mark,) = scene.of(Mark)
    return mark.message


def test_nobody_is_evicted_before_the_extender_has_answered():
    scene = asking()
    (asked,) = scene.effects
    assert isinstance(asked, ConsultVictims)
    assert {name: [pod.name for pod in offer.victims] for name, offer in asked.offers.items()} == {
        "n1": ["low"],
        "n2": ["middle"],
        "n3": ["high"],
    }
    assert scene.loop.outcome is None or scene.loop.outcome.result == "consulting"
    assert scene.place("default/urgent") == "out"


def test_of_what_the_extender_leaves_the_cheapest_is_taken():
    scene = asking()
    say(scene, ("n3", ["high"], 0), ("n2", ["middle"], 0))
    assert evicted(scene) == [("n2", ["middle"])]
    assert scene.of(Mark)[0].nominated == "n2"
    assert message(scene).endswith("preemption: found a potential placement for pod on node n2, preempting 1 victims")
    assert scene.loop.ledger.consulted == {}


def test_budgets_that_the_extender_knows_of_count():
    scene = asking()
    say(scene, ("n1", ["low"], 1), ("n3", ["high"], 0))
    assert evicted(scene) == [("n3", ["high"])]


def test_the_extender_may_want_other_victims():
    text = FULL.replace("pod low cpu=2", "pod low cpu=1") + "pod lower cpu=1 priority=1 on=n1\n"
    scene = asking(text)
    say(scene, ("n1", ["lower"], 0))
    assert evicted(scene) == [("n1", ["lower"])]


def test_without_a_node_nobody_goes_and_the_nomination_stays():
    scene = asking()
    say(scene)
    assert evicted(scene) == []
    assert message(scene) == "0/3 nodes are available: 3 Insufficient cpu. preemption: no candidate node for preemption"
    assert scene.of(Mark)[0].nominated is None
    assert scene.place("default/urgent") == "unschedulable"


WRONG = [
    ({"error": "boom"}, "boom"),
    ({"claims": [("n1", [], 0)]}, 'expected at least one victim pod on node "n1"'),
    ({"claims": [("n9", ["low"], 0)]}, 'nodeinfo not found for node name "n9"'),
    (
        {"claims": [("n1", ["high"], 0)]},
        "extender: http://e claims to preempt pod (UID: &{%s}) on node: n1, but the pod is not found",
    ),
]


@pytest.mark.parametrize(("answer", "text"), WRONG)
def test_an_answer_that_makes_no_sense_evicts_nobody(answer, text):
    scene = asking()
    say(scene, *answer.get("claims", ()), error=answer.get("error", ""))
    assert evicted(scene) == []
    assert f"preemption: {text.replace('%s', uid(scene, 'high'))}" in message(scene)
    assert scene.of(Mark)[0].nominated is None


@pytest.mark.parametrize(("answer", "text"), WRONG)
def test_an_extender_that_may_be_ignored_changes_nothing_by_it(answer, text):
    scene = asking(FULL, {"ignorable": True})
    say(scene, *answer.get("claims", ()), error=answer.get("error", ""))
    if "expected" in text:  # such a node is left out, and none is left
        assert evicted(scene) == []
    else:
        assert evicted(scene) == [("n1", ["low"])]


def test_each_extender_is_asked_about_what_the_one_before_has_left():
    scene = asking(FULL, {}, {"urlPrefix": "http://other", "ignorable": True}, {"urlPrefix": "http://filter", "preemptVerb": ""})
    (second,) = say(scene, ("n2", ["middle"], 0), ("n3", ["high"], 3))
    assert second.extender.url_prefix == "http://other"
    assert second.offers["n3"] == Offer((scene.loop.ledger.store.pod("default/high"),), 3)
    assert set(second.offers) == {"n2", "n3"}
    say(scene, error="boom")
    assert evicted(scene) == [("n2", ["middle"])]


def test_an_extender_that_does_not_look_after_the_pod_is_not_asked():
    scene = Scene(extenders({"managedResources": [{"name": "example.com/gpu"}]}), answers=False).start(FULL)
    scene.run()
    assert evicted(scene) == [("n1", ["low"])]


def test_where_nobody_can_be_evicted_nobody_is_asked():
    scene = asking(FULL.replace("priority=100", "priority=0"))
    assert scene.of(ConsultVictims) == []


def test_a_victim_that_has_gone_meanwhile_leaves_room():
    scene = asking()
    advice = VictimAdvice("default/urgent", uid(scene, "urgent"), (("n1", (uid(scene, "low"),), 0),))
    scene.delete("Pod", "default/low")
    scene.handle(advice)
    assert evicted(scene) == []
    scene.run()
    assert [(bind.pod.name, bind.node) for bind in scene.of(Bind)] == [("urgent", "n1")]


def test_what_changed_while_the_extender_thought_is_not_missed():
    """The pod was not waiting when room came up on a node that the extender does not want."""
    scene = asking()
    scene.delete("Pod", "default/middle")
    say(scene)
    scene.run(2.0)
    assert [(bind.pod.name, bind.node) for bind in scene.of(Bind)] == [("urgent", "n2")]


def test_a_node_that_has_gone_meanwhile_is_no_candidate():
    scene = asking()
    answer = (("n1", (uid(scene, "low"),), 0), ("n2", (uid(scene, "middle"),), 0))
    scene.delete("Pod", "default/low")
    scene.delete("Node", "default/n1")
    scene.handle(VictimAdvice("default/urgent", uid(scene, "urgent"), answer))
    assert evicted(scene) == [("n2", ["middle"])]


def test_a_pod_that_has_gone_meanwhile_evicts_nobody():
    scene = asking()
    advice = VictimAdvice("default/urgent", uid(scene, "urgent"), (("n1", (uid(scene, "low"),), 0),))
    scene.delete("Pod", "default/urgent")
    scene.handle(advice)
    assert (evicted(scene), scene.loop.ledger.consulted) == ([], {})


def test_a_policy_that_comes_meanwhile_decides_anew():
    scene = asking()
    scene.handle(PolicyChanged(load_policy(None), 1))
    say(scene, ("n3", ["high"], 0))
    assert evicted(scene) == []
    scene.run()
    assert evicted(scene) == [("n1", ["low"])]


def test_where_extenders_refuse_all_nodes_victims_are_looked_for():
    """As upstream: what an extender has rejected may be open to preemption."""
    text = "node n1 cpu=2 mem=8Gi\nnode n2 cpu=2 mem=8Gi\npod low cpu=2 priority=1 on=n2\npod urgent cpu=2 priority=100\n"
    scene = asking(text, {"filterVerb": "filter", "preemptVerb": ""})
    (asked,) = scene.of(Consult)
    assert asked.nodes == ("n1",)
    scene.handle(Advice("default/urgent", uid(scene, "urgent"), frozenset(), refused=(("n1", "the extender says no"),)))
    assert evicted(scene) == [("n2", ["low"])]
    assert message(scene).startswith("0/2 nodes are available: 1 Insufficient cpu, 1 the extender says no. preemption: found a ")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(-2, 2), st.sampled_from(["x", "y"])), min_size=1, max_size=12))
def test_offers_cost_what_candidates_cost(pods):
    """An extender that changes nothing changes no choice."""
    text = "".join(f"node n{i} cpu=3 mem=8Gi\n" for i in range(1, 4)) + "budget x match=app=x allowed=1\n"
    for i, (where, priority, app) in enumerate(pods):
        text += f"pod p{i} cpu=1 priority={priority} on=n{where} label.app={app}\n"
    policy, store = load_policy(None), load_cluster(read_notation(f"{text}pod new cpu=3 priority=9\n"))
    (new,) = store.pending.values()
    found = attempt(policy, store, new).preemption
    if found is None or found.node is None:
        return
    again = picked(found, first_offers(policy, "default-scheduler", found))
    assert (again.node, again.tied, again.victims, again.message) == (found.node, found.tied, found.victims, found.message)
    assert again.candidates == found.candidates


# Claims


def claims_scene(*, reserved=()):
    scene = Scene(answers=False)
    held = status("k", "x", conditions=["failed"], reserved=reserved)
    for item in (node("b"), device_class(), devices("b", "y"), held, pod("p", "k")):
        scene.put(item)
    scene.start()
    scene.run()
    return scene


def test_a_claim_that_no_node_reaches_is_given_up():
    scene = claims_scene()
    (asked,) = scene.of(Deallocate)
    assert (asked.pod.name, asked.claim.key) == ("p", "default/k")
    assert "deallocation of ResourceClaim completed" in message(scene)
    scene.handle(Deallocated("default/p", "uid-p"))
    assert scene.place("default/p") == "unschedulable"


def test_a_claim_that_others_use_is_kept():
    assert claims_scene(reserved=("uid-other",)).of(Deallocate) == []


def test_a_claim_that_cannot_be_given_up_is_tried_again():
    scene = claims_scene()
    scene.handle(Deallocated("default/p", "uid-p", "forbidden"))
    assert scene.place("default/p") == "errorbackoff"
    scene.run(5.0)
    assert len(scene.of(Deallocate)) > 1


def test_the_pod_is_tried_again_when_its_claim_is_free():
    scene = claims_scene()
    scene.handle(Deallocated("default/p", "uid-p"))
    scene.put(claim("k"))
    scene.run(2.0)
    (asked,) = scene.of(Prepare)
    assert (asked.pod.name, asked.node) == ("p", "b")


def test_preemption_does_not_keep_a_claim_from_being_given_up():
    """DynamicResources comes before DefaultPreemption, whose success has the last word."""
    scene = Scene(answers=False)
    for item in (node("a"), node("b"), device_class(), status("k", "x", conditions=["failed"])):
        scene.put(item)
    low = pod("low", requests={"cpu": "10"}, nodeName="a")
    scene.put(low)
    scene.put(pod("p", "k", requests={"cpu": "10"}, priority=5))
    scene.start()
    scene.run()
    assert [asked.claim.key for asked in scene.of(Deallocate)] == ["default/k"]


def test_evictions_and_their_answer_are_as_without_extenders():
    scene = asking()
    say(scene, ("n1", ["low"], 0))
    scene.delete("Pod", "default/low")
    scene.handle(Evicted("default/urgent", uid(scene, "urgent")))
    scene.run(1.0)
    assert [(bind.pod.name, bind.node) for bind in scene.of(Bind)] == [("urgent", "n1")]
