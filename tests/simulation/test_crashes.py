"""A process may die between any two requests, before one is sent or after it took effect: the next one carries on."""

import pytest

from controlplane.objects import claim, node, pod, storage_class
from controlplane.volumes import PROVISIONER
from simulation.actors import PODS
from simulation.faults import Fault
from simulation.generate import local_volume
from simulation.run import Run
from simulation.scenario import Scenario, Step

pytestmark = pytest.mark.slow
MOST = 8
"""requests of a kind before which, or after which, the process dies; of more than that, some are left out"""
CALLS = ("bind", "status", "evict", "volume", "event")


def using(name: str):
    return {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}}]}


def steps():
    """Everything that a scheduler writes, in a small cluster: bindings, conditions, preemption, volumes of two sorts, Events."""
    items = [storage_class("late", PROVISIONER), storage_class("local", "kubernetes.io/no-provisioner")]
    items += [claim("new", "late"), claim("old", "local"), local_volume("disk", "n1")]
    items += [node(f"n{number}", capacity={"cpu": "2"}) for number in range(2)]
    items += [pod(f"low-{number}", requests={"cpu": "800m"}, schedulerName="stow") for number in range(4)]
    yield from (Step(0.0, "create", {"item": item}) for item in items)
    # the pod that can go to one node only is the most important, so that no other takes its place after a crash
    for name, priority, spec in (("with-new", 1000, using("new")), ("with-old", 2000, using("old")), ("urgent", 1000, {})):
        requests = {"cpu": "1", "memory": "64Mi"}
        yield Step(3.0, "create", {"item": pod(name, requests=requests, schedulerName="stow", priority=priority, **spec)})


def finished(*faults):
    run = Run(Scenario(0, tuple(steps()), faults))
    try:
        assert run.until(110.0), run.checks.violation
        assert run.judge("in the end"), run.checks.violation
    finally:
        for replica in run.replicas:
            replica.kill()
    return run


def requests(run, what: str) -> int:
    return run.checks.requests[what]


def test_nothing_is_left_out():
    run = finished()
    assert all(requests(run, what) for what in CALLS)
    placed = {name: found["spec"].get("nodeName", "") for (_, name), found in run.storage.objects[PODS].items()}
    assert placed["with-old"] == "n1"
    assert placed["with-new"]
    assert placed["urgent"]
    assert run.replicas[0].life == 1


@pytest.mark.parametrize("when", ["crash-before", "crash-after"])
@pytest.mark.parametrize("what", CALLS)
def test_a_crash_at_every_request(what, when):
    many = requests(finished(), what)
    for number in range(0, many, 1 + many // MOST):
        run = finished(Fault(when, what, skip=number))
        assert run.replicas[0].life == 2
        placed = {name: found["spec"].get("nodeName", "") for (_, name), found in run.storage.objects[PODS].items()}
        assert all(placed[name] for name in ("with-old", "with-new", "urgent"))
