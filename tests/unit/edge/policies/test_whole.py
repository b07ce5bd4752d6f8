"""A whole scheduler process in this one, whose policy changes under it."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
from contextlib import asynccontextmanager

import aiohttp
import pytest

from stowplan.edge.kube.transport import Answer
from stowplan.edge.live import Options, Reach, run
from stowplan.edge.load import load_policy
from stowplan.edge.policies.configmap import Reference
from stowplan.edge.policies.following import Following
from unit.edge.fakeapi import FakeApi
from unit.edge.policies.configmaps import ConfigMaps
from unit.edge.policies.offering import BAD, HEAD, LABELLED, NEVER, document
from unit.edge.test_live import free_port, objects, until

PLACE = Reference("s", "policy")
ALONE = "leaderElection: {leaderElect: false}\n"
CLUSTER = "node n1 cpu=4\nnode n2 cpu=4 label.disk=ssd\npod a cpu=1"


def text(*rules):
    return document(*rules, more=ALONE)


class Api(FakeApi):
    """Pods and nodes, ConfigMaps and Events; `show` tells a watch of a pod."""

    def __init__(self, listed):
        super().__init__(listed)
        self.maps, self.pods, self.writes = ConfigMaps(), asyncio.Queue(), []

    async def request(self, request):
        if request.method != "GET":
            self.writes.append((request.method, request.path))
        return await (self.maps if self.maps.takes(request.path) else super()).request(request)

    @asynccontextmanager
    async def stream(self, path, query, *, silence):
        if self.maps.takes(path):
            async with self.maps.stream(path, query, silence=silence) as found:
                yield found
        elif path == "/api/v1/pods":

            async def lines():
                while True:
                    yield await self.pods.get()

            yield Answer(200), lines()
        else:
            async with super().stream(path, query, silence=silence) as found:
                yield found

    def show(self, item):
        self.pods.put_nowait(json.dumps({"type": "MODIFIED", "object": item}).encode())


@pytest.fixture(autouse=True)
def _thawed():
    yield
    gc.unfreeze()


@pytest.fixture
def scheduler():
    """Runs a scheduler while a visitor looks at it; gives the exit code, what the visitor returned, and the API server."""

    def call(visit, cluster=CLUSTER, *, policy=None, prepare=None, **options):
        seen, servers = [], []
        port = free_port()

        @asynccontextmanager
        async def connect(policy, options):  # noqa: ARG001 - as the process calls it
            server = Api(objects(cluster))
            if prepare is not None:
                prepare(server)
            servers.append(server)

            async def visiting():
                async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
                    try:
                        seen.append(await visit(session, server))
                    finally:
                        os.kill(os.getpid(), signal.SIGTERM)

            task = asyncio.create_task(visiting())
            try:
                yield Reach(server)
            finally:
                await task

        code = run(policy, Options(address="127.0.0.1", port=port, **options), connect)
        return code, seen[0], servers[0]

    return call


async def page(session, path):
    return json.loads(await until(session, path, 200))


async def shown(session, path, wanted):
    """A page of JSON, once it is as wanted."""
    async with asyncio.timeout(20):
        while not wanted(found := await page(session, path)):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)
    return found


async def policy_once(session, wanted):
    """What /configz says of the policy, once it is as wanted."""
    return (await shown(session, "/configz", lambda found: wanted(found["policy"])))["policy"]


async def generation(session, number):
    return await policy_once(session, lambda policy: policy["generation"] == number)


def policies(server):
    """Reasons of the Events about policies."""
    return [reason for reason, _, _ in server.maps.told() if reason.startswith("Policy")]


async def until_true(wanted):
    """Wait for the API server to have been told something."""
    async with asyncio.timeout(20):
        while not wanted():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)


def test_an_edit_of_the_file_places_a_pending_pod(scheduler, tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(text(NEVER))

    async def visit(session, server):
        await shown(session, "/decisions", lambda found: found["items"])
        waits = await page(session, "/queue")
        path.write_text(text(LABELLED.format("disk")))
        await asyncio.wait_for(server.binding.wait(), 20)
        await generation(session, 1)
        path.write_text(BAD["unknown plugin"])
        config = await policy_once(session, lambda policy: "rejected" in policy)
        assert (await page(session, "/policy"))["rejected"] == config["rejected"]
        told = await page(session, "/decisions/default/a"), await until(session, "/readyz?verbose", 200)
        return waits, config, *told, await until(session, "/metrics", 200)

    options = {"source": str(path), "following": Following(str(path))}
    code, (waits, config, records, ready, metrics), server = scheduler(visit, policy=load_policy(path), **options)
    assert (code, server.bound) == (0, {"a": "n2"})
    (waiting,) = waits["items"]
    assert (waiting["state"], waiting["plugins"]) == ("unschedulable", ["r0"])
    assert config["generation"] == 1
    assert config["rejected"]["reason"].startswith(f"{path}:6:")
    assert [(each["result"], each["policy"]["generation"]) for each in records["items"]] == [("unschedulable", 0), ("scheduled", 1)]
    assert records["items"][1]["policy"]["hash"] == config["hash"]
    assert f"[+]policy ok: generation 1, hash {config['hash']}, from {path}; rejected: {path}:6:" in ready
    assert "stowplan_policy_generation 1.0" in metrics
    assert 'stowplan_policy_reloads_total{result="accepted"} 1.0' in metrics
    assert 'stowplan_policy_reloads_total{result="rejected"} 1.0' in metrics
    assert "stowplan_policy_rejected 1.0" in metrics


def test_waits_for_a_configmap_that_is_missing_or_bad(scheduler):
    async def visit(session, server):
        missing = await until(session, "/readyz", 500)
        live = await until(session, "/livez", 200)
        server.maps.put("policy", {"policy.yaml": BAD["syntax"]})
        config = await policy_once(session, lambda policy: "rejected" in policy)
        bad, told = await until(session, "/readyz", 500), await page(session, "/policy")
        server.maps.put("policy", {"policy.yaml": text()})
        await asyncio.wait_for(server.binding.wait(), 20)
        return missing, live, bad, config, told, await until(session, "/readyz", 200)

    code, (missing, live, bad, config, told, ready), server = scheduler(visit, following=Following(configmap=PLACE))
    assert (code, live, ready) == (0, "ok", "ok")
    assert "[-]policy failed: no policy yet; configmap s/policy is not there" in missing
    assert "[-]policy failed: no policy yet; rejected: configmap s/policy[policy.yaml]:3:12: error" in bad
    assert config["rejected"]["source"] == "configmap s/policy[policy.yaml]"
    assert told == {"apiVersion": "stowplan.io/v1alpha1", "kind": "PolicyStatus"} | config
    assert set(server.bound) == {"a"}


def test_a_signal_ends_the_wait(scheduler):
    async def visit(session, server):  # noqa: ARG001 - as all visitors
        return await until(session, "/readyz", 500)

    code, _, server = scheduler(visit, following=Following(configmap=PLACE))
    assert (code, server.writes) == (0, [])


def test_the_configmap_is_told_what_became_of_its_text(scheduler):
    async def visit(session, server):
        await generation(session, 0)
        server.maps.put("policy", {"policy.yaml": text(NEVER)})
        await generation(session, 1)
        server.maps.put("policy", {"policy.yaml": BAD["type error"]})
        await until_true(lambda: len(policies(server)) == 2 and "v2.yaml" in server.maps.objects["policy-history"]["data"])
        server.maps.delete("policy")
        gone = await policy_once(session, lambda policy: "trouble" in policy)
        server.maps.put("policy", {"policy.yaml": text()})
        return gone, await generation(session, 2)

    def prepare(server):
        server.maps.put("policy", {"policy.yaml": text()})

    code, (gone, back), server = scheduler(visit, prepare=prepare, following=Following(configmap=PLACE))
    assert code == 0
    assert policies(server)[:2] == ["PolicyReloaded", "PolicyRejected"]
    assert (gone["generation"], gone["trouble"]) == (1, "configmap s/policy is not there")
    assert "trouble" not in back


def test_a_restart_with_a_bad_configmap_takes_the_last_good_one(scheduler, tmp_path):
    kept = tmp_path / "last-good.yaml"
    following = Following(configmap=PLACE, last_good=str(kept))

    async def first(session, server):
        await asyncio.wait_for(server.binding.wait(), 20)
        return (await generation(session, 0))["hash"]

    async def second(session, server):
        await asyncio.wait_for(server.binding.wait(), 20)
        found = await generation(session, 0)
        server.maps.put("policy", {"policy.yaml": text(NEVER)})
        return found, await generation(session, 1)

    good, bad = text(LABELLED.format("disk")), BAD["syntax"]
    _, digest, server = scheduler(first, prepare=lambda api: api.maps.put("policy", {"p": good}), following=following)
    assert server.bound == {"a": "n2"}
    assert kept.read_text() == good
    code, (found, later), server = scheduler(second, prepare=lambda api: api.maps.put("policy", {"p": bad}), following=following)
    assert (code, server.bound) == (0, {"a": "n2"})
    assert (found["hash"], found["source"]) == (digest, str(kept))
    assert found["rejected"]["reason"].startswith("configmap s/policy[p]:3:12: error")
    assert "rejected" not in later
    assert kept.read_text() == text(NEVER)


def test_a_shadow_compares_and_writes_nothing(scheduler, tmp_path):
    report = tmp_path / "report.json"
    cluster = "node n1 cpu=4\nnode n2 cpu=64\npod a cpu=1\npod b cpu=1\npod c cpu=60"
    election = f"{HEAD}leaderElection: {{resourceName: x}}\nprofiles:\n- schedulerName: default-scheduler\n"
    path = tmp_path / "policy.yaml"
    path.write_text(election)

    async def visit(session, server):
        await until(session, "/readyz", 200)
        for item, node in zip(objects(cluster)["/api/v1/pods"], ("n2", "n1", "n1"), strict=True):
            item["spec"]["nodeName"] = node
            item["metadata"]["resourceVersion"] = "2"
            server.show(item)
        path.write_text(election + "  rules: []\n")
        found = await shown(session, "/shadow", lambda found: sum(found["outcomes"].values()) == 3)
        await generation(session, 1)
        return found, await until(session, "/metrics", 200), await page(session, "/queue")

    options = {"policy": load_policy(path), "source": str(path), "following": Following(str(path))}
    code, (found, metrics, queue), server = scheduler(visit, cluster, **options, shadow=True, report=str(report))
    assert code == 0
    assert server.writes == []
    assert found["outcomes"] == {"same": 1, "lower": 1, "rejected": 1}
    assert [each["pod"] for each in found["disagreements"]] == ["default/b", "default/c"]
    assert "Insufficient cpu" in found["disagreements"][1]["explanation"]
    assert 'stowplan_shadow_decisions_total{outcome="same"} 1.0' in metrics
    assert (queue["shadow"], queue["items"]) == (True, [])
    assert json.loads(report.read_text()) == found


def test_decisions_are_written_down(scheduler, tmp_path):
    path = tmp_path / "decisions.jsonl"

    async def visit(session, server):  # noqa: ARG001 - as all visitors
        await asyncio.wait_for(server.binding.wait(), 20)

    policy = load_policy(
        {"apiVersion": "stowplan.io/v1alpha1", "kind": "SchedulerPolicy", "leaderElection": {"leaderElect": False}}
    )
    scheduler(visit, policy=policy, decisions=str(path))
    (record,) = [json.loads(line) for line in path.read_text().splitlines()]
    assert (record["pod"], record["node"] in ("n1", "n2"), record["detailed"]) == ("default/a", True, True)


def test_the_policy_of_a_start_is_tried_and_names_that_go_are_told(scheduler):
    """Through the same channels as what is found of an edit."""

    async def visit(session, server):
        found = await shown(session, "/policy", lambda found: found.get("warnings"))
        await until_true(lambda: "PolicyWarning" in policies(server))
        server.maps.put("policy", {"policy.yaml": document(more=ALONE, name="other")})
        await generation(session, 1)
        await until_true(lambda: any(reason == "SchedulerNameRemoved" for reason, _, _ in server.maps.told()))
        told = await until(session, "/metrics", 200), await until(session, "/readyz?verbose", 200)
        return found, await page(session, "/policy"), *told

    def prepare(server):
        server.maps.put("policy", {"policy.yaml": text(NEVER)})

    code, (first, second, metrics, ready), _ = scheduler(visit, following=Following(configmap=PLACE), prepare=prepare)
    assert code == 0
    (warning,) = first["warnings"]
    assert "rule r0: the filter lets no node pass (2 nodes of the live cluster, for default/a)" in warning
    assert second["unserved"] == {"default-scheduler": 1}
    assert 'stowplan_policy_unserved_pods{scheduler_name="default-scheduler"} 1.0' in metrics
    assert '1 pod waits for schedulerName "default-scheduler", which the policy has no more' in ready
