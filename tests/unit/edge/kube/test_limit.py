import asyncio

import pytest

from stowplan.edge.kube.kinds import RESOURCES, needed
from stowplan.edge.kube.limit import Bucket, limit_of
from stowplan.policy.compile import load
from unit.edge.kube.rig import run


def configured(**connection):
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return load({**kind, "clientConnection": connection}).configuration


def test_a_bucket_lets_a_burst_through_and_then_the_rate():
    times = []

    async def one(bucket):
        await bucket.pass_()
        times.append(asyncio.get_running_loop().time())

    async def test():
        bucket = Bucket(10, 5)
        await asyncio.gather(*(one(bucket) for _ in range(25)))
        await asyncio.sleep(100)
        await asyncio.gather(*(one(bucket) for _ in range(6)))

    run(test)
    assert times[:5] == [0] * 5
    assert times[24] == pytest.approx(2.0)
    later = [time - times[25] for time in times[25:]]
    assert later == pytest.approx([0] * 5 + [0.1])


@pytest.mark.parametrize("connection", [{}, {"burst": 5}, {"qps": -1}])
def test_nobody_is_slowed_down_who_does_not_ask_for_it(connection):
    assert limit_of(configured(**connection)) is None


def test_a_rate_that_was_written_counts():
    bucket = limit_of(configured(qps=7, burst=3))
    assert (bucket._rate, bucket._burst) == (7, 3)


def test_only_what_some_plugin_needs_is_watched():
    everything = {resource.kind for resource in needed([load(None)])}
    assert everything == {resource.kind for resource in RESOURCES}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "s",
                "plugins": {
                    "multiPoint": {
                        "disabled": [{"name": "*"}],
                        "enabled": [{"name": "NodeName"}, {"name": "PrioritySort"}, {"name": "DefaultBinder"}],
                    }
                },
            }
        ],
    }
    assert {resource.kind for resource in needed([load(document)])} == {"Node", "Namespace", "Pod"}
