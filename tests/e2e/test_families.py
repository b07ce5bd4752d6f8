"""Every family of plugins once, under stowplan and under kube-scheduler: the same nodes, conditions and Events, to the letter."""

from pathlib import Path

import pytest
import yaml

from controlplane.cleaning import clean
from controlplane.components import start_scheduler
from controlplane.volumes import VolumeControllers
from controlplane.waiting import eventually
from e2e.running import Stowplan, deploy, policy
from e2e.scenes import play, set_up, tidy, told

pytestmark = pytest.mark.slow
SCENES = yaml.safe_load((Path(__file__).parent / "families.yaml").read_text())


@pytest.fixture(scope="module")
def schedulers(plane):
    """Both of them, on one cluster; the client of its administrator."""
    clean(plane.admin)
    ours = Stowplan(plane, deploy(plane), policy(), "families")
    ours.await_ready()
    theirs = start_scheduler(plane)
    with VolumeControllers(plane.admin):
        yield plane.admin
    ours.check()
    theirs.stop()
    assert ours.stop() == 0
    plane.stop_others()


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene["name"])
def test_family(schedulers, scene):
    found = {}
    for name in ("stowplan", "default-scheduler"):
        tidy(schedulers)
        set_up(schedulers, scene)
        outcomes = play(schedulers, scene, name)
        events = eventually(lambda name=name: len(seen := told(schedulers, name)) >= expected_events(scene) and seen)
        found[name] = (outcomes, events)
    ours, theirs = found["stowplan"], found["default-scheduler"]
    for pod, expected in scene["expect"].items():
        if isinstance(expected, list):
            assert ours[0][pod] in {f"on {node}" for node in expected}
        else:
            assert ours[0][pod].startswith(expected), ours[0][pod]
    assert ours == theirs


def expected_events(scene) -> int:
    """One for each pod that is tried."""
    return sum("schedulingGates" not in told for told in scene["pods"].values())
