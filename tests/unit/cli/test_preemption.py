"""How evictions are shown."""

from __future__ import annotations

import json

import pytest


def budget(name, allowed):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "web"},
        "spec": {"selector": {"matchLabels": {"app": "d"}}},
        "status": {"disruptionsAllowed": allowed},
    }


@pytest.fixture
def full(dump, make):
    """Two full nodes, and a pod that is more important than all."""

    def write(*more):
        running = [make.pod("low", "1", on="n1", priority=0), make.pod("mid", "1", on="n1", priority=5)]
        return dump(
            make.node("n1", "2"), make.node("n2", "2"), *running, make.pod("top", "2", on="n2", priority=900), *more,
            make.pod("urgent", "1", priority=100),
        )  # fmt: skip

    return write


def test_a_report_says_what_would_happen(stowplan, full):
    answer = stowplan("simulate", "--cluster", full())
    assert answer.code == 1
    assert answer.out.startswith("0 of 1 pending pods placed on 2 nodes; 1 does not fit\n")
    assert "  preemption would evict web/low from n1\n" in answer.out
    assert "EVICTED" not in answer.out
    assert stowplan("simulate", "--cluster", full(), "--preemption", "report") == answer


def test_applied_preemption_lists_who_went_for_whom(stowplan, full):
    answer = stowplan("simulate", "--cluster", full(), "--preemption", "apply")
    assert answer.code == 0
    assert answer.out.startswith("1 of 1 pending pods placed on 2 nodes; 1 pod evicted\n")
    table = answer.words.partition("EVICTED (deleted at once, not scheduled again)\n")[2]
    assert table.splitlines()[:3] == ["POD PRIORITY NODE FOR PRIORITY", "web/low 0 n1 web/urgent 100", ""]
    assert "would evict" not in answer.out


def test_broken_budgets_are_named_in_every_view(stowplan, full):
    cluster = full(budget("strict", 0))
    applied = stowplan("simulate", "--cluster", cluster, "--preemption", "apply")
    assert "POD PRIORITY NODE FOR PRIORITY BREAKS BUDGET\nweb/low 0 n1 web/urgent 100 web/strict" in applied.words
    against = "preemption would evict web/low from n1: web/low against PodDisruptionBudget web/strict (0 allowed)"
    assert against in stowplan("simulate", "--cluster", cluster).out
    assert against in stowplan("explain", "--cluster", cluster, "urgent").out
    roomy = full(budget("loose", 2))
    assert "preemption would evict web/low from n1\n" in stowplan("explain", "--cluster", roomy, "urgent").out


def test_documents_of_both_modes(stowplan, full):
    report = json.loads(stowplan("simulate", "--cluster", full(), "-o", "json").out)
    assert report["preemption"] == {"mode": "report"}
    assert report["sequence"][0]["preemption"]["victims"] == ["web/low"]
    applied = json.loads(stowplan("simulate", "--cluster", full(), "-o", "json", "--preemption", "apply").out)
    assert applied["preemption"]["evictions"] == [{"pod": "web/low", "node": "n1", "preemptor": "web/urgent"}]
    assert applied["sequence"][0]["preemption"] == report["sequence"][0]["preemption"]
    assert applied["sequence"][0]["node"] == "n1"


def test_many_evictions_are_cut_short_and_wide_shows_all(stowplan, dump, make):
    victims = [make.pod(f"v{i:02}", "1", on=f"n{i:02}", priority=0) for i in range(25)]
    pods = [make.pod(f"p{i:02}", "1", priority=9) for i in range(25)]
    cluster = dump(*(make.node(f"n{i:02}", "1") for i in range(25)), *victims, *pods)
    short = stowplan("simulate", "--cluster", cluster, "--preemption", "apply")
    assert "25 pods evicted" in short.out
    assert "web/v19" in short.out
    assert "web/v20" not in short.out
    assert "... and 5 more (-o wide)" in short.out
    assert "web/v24" in stowplan("simulate", "--cluster", cluster, "--preemption", "apply", "-o", "wide").out


def test_help_says_what_becomes_of_victims(stowplan):
    text = " ".join(stowplan("simulate", "--help").out.split())
    assert "evicted pods count as deleted at once and are not scheduled again" in text
    assert "[default: report]" in text
    assert stowplan("simulate", "--cluster", "x", "--preemption", "maybe").code == 2
