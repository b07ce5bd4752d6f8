"""Policies that change under a running scheduler, on the real API server; and a shadow of the real kube-scheduler."""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from controlplane.components import start_scheduler
from controlplane.objects import node, nodes, pod, pods
from controlplane.waiting import eventually
from e2e.bindings import Bindings
from e2e.running import NAMESPACE, policy

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("controlplane")]
MAP = "stowplan-policy"
SOURCE = ["--policy-configmap", f"{NAMESPACE}/{MAP}"]
SYNTAX, UNKNOWN, MISTYPED = "profiles: [\n", {"filter": {"enabled": [{"name": "NodeRessourcesFit"}]}}, "node.allocatable.cpu + true"


def zoned(zone, **members):
    """A policy that leaves one zone's nodes, or none, as JSON, which is YAML."""
    rule = {"name": "zone", "filter": f'node.labels[?"topology.kubernetes.io/zone"].orValue("") == "{zone}"'}
    return json.dumps(policy({"schedulerName": "stowplan", "rules": [rule]}, **members))


def write(client, text):
    """Make the ConfigMap say this; the moment at which the API server had it."""
    client.patch("configmaps", MAP, {"data": {"policy.yaml": text}}, NAMESPACE)
    return time.monotonic()


def page(scheduler, path):
    status, text = scheduler.fetch(path)
    assert status == 200, text
    return json.loads(text)


def in_force(scheduler):
    return page(scheduler, "/configz")["policy"]


def generation(scheduler, number, timeout=10.0):
    return eventually(lambda: (found := in_force(scheduler))["generation"] >= number and found, timeout, 0.01)


def events(client):
    """Reasons and notes of the Events on the ConfigMap."""
    found = [each for each in client.list("events.events.k8s.io", NAMESPACE) if each["regarding"]["name"] == MAP]
    return [(each["reason"], each["note"]) for each in found]


def decisions(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_an_edit_while_500_pods_are_pending(cluster, run, tmp_path):
    """In force within a second, between two decisions: before it all pods go to one zone, after it to the other."""
    client, log = cluster.admin, tmp_path / "decisions.jsonl"
    client.create_all([node(f"{zone}-{at:02}", zone) for zone in ("a", "b") for at in range(20)])
    write(client, zoned("a"))
    scheduler = run(SOURCE, flags=["--decisions", str(log)])
    first = in_force(scheduler)
    with Bindings(client) as bindings:
        creating = threading.Thread(target=client.create_all, args=(pods(500, schedulerName="stowplan"),))
        creating.start()
        eventually(lambda: len(client.list("pods", fieldSelector="spec.nodeName!=")) > 50)
        wrote = write(client, zoned("b"))
        second = generation(scheduler, 1)
        took = time.monotonic() - wrote
        creating.join()
        eventually(lambda: not client.list("pods", fieldSelector="spec.nodeName="), timeout=60)
        bindings.check(500)
    scheduler.stop()
    found = [each for each in decisions(log) if each["result"] == "scheduled"]
    zones = {0: "a", 1: "b"}
    assert {each["policy"]["hash"] for each in found} == {first["hash"], second["hash"]}
    assert all(each["node"][0] == zones[each["policy"]["generation"]] for each in found)
    generations = [each["policy"]["generation"] for each in found]
    assert generations == sorted(generations)
    assert len(found) >= 500
    late = generations.index(1)
    print(f"in force {took * 1000:.0f} ms after the edit; {late} pods were decided before it, {len(found) - late} after it")
    assert took < 1


def test_a_pod_that_no_node_takes_is_placed_by_an_edit_alone(cluster, run):
    client = cluster.admin
    client.create_all(nodes(3))
    write(client, zoned("nowhere"))
    scheduler = run(SOURCE)
    client.create(pod("waits", schedulerName="stowplan"))
    waiting = eventually(lambda: [each for each in page(scheduler, "/queue")["items"] if each["state"] == "unschedulable"])
    assert waiting[0]["plugins"] == ["zone"]
    wrote = write(client, zoned("zone-b"))
    eventually(lambda: client.get("pods", "waits", "default")["spec"].get("nodeName") == "node-0001", every=0.005)
    print(f"bound {(time.monotonic() - wrote) * 1000:.0f} ms after the edit was written")
    record = page(scheduler, "/decisions/default/waits")["items"][-1]
    assert (record["policy"]["generation"], record["node"]) == (1, "node-0001")


def test_twenty_edits_in_ten_seconds_a_third_of_them_bad(cluster, run):
    client = cluster.admin
    client.create_all([node(f"{zone}-{at:02}", zone) for zone in ("a", "b") for at in range(10)])
    write(client, zoned("a"))
    scheduler = run(SOURCE)
    broken = policy({"schedulerName": "stowplan", "rules": [{"name": "r", "filter": MISTYPED}]})
    bad = [SYNTAX, json.dumps(policy({"schedulerName": "stowplan", "plugins": UNKNOWN})), json.dumps(broken)]
    with Bindings(client) as bindings:
        for edit in range(20):
            begun = time.monotonic()
            text = bad[edit // 3 % 3] if edit % 3 == 2 else zoned("nowhere" if edit == 9 else "ab"[edit % 2])
            write(client, text)
            client.create_all(pods(10, prefix=f"edit{edit:02}", schedulerName="stowplan"))
            time.sleep(max(0.0, begun + 0.5 - time.monotonic()))
        eventually(lambda: not client.list("pods", fieldSelector="spec.nodeName="), timeout=20)
        bindings.check(200)
    eventually(lambda: len([1 for reason, _ in events(client) if reason == "PolicyRejected"]) == 6)
    found = events(client)
    rejected = [note for reason, note in found if reason == "PolicyRejected"]
    assert all(note.startswith(f"configmap {NAMESPACE}/{MAP}[policy.yaml]:1:") for note in rejected)
    assert sum("NodeRessourcesFit" in note for note in rejected) == 2
    assert any("lets no node pass" in note for reason, note in found if reason == "PolicyReloaded")
    now = in_force(scheduler)
    assert "rejected" not in now
    assert dict(scheduler_results(scheduler))["rejected"] == 6


def scheduler_results(scheduler):
    return [(labels["result"], value) for labels, value in scheduler.samples("stowplan_policy_reloads_total")]


def test_deleted_recreated_and_rolled_back(cluster, run):
    client = cluster.admin
    client.create_all(nodes(3))
    write(client, zoned("zone-a"))
    scheduler = run(SOURCE)
    write(client, zoned("zone-b"))
    generation(scheduler, 1)
    client.delete("configmaps", MAP, NAMESPACE)
    eventually(lambda: "trouble" in in_force(scheduler))
    client.create(pod("meanwhile", schedulerName="stowplan"))
    eventually(lambda: client.get("pods", "meanwhile", "default")["spec"].get("nodeName") == "node-0001")
    client.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": MAP, "namespace": NAMESPACE}, "data": {"x": SYNTAX}}
    )
    eventually(lambda: "rejected" in in_force(scheduler))
    client.delete("configmaps", MAP, NAMESPACE)
    text = zoned("zone-c")
    client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": MAP, "namespace": NAMESPACE}, "data": {"x": text}})
    generation(scheduler, 2)
    command = [str(Path(sys.executable).with_name("stowplan")), "policy"]
    where = ["--kubeconfig", str(cluster.kubeconfig()), "--policy-configmap", f"{NAMESPACE}/{MAP}"]

    def told(verb, *more):
        return subprocess.run([*command, verb, *where, *more], check=True, capture_output=True, text=True, timeout=60).stdout

    eventually(lambda: len(json.loads(told("history", "-o", "json"))["items"]) == 3)
    assert "version 2 " in told("rollback")
    generation(scheduler, 3)
    client.create(pod("after", schedulerName="stowplan"))
    eventually(lambda: client.get("pods", "after", "default")["spec"].get("nodeName") == "node-0001")


def test_a_restart_with_a_bad_configmap(cluster, run, tmp_path):
    client, kept = cluster.admin, tmp_path / "last-good.yaml"
    client.create_all(nodes(3))
    write(client, SYNTAX)
    waits = run(SOURCE, wait=False, name="waits")
    eventually(lambda: waits.answers("/livez"))
    status, text = waits.fetch("/readyz?verbose")
    assert status == 500
    assert f"no policy yet; rejected: configmap {NAMESPACE}/{MAP}[policy.yaml]:1:" in text
    client.create(pod("first", schedulerName="stowplan"))
    write(client, zoned("zone-a"))
    waits.await_ready(10)
    eventually(lambda: client.get("pods", "first", "default")["spec"].get("nodeName") == "node-0000")
    assert waits.stop() == 0
    good = run(SOURCE, name="good", flags=["--last-good", str(kept)])
    eventually(kept.exists)
    assert good.stop() == 0
    write(client, SYNTAX)
    again = run(SOURCE, name="again", flags=["--last-good", str(kept)])
    assert in_force(again)["source"] == str(kept)
    client.create(pod("second", schedulerName="stowplan"))
    eventually(lambda: client.get("pods", "second", "default")["spec"].get("nodeName") == "node-0000")


def test_a_mounted_file_is_swapped(cluster, run, tmp_path):
    client = cluster.admin
    client.create_all(nodes(3))

    def mount(name, text):
        (tmp_path / name).mkdir()
        (tmp_path / name / "policy.yaml").write_text(text)
        (tmp_path / "..data_tmp").symlink_to(name)
        (tmp_path / "..data_tmp").replace(tmp_path / "..data")
        return time.monotonic()

    mount("..1", zoned("zone-a"))
    (tmp_path / "policy.yaml").symlink_to("..data/policy.yaml")
    scheduler = run(["--policy", str(tmp_path / "policy.yaml")])
    swapped = mount("..2", zoned("zone-b"))
    generation(scheduler, 1)
    print(f"in force {(time.monotonic() - swapped) * 1000:.0f} ms after the swap")
    client.create(pod("after", schedulerName="stowplan"))
    eventually(lambda: client.get("pods", "after", "default")["spec"].get("nodeName") == "node-0001")


def test_a_rollout_to_half_of_ten_owners_and_its_promotion(cluster, run):
    """Stable leaves zone a, the candidate zone b: each owner's pods are in one of them; one edit gives zone b to all."""
    client = cluster.admin
    client.create_all([node(f"{zone}-{at}", zone) for zone in ("a", "b") for at in range(3)])
    stable, candidate = (json.loads(zoned(zone))["profiles"][0] for zone in ("a", "b"))
    rollout = {"profile": "stowplan", "percent": 50, "candidate": {"rules": candidate["rules"]}}
    write(client, json.dumps(policy(stable, rollout=rollout)))
    scheduler = run(SOURCE)

    def scale(wave):
        """Three more pods for each owner; the zone of each."""
        for owner in range(10):
            reference = {
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "name": f"owner-{owner}",
                "uid": f"u{owner}",
                "controller": True,
            }
            for each in pods(3, prefix=f"{wave}-{owner}", schedulerName="stowplan"):
                each["metadata"]["ownerReferences"] = [reference]
                client.create(each)
        eventually(lambda: not client.list("pods", fieldSelector="spec.nodeName="))
        found = client.list("pods", "default")
        return {
            each["metadata"]["name"]: each["spec"]["nodeName"][0] for each in found if each["metadata"]["name"].startswith(wave)
        }

    def zones(placed, wave):
        return [{zone for name, zone in placed.items() if name.startswith(f"{wave}-{owner}")} for owner in range(10)]

    first = scale("first")
    split = zones(first, "first")
    assert {len(each) for each in split} == {1}
    assert {zone for each in split for zone in each} == {"a", "b"}
    eventually(lambda: sum(each["placed"] for each in page(scheduler, "/policy")["rollout"]["versions"].values()) == 30)
    versions = page(scheduler, "/policy")["rollout"]["versions"]
    placed = [versions[word]["placed"] for word in ("stable", "candidate")]
    assert placed == [list(first.values()).count("a"), list(first.values()).count("b")]
    assert all(each["pending"] == 0 and each["secondsToPlace"]["le"]["+Inf"] == each["placed"] for each in versions.values())
    command = [
        str(Path(sys.executable).with_name("stowplan")),
        "policy",
        "status",
        "--server",
        f"http://127.0.0.1:{scheduler.port}",
    ]
    told = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    assert [line.split()[1:] for line in told.splitlines() if line.startswith("placed")] == [[str(count) for count in placed]]
    assert zones(scale("second"), "second") == split
    write(client, json.dumps(policy(candidate)))
    generation(scheduler, 1)
    assert set(scale("third").values()) == {"b"}
    assert "rollout" not in page(scheduler, "/policy")


def test_a_standby_follows_and_says_nothing(cluster, run):
    client = cluster.admin
    client.create_all(nodes(3))
    elected = {"leaderElection": policy(elect=True)["leaderElection"]}
    write(client, zoned("zone-a", **elected))
    leader = run(SOURCE, name="leader")
    eventually(leader.leads)
    standby = run(SOURCE, name="standby", wait=False)
    standby.process.await_ready(lambda: standby.answers("/readyz?exclude=leaderElection"))
    write(client, zoned("zone-b", **elected))
    assert generation(leader, 1)["hash"] == generation(standby, 1)["hash"]
    write(client, SYNTAX)
    eventually(lambda: "rejected" in in_force(leader) and "rejected" in in_force(standby))
    eventually(lambda: len(events(client)) == 2)
    time.sleep(1.5)
    assert sorted(reason for reason, _ in events(client)) == ["PolicyRejected", "PolicyReloaded"]
    write(client, zoned("zone-b", leaderElection={**elected["leaderElection"], "leaseDuration": "20s"}))
    eventually(lambda: "leaderElection.leaseDuration" in in_force(standby)["rejected"]["reason"])


def sized(name, at):
    """A pod of one of 35 sizes and of 4 groups."""
    requests = {"cpu": f"{100 + 50 * (at % 7)}m", "memory": f"{64 * (1 + at % 5)}Mi"}
    return pod(name, labels={"app": f"app-{at % 4}"}, requests=requests)


def test_the_shadow_of_kube_scheduler(cluster, run, tmp_path):
    """A thousand pods of many sizes, placed one by one by the real one with its default profile, then some in bursts.

    One by one both schedulers see the same cluster. In a burst the real one decides faster than its bindings are written, and they
    are not written in order: what the shadow has seen by then is not what the decision was made from.
    """
    client, report = cluster.admin, tmp_path / "report.json"
    client.create_all(nodes(100))
    shadow = run(policy({"schedulerName": "default-scheduler"}, elect=True), flags=["--shadow", "--report", str(report)])
    before = {each["metadata"]["name"] for each in client.list("leases", NAMESPACE)}
    start_scheduler(cluster, {"percentageOfNodesToScore": 100})

    def compared(count):
        return eventually(lambda: (seen := page(shadow, "/shadow")) and sum(seen["outcomes"].values()) >= count and seen)

    for at in range(1000):
        client.create(sized(f"one-{at:04}", at))
        eventually(lambda at=at: client.get("pods", f"one-{at:04}")["spec"].get("nodeName"), every=0.002)
    found = compared(1000)
    print(f"one by one: agreement {found['agreement']:.4f} of {found['outcomes']}")
    assert sum(found["outcomes"].values()) == 1000
    assert found["agreement"] >= 0.99
    client.create_all([sized(f"burst-{at:04}", at) for at in range(500)])
    both = compared(1500)
    assert all(each["explanation"] for each in both["disagreements"])
    bursts = 1 - (len(both["disagreements"]) - len(found["disagreements"])) / 500
    print(f"in a burst of 500: agreement {bursts:.4f}, of all {both['outcomes']}")
    assert "rejected" not in both["outcomes"]
    counted = {labels["outcome"]: int(value) for labels, value in shadow.samples("stowplan_shadow_decisions_total") if value}
    assert counted == both["outcomes"]
    assert {labels["method"] for labels, _ in shadow.samples("rest_client_requests_total")} == {"GET"}
    assert {each["metadata"]["name"] for each in client.list("leases", NAMESPACE)} == before
    assert shadow.stop() == 0
    assert json.loads(report.read_text()) == both
