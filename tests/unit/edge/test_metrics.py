from __future__ import annotations

import re
import time
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from stowplan.edge.metrics import Metrics, exponential
from stowplan.edge.serve import Asked
from stowplan.loop.effects import Bind
from stowplan.loop.events import Bound, Cycle, Failure, NotBound
from unit.edge.watched import scene


@pytest.fixture
def metrics():
    return Metrics("stowplan")


def text_of(metrics):
    return metrics.page().answer(Asked({}, {}, "", True)).body.decode()


def value(metrics, name, /, **labels):
    return metrics.registry.get_sample_value(name, labels)


def test_bound_pods(metrics):
    watched = scene(metrics).start("node n1 cpu=4\nnode n2 cpu=4\npod a cpu=1\npod b cpu=1")
    watched.run()
    done = {"result": "scheduled", "profile": "default-scheduler"}
    assert value(metrics, "scheduler_schedule_attempts_total", **done) == 2
    assert value(metrics, "scheduler_scheduling_attempt_duration_seconds_count", **done) == 2
    assert value(metrics, "scheduler_scheduling_algorithm_duration_seconds_sum") == 0.5
    assert value(metrics, "scheduler_pod_scheduling_sli_duration_seconds_count", attempts="1") == 2
    assert value(metrics, "scheduler_pod_scheduling_attempts_bucket", le="1.0") == 2
    assert value(metrics, "scheduler_preemption_attempts_total") == 0


def test_pods_that_wait(metrics):
    watched = scene(metrics).start("node n1 cpu=1\npod a cpu=2\npod b cpu=2")
    watched.run()
    metrics.look_into(watched.loop.ledger)
    assert value(metrics, "scheduler_pending_pods", queue="unschedulable") == 2
    assert {value(metrics, "scheduler_pending_pods", queue=name) for name in ("active", "backoff", "gated")} == {0}
    assert value(metrics, "scheduler_unschedulable_pods", plugin="NodeResourcesFit", profile="default-scheduler") == 2
    assert value(metrics, "scheduler_queue_incoming_pods_total", queue="unschedulable", event="ScheduleAttemptFailure") == 2
    watched.delete("Pod", "default/a")
    assert value(metrics, "scheduler_pending_pods", queue="unschedulable") == 1


def test_what_is_known(metrics):
    watched = scene(metrics, answers=False).start("node n1 cpu=4\npod a cpu=1\npod b cpu=1 on=n1")
    watched.run()
    metrics.look_into(watched.loop.ledger)
    assert {kind: value(metrics, "scheduler_cache_size", type=kind) for kind in ("nodes", "pods", "assumed_pods")} == {
        "nodes": 1,
        "pods": 2,
        "assumed_pods": 1,
    }


def test_preemption(metrics):
    watched = scene(metrics).start("node n1 cpu=2\npod small cpu=2 priority=1 on=n1\npod big cpu=2 priority=10")
    watched.run(60)
    assert value(metrics, "scheduler_preemption_attempts_total") == 1
    assert value(metrics, "scheduler_preemption_victims_sum") == 1


def test_many_attempts_share_a_label(metrics):
    watched = scene(metrics).start("node n1 cpu=1\npod a cpu=2")
    watched.run()
    watched.loop.ledger.queue.pods["default/a"].attempts = 20
    watched.show("node n2 cpu=4")
    watched.run(600)
    assert value(metrics, "scheduler_pod_scheduling_sli_duration_seconds_count", attempts="15+") == 1


def test_what_the_edge_tells(metrics):
    pod = scene().start("pod a cpu=1").loop.ledger.store.pending["default/a"]
    metrics.answered(Bind(pod, "n1"), NotBound(pod.key, pod.uid, Failure.ELSEWHERE, ""), 0.1)
    metrics.answered(Bind(pod, "n1"), Bound(pod.key, pod.uid), 0.1)
    metrics.handled(Cycle(), 0.001)
    metrics.requested("POST", 201, 0.01)
    metrics.requested("POST", 0, 5.0)
    metrics.watched("Pod", "started")
    metrics.noted("dropped")
    metrics.failed("Lease")
    metrics.leading(True)
    metrics.renewed(True)
    metrics.policy(3, 0.1, 1e9)
    assert value(metrics, "stowplan_bind_failures_total", failure="elsewhere") == 1
    assert value(metrics, "stowplan_effect_duration_seconds_count", effect="Bind") == 2
    assert value(metrics, "stowplan_event_handling_duration_seconds_count", event="Cycle") == 1
    assert value(metrics, "rest_client_requests_total", code="201", method="POST") == 1
    assert value(metrics, "rest_client_requests_total", code="<error>", method="POST") == 1
    assert value(metrics, "stowplan_watches_total", kind="Pod", what="started") == 1
    assert value(metrics, "stowplan_events_total", outcome="dropped") == 1
    assert value(metrics, "stowplan_failures_total", where="Lease") == 1
    assert value(metrics, "leader_election_master_status", name="stowplan") == 1
    assert value(metrics, "stowplan_lease_renewals_total", result="held") == 1
    assert value(metrics, "stowplan_policy_generation") == 3


def test_no_name_of_a_pod_or_node_in_any_format(metrics):
    watched = scene(metrics).start("node node-xyz cpu=2\npod pod-xyz cpu=1\npod big-xyz cpu=9\npod small-xyz cpu=1 on=node-xyz")
    watched.run(600)
    metrics.look_into(watched.loop.ledger)
    for accept in ("", "application/openmetrics-text; version=1.0.0"):
        reply = metrics.page().answer(Asked({}, {}, accept, False))
        assert b"xyz" not in reply.body
        assert b"scheduler_schedule_attempts" in reply.body


def test_the_text_is_what_prometheus_reads(metrics):
    watched = scene(metrics).start("node n1 cpu=1\npod a cpu=2\npod b cpu=1")
    watched.run()
    metrics.look_into(watched.loop.ledger)
    families = {family.name: family for family in text_string_to_metric_families(text_of(metrics))}
    assert families["scheduler_schedule_attempts"].type == "counter"
    assert families["scheduler_pending_pods"].type == "gauge"
    assert families["scheduler_queue_incoming_pods"].type == "counter"
    assert "process_resident_memory_bytes" in families
    assert not [name for name in families if name.endswith("_created")]
    assert not metrics.page().private


@pytest.mark.parametrize(
    ("name", "count", "last"),
    [
        ("scheduler_scheduling_attempt_duration_seconds", 15, 16.384),
        ("scheduler_scheduling_algorithm_duration_seconds", 15, 16.384),
        ("scheduler_pod_scheduling_sli_duration_seconds", 20, 5242.88),
        ("scheduler_pod_scheduling_attempts", 5, 16.0),
        ("scheduler_preemption_victims", 7, 64.0),
    ],
)
def test_buckets_are_kube_schedulers(metrics, name, count, last):
    scene(metrics).start("node n1 cpu=2\npod a cpu=1").run()
    bounds = {float(bound) for bound in re.findall(rf'^{name}_bucket{{.*\ble="([^+"]+)"', text_of(metrics), re.MULTILINE)}
    assert len(bounds) == count
    assert max(bounds) == pytest.approx(last)


def test_exponential():
    assert exponential(1, 2, 4) == (1, 2, 4, 8)


def test_telling_costs_little(metrics):
    """Less than a twentieth of the millisecond that a placement may take."""
    watched = scene(metrics, answers=False).start("node n1 cpu=1000\n" + "\n".join(f"pod p{i} cpu=1" for i in range(100)))
    journal, told = watched.loop.journal, []
    watched.loop.journal = SimpleNamespace(handled=lambda *what: told.append(what))
    watched.run()
    for bind in watched.of(Bind):
        watched.handle(Bound(bind.pod.key, bind.pod.uid))

    def spent():
        begun = time.process_time()
        for what in told:
            metrics.handled(what[0], what[3])
            journal.handled(*what)
        return (time.process_time() - begun) / 100

    assert min(spent() for _ in range(20)) < 50e-6
    assert value(metrics, "scheduler_schedule_attempts_total", result="scheduled", profile="default-scheduler") == 2000


def ruled(**scores):
    """A policy with these rules."""
    rules = [{"name": name, "score": text} for name, text in scores.items()]
    profile = {"schedulerName": "default-scheduler", "rules": rules}
    return {"apiVersion": "stowplan.io/v1alpha1", "kind": "SchedulerPolicy", "profiles": [profile]}


def test_rules_without_a_value(metrics):
    dear = "lists.range(9000).map(x, node.name + string(x)).size()"
    policy = ruled(faulty='int(node.labels["n"])', dear=dear, fine="node.pods.size()")
    nodes = "\n".join(f"node n{i} cpu=4" for i in range(40))
    watched = scene(metrics, policy=policy).start(f"node labelled cpu=4 label.n=1\n{nodes}\npod a cpu=1\npod b cpu=1")
    watched.run()
    metrics.look_into(watched.loop.ledger)

    def counts(rule):
        names = ("stowplan_rule_errors_total", "stowplan_rule_budget_exhausted_total")
        return [value(metrics, name, profile="default-scheduler", rule=rule) for name in names]

    assert counts("faulty") == [2, 0]
    assert counts("dear") == [2, 2]
    assert counts("fine") == [None, None]
    record = watched.loop.ledger.records.of("default/a")[-1].to_json()
    assert record["ruleErrors"]["faulty"] == "no such key: n"
    assert record["ruleErrors"].keys() == {"faulty", "dear"}
