"""Two replicas, an API server that dies, and a scheduler that ends: no pod is lost and none is bound twice."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from controlplane.objects import nodes, pods
from controlplane.waiting import eventually
from e2e.bindings import Bindings
from e2e.running import LEASE, NAMESPACE, policy

pytestmark = pytest.mark.slow
SHORT = {"leaseDuration": "5s", "renewDeadline": "3s", "retryPeriod": "1s"}


def replicated():
    told = policy(elect=True)
    told["leaderElection"] |= SHORT
    return told


def unbound(client):
    return len(client.list("pods", fieldSelector="spec.nodeName="))


def holder(client):
    return client.get("leases", LEASE["resourceName"], NAMESPACE)["spec"].get("holderIdentity")


def two(run):
    """The leader and the one that waits."""
    first = run(replicated(), "replica-1")
    eventually(first.leads)
    second = run(replicated(), "replica-2", wait=False)
    second.process.await_ready(lambda: second.answers("/readyz?exclude=leaderElection"))
    assert not second.leads()
    return first, second


def test_a_killed_leader_is_followed_within_its_lease(cluster, run):
    client = cluster.admin
    client.create_all(nodes(50))
    with Bindings(client) as bindings, ThreadPoolExecutor(1) as aside:
        leader, other = two(run)
        created = aside.submit(client.create_all, pods(600, schedulerName="stowplan"))
        eventually(lambda: len(bindings.nodes) > 100, every=0.01)  # in the middle of the work
        leader.process.kill()
        killed = time.monotonic()
        created.result()
        left = unbound(client)
        eventually(other.leads, timeout=15)
        took = time.monotonic() - killed
        eventually(lambda: unbound(client) == 0, timeout=60)
        bindings.check(600)
    print(f"{left} of 600 pods were left when the leader was killed; the other one led {took:.1f} s later")
    assert left > 0
    assert took <= 5 + 1 * 2.2 + 1  # the lease, a retry with its jitter, and the time to ask


def test_a_leader_that_is_told_to_stop_releases_its_lease(cluster, run):
    client = cluster.admin
    client.create_all(nodes(20))
    with Bindings(client) as bindings:
        leader, other = two(run)
        client.create_all(pods(200, schedulerName="stowplan"))
        begun = time.monotonic()
        assert leader.stop() == 0
        stopped = time.monotonic() - begun
        eventually(other.leads, timeout=4)
        eventually(lambda: unbound(client) == 0, timeout=30)
        bindings.check(200)
    assert stopped < 10
    assert other.stop() == 0
    assert not holder(client)


def test_an_api_server_that_dies_loses_nothing(cluster, run):
    client = cluster.admin
    client.create_all(nodes(100))
    scheduler = run(policy())
    with Bindings(client) as bindings:
        client.create_all(pods(1000, prefix="first", schedulerName="stowplan"))
        eventually(lambda: unbound(client) < 900)
        cluster.apiserver.kill()
        time.sleep(1)
        cluster.start_apiserver()
        time.sleep(3)
        scheduler.forgive()
        client.create_all(pods(1000, prefix="second", schedulerName="stowplan"))
        eventually(lambda: unbound(client) == 0, timeout=120)
        bindings.check(2000)
