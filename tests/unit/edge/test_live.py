"""A whole scheduler process in this one, on an API server that is not there."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from stowplan.edge.live import Options, Reach, run
from stowplan.edge.load import load_policy
from stowplan.edge.notation import read_notation
from unit.edge.fakeapi import FakeApi

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
LEADER = {"leaderElect": True, "resourceName": "stowplan", "resourceNamespace": "x"}


def objects(text):
    found = {}
    for item in read_notation(text):
        name = item["metadata"]["name"]
        item["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": "1"}
        item.setdefault("spec", {}).setdefault("priority", 0)
        found.setdefault(f"/api/v1/{item['kind'].lower()}s", []).append(item)
    return found


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture(autouse=True)
def _thawed():
    """What a scheduler freezes is this process' own."""
    yield
    gc.unfreeze()


@pytest.fixture
def scheduler():
    """Runs a scheduler while a visitor looks at it; gives the exit code, what the visitor returned, and the API server."""

    def call(visit, text="", *, election=None, lease=True, port=None, **options):
        policy = load_policy(HEAD | {"leaderElection": election or {"leaderElect": False}})
        seen, servers = [], []
        port = free_port() if port is None else port

        @asynccontextmanager
        async def connect(policy, options):  # noqa: ARG001 - as the process calls it
            server = FakeApi(objects(text), lease)
            servers.append(server)

            async def visiting():
                async with aiohttp.ClientSession(f"http://127.0.0.1:{options.port}") as session:
                    seen.append(await visit(session, server))
                os.kill(os.getpid(), signal.SIGTERM)

            task = asyncio.create_task(visiting())
            try:
                yield Reach(server)
            finally:
                if not task.done():
                    task.cancel()
                else:
                    task.result()

        code = run(policy, Options(address="127.0.0.1", port=port, **options), connect)
        return code, seen[0] if seen else None, servers[0]

    return call


async def until(session, path, wanted):
    """The text of a page, once its status is the wanted one."""
    async with asyncio.timeout(20):
        while True:
            try:
                async with session.get(path) as answer:
                    if answer.status == wanted:
                        return await answer.text()
            except aiohttp.ClientConnectorError:
                pass
            await asyncio.sleep(0.01)


def test_schedules_serves_and_stops(scheduler, caplog):
    caplog.set_level(logging.DEBUG, "stowplan")

    async def visit(session, server):
        await asyncio.wait_for(server.binding.wait(), 20)
        ready = await until(session, "/readyz?verbose", 200)
        return (
            ready,
            await until(session, "/livez", 200),
            await until(session, "/configz", 200),
            await until(session, "/metrics", 200),
        )

    code, (ready, live, config, metrics), server = scheduler(visit, "node n1 cpu=4\npod a cpu=1", source="scheduler.yaml")
    assert code == 0
    assert server.bound == {"a": "n1"}
    assert ready == "[+]shutdown ok\n[+]sched-handler-sync ok\n[+]caches ok\nreadyz check passed\n"
    assert live == "ok"
    assert json.loads(config)["policy"]["source"] == "scheduler.yaml"
    assert "scheduler_cache_size" in metrics
    assert 'rest_client_requests_total{code="200",method="GET"}' in metrics
    messages = [record.getMessage() for record in caplog.records]
    assert [text for text in messages if text in ("starting", "stopping", "stopped")] == ["starting", "stopping", "stopped"]


def test_serves_before_the_cluster_is_known(scheduler):
    async def visit(session, server):
        server.reachable = False
        live = await until(session, "/livez", 200)
        ready = await until(session, "/readyz", 500)
        server.reachable = True
        return live, ready, await until(session, "/readyz", 200)

    code, (live, ready, later), _ = scheduler(visit)
    assert (code, live, later) == (0, "ok", "ok")
    assert "[-]sched-handler-sync failed: handlers are not fully synchronized\n" in ready


def test_leads_before_it_schedules(scheduler):
    async def visit(session, server):
        await asyncio.wait_for(server.binding.wait(), 20)
        return await until(session, "/metrics", 200), await until(session, "/readyz?verbose", 200)

    code, (metrics, ready), server = scheduler(visit, "node n1 cpu=4\npod a cpu=1", election=LEADER)
    assert code == 0
    assert 'leader_election_master_status{name="stowplan"} 1.0' in metrics
    assert ready.startswith("[+]leaderElection ok\n")
    lease = next(place for place, (method, path) in enumerate(server.calls) if method == "POST" and path.endswith("/leases"))
    bind = next(place for place, (_, path) in enumerate(server.calls) if path.endswith("/binding"))
    assert lease < bind


def test_a_standby_is_ready_and_binds_nothing(scheduler):
    async def visit(session, server):
        ready = await until(session, "/readyz", 200)
        await asyncio.sleep(0.3)
        return ready, dict(server.bound)

    code, (ready, bound), _ = scheduler(visit, "node n1 cpu=4\npod a cpu=1", election=LEADER, lease=False)
    assert (code, ready, bound) == (0, "ok", {})


def test_a_lost_lease_is_told_in_one_line(scheduler, caplog):
    caplog.set_level(logging.ERROR, "stowplan")
    hasty = {"leaseDuration": "2s", "renewDeadline": "1s", "retryPeriod": "100ms"}

    async def visit(session, server):
        await until(session, "/readyz", 200)
        await asyncio.wait_for(server.leased.wait(), 20)
        server.lease = False
        await asyncio.sleep(20)

    code, seen, _ = scheduler(visit, election=LEADER | hasty)
    assert (code, seen) == (1, None)
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.getMessage().startswith("stopped: ")
    assert record.stowplan_values["lease"] == "x/stowplan"


def test_a_taken_port_is_told_in_one_line(scheduler, caplog):
    caplog.set_level(logging.ERROR, "stowplan")

    async def visit(session, server):  # noqa: ARG001 - as all visitors
        await asyncio.sleep(20)

    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, _, _ = scheduler(visit, port=taken.getsockname()[1])
    assert code == 1
    assert "cannot serve health and metrics" in caplog.records[-1].getMessage()


def test_without_a_port_nothing_is_served(scheduler):
    async def visit(session, server):  # noqa: ARG001 - as all visitors
        await asyncio.wait_for(server.binding.wait(), 20)

    code, _, server = scheduler(visit, "node n1 cpu=4\npod a cpu=1", port=0)
    assert (code, server.bound) == (0, {"a": "n1"})


def test_what_has_been_listed_is_frozen(scheduler):
    async def visit(session, server):  # noqa: ARG001 - as all visitors
        await until(session, "/readyz", 200)
        await asyncio.sleep(0.2)
        return gc.get_freeze_count()

    gc.unfreeze()
    _, frozen, _ = scheduler(visit)
    assert frozen > 10_000


STUCK = """
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from stowplan.edge.live import Options, Reach, run
from stowplan.edge.load import load_policy
from stowplan.edge.logs import set_up
from unit.edge.fakeapi import Stuck
from unit.edge.test_live import HEAD, objects

@asynccontextmanager
async def connect(policy, options):
    yield Reach(Stuck(objects("node n1 cpu=4\\npod a cpu=1")))

set_up("json", 2)
sys.exit(run(load_policy(HEAD | {"leaderElection": {"leaderElect": False}}), Options(), connect))
"""


@pytest.fixture
def stuck():
    """A scheduler in a process of its own, in the middle of a binding that is never answered."""
    tests = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", STUCK],
        env=os.environ | {"PYTHONPATH": str(tests)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "binding\n"
        yield process
        process.kill()


def messages(process):
    return [json.loads(line)["msg"] for line in process.stderr]


@pytest.mark.parametrize("signals", [(signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM)])
def test_a_second_signal_does_not_wait(stuck, signals):
    first, second = signals
    stuck.send_signal(first)
    while json.loads(stuck.stderr.readline())["msg"] != "stopping":
        pass
    begun = time.monotonic()
    stuck.send_signal(second)
    assert stuck.wait(20) == 1
    assert time.monotonic() - begun < 5
    assert "stopped at once by a second signal" in messages(stuck)
