"""One real control plane for a whole run, emptied before every test, and stowplan on it."""

from pathlib import Path

import pytest

from controlplane.build import Unavailable
from controlplane.cleaning import clean
from controlplane.kubelet import Kubelet
from controlplane.plane import ControlPlane
from e2e.running import Stowplan, deploy


def pytest_collection_modifyitems(items):
    """With `--dist loadgroup` one worker runs all of these: a control plane takes memory, and a core of its own."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.xdist_group("controlplane"))


@pytest.fixture(scope="session")
def plane(tmp_path_factory):
    """etcd and kube-apiserver, built on first use; tests are skipped where they cannot be built."""
    try:
        plane = ControlPlane(tmp_path_factory.mktemp("controlplane")).start()
    except Unavailable as reason:
        pytest.skip(str(reason))
    yield plane
    plane.stop()


@pytest.fixture
def cluster(plane):
    """The control plane with an empty cluster. What the test starts through it ends with the test."""
    if not plane.apiserver.running():
        plane.start_apiserver()
    clean(plane.admin)
    yield plane
    plane.stop_others()


@pytest.fixture
def run(cluster):
    """Starts `stowplan run` with what `kubectl apply -k deploy/` grants; ready when it returns, unless `wait` is false.

    When the test ends, none of those started may have been denied anything, and those that still run end with status 0.
    """
    kubeconfig, started = deploy(cluster), []

    def start(told=None, name: str = "stowplan", wait: bool = True, **rest) -> Stowplan:
        started.append(Stowplan(cluster, kubeconfig, told, name, **rest))
        if wait:
            started[-1].await_ready()
        return started[-1]

    yield start
    for each in started:
        each.check()
        if each.process.running():
            assert each.stop() == 0, each.process.tail()
            each.check()


@pytest.fixture
def kubelet(cluster):
    """Bound pods run, deleted ones go away."""
    with Kubelet(cluster.admin) as kubelet:
        yield kubelet
