from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from stowplan.edge.serve import Check, Health
from stowplan.edge.serve.checks import Limits, healths

READY = Health("/readyz", (Check("ping", lambda: ""), Check("sync", lambda: "lists are missing"), Check("last", lambda: "")))
FINE = Health("/livez", (Check("ping", lambda: ""), Check("policy", lambda: "", lambda: "an edit was refused")))


def test_success_is_one_word():
    assert FINE.all() == (200, "ok")


def test_verbose_success_lists_the_checks():
    assert FINE.all(verbose=True) == (200, "[+]ping ok\n[+]policy ok\nlivez check passed\n")


def test_failure_lists_the_checks_and_keeps_the_reason():
    assert READY.all() == (500, "[+]ping ok\n[-]sync failed: reason withheld\n[+]last ok\nreadyz check failed\n")


def test_reasons_and_notes_for_those_on_the_spot():
    assert "[-]sync failed: lists are missing\n" in READY.all(frank=True)[1]
    assert "[+]policy ok: an edit was refused\n" in FINE.all(verbose=True, frank=True)[1]


def test_excluded_checks_do_not_count():
    status, text = READY.all(["sync"], verbose=True)
    assert (status, text) == (200, "[+]ping ok\n[+]sync excluded: ok\n[+]last ok\nreadyz check passed\n")


def test_unknown_exclusions_are_told():
    text = FINE.all(["nonsense", "ping"], verbose=True)[1]
    assert 'warn: some health checks cannot be excluded: no matches for "nonsense"\n' in text


def test_single_checks():
    assert READY.one("ping") == (200, "ok")
    assert READY.one("sync") == (500, "internal server error: reason withheld\n")
    assert READY.one("sync", frank=True) == (500, "internal server error: lists are missing\n")
    assert READY.one("nonsense") is None


@dataclass
class Condition:
    synced: bool = True
    leading: bool = False
    stopping: bool = False
    ages: dict[str, float] = field(default_factory=dict)
    since_renewal: float = 0.0

    def staleness(self):
        return self.ages

    def unrenewed(self):
        return self.since_renewal


LEASED = Limits(120.0, ("lease", 15.0))


def statuses(limits=LEASED, **condition):
    return {health.path: health.all()[0] for health in healths(Condition(**condition), limits)}


def test_a_standby_with_its_lists_is_ready():
    assert set(statuses(since_renewal=1e9).values()) == {200}


@pytest.mark.parametrize(
    ("condition", "red"),
    [
        ({"synced": False}, {"/readyz"}),
        ({"stopping": True}, {"/readyz"}),
        ({"ages": {"Pod": 121.0}}, {"/readyz", "/healthz"}),
        ({"ages": {"Pod": 119.0}}, set()),
        ({"leading": True, "since_renewal": 35.1}, {"/readyz", "/healthz"}),
        ({"leading": True, "since_renewal": 34.9}, set()),
    ],
)
def test_what_turns_red(condition, red):
    assert {path for path, status in statuses(**condition).items() if status == 500} == red


def test_without_a_lease_nobody_asks_for_renewals():
    assert set(statuses(Limits(120.0, None), leading=True, since_renewal=1e9).values()) == {200}


def test_a_stale_cache_is_named():
    health = healths(Condition(ages={"Pod": 200.0, "Node": 300.0, "Service": 1.0}), Limits(120.0, None))[1]
    assert health.one("caches", frank=True) == (500, "internal server error: nothing heard for 120 s about Node, Pod\n")
