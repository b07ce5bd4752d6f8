from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from stowplan.edge.metrics import Metrics
from stowplan.edge.reporter import SAME_SECONDS, Reporter
from stowplan.loop.events import Synced


@pytest.fixture
def scene(caplog):
    """A reporter, its metrics, the time that it sees, and what it calls once all is listed."""
    caplog.set_level(logging.DEBUG, "stowplan")
    found = SimpleNamespace(now=1000.0, synced=0, metrics=Metrics())

    def settle():
        found.synced += 1

    journal = SimpleNamespace(handled=lambda *_: None)
    found.reporter = Reporter(found.metrics, journal, lambda: found.now, settle)
    found.warnings = lambda: [r.stowplan_values for r in caplog.records if r.levelno == logging.WARNING]
    return found


def test_what_ails_all_watches_is_told_once(scene):
    for kind in ("Node", "Pod", "Service"):
        scene.reporter.failed(kind, "connection refused")
    assert [told["where"] for told in scene.warnings()] == ["Node"]
    scene.now += SAME_SECONDS
    scene.reporter.failed("Pod", "connection refused")
    assert scene.warnings()[1:] == [{"where": "Pod", "message": "connection refused", "left_out": 2}]


def test_different_messages_are_told_up_to_a_rate(scene):
    for number in range(200):
        scene.reporter.failed(f"Pod web/p{number}", f"gone wrong {number}")
    assert 50 <= len(scene.warnings()) < 60


def test_all_failures_are_counted_without_names(scene):
    for number in range(200):
        scene.reporter.failed(f"Pod web/p{number}", "gone wrong")
    assert scene.metrics.registry.get_sample_value("stowplan_failures_total", {"where": "Pod"}) == 200


def test_the_lease(scene):
    scene.reporter.lease(True)
    assert (scene.reporter.leads, scene.reporter.renewed_at) == (True, 1000.0)
    scene.now += 5
    scene.reporter.renewed(False, 0.1)
    assert scene.reporter.renewed_at == 1000.0
    scene.reporter.renewed(True, 0.1)
    assert scene.reporter.renewed_at == 1005.0
    scene.reporter.lease(False)
    assert not scene.reporter.leads


def test_who_waits_for_the_lease_says_so_once(scene, caplog):
    for _ in range(3):
        scene.reporter.renewed(False, 0.1)
    assert [r.getMessage() for r in caplog.records if r.levelno == logging.INFO] == ["waiting for the lease"]


def test_the_first_lists(scene):
    scene.reporter.handled(Synced(), (), 1000.0, 0.0)
    assert scene.synced == 1
