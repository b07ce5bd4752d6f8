"""Edits of the policy, scripted on the model."""

from controlplane.objects import node, pod
from simulation.policies import CONFIGMAPS, HISTORY
from simulation.test_situations import Stage


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
