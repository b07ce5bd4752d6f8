"""Edits of the policy, scripted on the model."""

import pytest

from controlplane.objects import node, pod
from simulation.faults import Fault
from simulation.policies import CONFIGMAPS, HISTORY
from simulation.test_situations import EVENTS, Stage


def waiting_pod(name: str = "p"):
    return pod(name, requests={"cpu": "100m"}, schedulerName="stow")


def zoned_nodes():
    return [node(f"n{number}", f"z{number}") for number in range(3)]


def test_an_edit_alone_places_a_pod_that_no_node_took():
    with Stage(*zoned_nodes(), waiting_pod()) as stage:
        stage.at(0.0, "edit_policy", text="zone nowhere")
        stage.until(30.0)
        assert stage.node_of("p") == ""
        stage.at(30.0, "edit_policy", text="zone z1")
        stage.until(32.0)
        assert stage.node_of("p") == "n1"
        stage.settled(120.0)


def test_a_bad_edit_changes_nothing_and_a_restart_with_it_waits_for_the_fix():
    with Stage(*zoned_nodes()) as stage:
        stage.at(5.0, "edit_policy", text="zone z1")
        stage.at(10.0, "edit_policy", text="mistyped")
        stage.at(12.0, "create", item=waiting_pod())
        stage.until(15.0)
        assert stage.node_of("p") == "n1"
        stage.at(15.0, "crash", process=0)
        stage.at(20.0, "create", item=waiting_pod("q"))
        stage.settled(60.0)
        assert stage.run.leader is None
        assert stage.node_of("q") == ""
        stage.at(60.0, "edit_policy", text="zone z2")
        stage.until(100.0)
        assert stage.node_of("q") == "n2"
        stage.settled(180.0)
        assert stage.run.leader.keeper.in_force.generation == 0


def test_a_burst_and_a_deletion():
    with Stage(*zoned_nodes()) as stage:
        for place, text in enumerate(("zone z1", "syntax", "rollout 70", "unknown", "zone z2")):
            stage.at(10.0 + place / 100, "edit_policy", text=text)
        stage.at(12.0, "delete_policy")
        stage.at(13.0, "create", item=waiting_pod())
        stage.settled(60.0)
        assert stage.node_of("p") == "n2"
        assert stage.run.leader.keeper.trouble == "configmap stowplan-system/policy is not there"
        assert "versions.json" in stage.storage.objects[CONFIGMAPS][HISTORY]["data"]


def test_what_takes_a_restart_is_refused_until_then():
    with Stage(*zoned_nodes(), replicas=2) as stage:
        stage.at(10.0, "edit_policy", text="slow zone z2")
        for number in range(3):
            stage.at(12.0, "create", item=waiting_pod(f"p{number}"))
        stage.until(20.0)
        assert "leaderElection.leaseDuration" in stage.run.leader.keeper.refused.reason
        assert {stage.node_of(f"p{number}") for number in range(3)} == {"n0", "n1", "n2"}
        for process in range(2):
            stage.at(20.0, "crash", process=process)
        stage.at(60.0, "create", item=waiting_pod("q"))
        stage.settled(150.0)
        assert stage.node_of("q") == "n2"


@pytest.mark.parametrize("mounted", ["file", "volume"])
def test_a_mounted_policy_that_is_edited_deleted_and_there_again(mounted):
    with Stage(*zoned_nodes(), replicas=2, mounted=mounted) as stage:
        stage.at(5.0, "edit_policy", text="zone z1")
        stage.at(10.0, "edit_policy", text="mistyped")
        stage.at(12.0, "create", item=waiting_pod())
        stage.until(20.0)
        assert stage.node_of("p") == "n1"
        assert stage.run.leader.keeper.refused is not None
        stage.at(20.0, "delete_policy")
        stage.at(30.0, "edit_policy", text="zone z2")
        stage.at(35.0, "create", item=waiting_pod("q"))
        stage.settled(100.0)
        assert stage.node_of("q") == "n2"
        assert stage.run.leader.keeper.trouble == ""


@pytest.mark.parametrize("share", [0.5, 0.8, 0.99])
def test_a_file_that_is_written_in_steps(share):
    """Neither does half of it come into force, which would be a policy without the rule, nor is it told of."""
    with Stage(*zoned_nodes(), waiting_pod(), mounted="file") as stage:
        stage.at(0.0, "edit_policy", text="zone nowhere")
        stage.until(20.0)
        stage.at(20.0, "edit_policy", text="lines", share=share, pause=0.2)
        stage.until(30.0)
        assert stage.node_of("p") == "n1"
        assert (stage.run.checks.reloads.edits, stage.run.checks.reloads.refusals) == (1, 0)
        stage.settled(100.0)


def test_a_refusal_is_told_even_if_events_could_not_be_written_for_a_while():
    fault = Fault("500", "event", 9.0, 25.0, 100)
    with Stage(*zoned_nodes(), faults=(fault,)) as stage:
        stage.at(10.0, "edit_policy", text="mistyped")
        stage.settled(100.0)
        told = [event for event in stage.storage.objects[EVENTS].values() if event["reason"] == "PolicyRejected"]
        assert len(told) == 1
