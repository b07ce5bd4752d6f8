from __future__ import annotations

import sys

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from stowplan.edge.load import load_policy
from stowplan.edge.tracing import Traces, tracing, wanted
from stowplan.loop.effects import Bind
from stowplan.loop.events import Bound, Failure, NotBound, PolicyChanged
from unit.edge.watched import scene

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}


@pytest.fixture
def spans():
    """A listener, and the spans that have ended."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield Traces(provider), exporter.get_finished_spans
    provider.shutdown()


def test_an_attempt_with_its_parts(spans):
    listener, ended = spans
    watched = scene(listener, answers=False).start("node n1 cpu=4\npod a cpu=1")
    watched.run()
    bind = watched.of(Bind)[0]
    watched.now += 2
    watched.handle(Bound(bind.pod.key, bind.pod.uid))
    decide, binding, attempt = ended()
    assert [span.name for span in ended()] == ["decide", "bind", "attempt"]
    assert {span.parent.span_id for span in (decide, binding)} == {attempt.context.span_id}
    assert (attempt.start_time, attempt.end_time) == (1000 * 10**9, 1002 * 10**9)
    assert (decide.end_time, binding.start_time, binding.end_time) == (1000_250_000_000, 1000_250_000_000, 1002 * 10**9)
    assert attempt.attributes["k8s.pod.name"] == "a"
    assert attempt.attributes["stowplan.result"] == "scheduled"
    assert attempt.attributes["k8s.node.name"] == "n1"
    assert attempt.status.status_code is StatusCode.UNSET


def test_no_node_is_no_error(spans):
    listener, ended = spans
    scene(listener).start("node n1 cpu=1\npod a cpu=4").run()
    attempt = ended()[-1]
    assert attempt.attributes["stowplan.result"] == "unschedulable"
    assert "Insufficient cpu" in attempt.attributes["stowplan.message"]
    assert attempt.status.status_code is StatusCode.UNSET


def test_a_refused_binding_is_one(spans):
    listener, ended = spans
    watched = scene(listener, answers=False).start("node n1 cpu=4\npod a cpu=1")
    watched.run()
    bind = watched.of(Bind)[0]
    watched.handle(NotBound(bind.pod.key, bind.pod.uid, Failure.REFUSED, "quota"))
    attempt = next(span for span in ended() if span.name == "attempt")
    assert (attempt.status.status_code, attempt.status.description) == (StatusCode.ERROR, "quota")


def test_a_change_of_policy(spans):
    listener, ended = spans
    scene(listener).start("").handle(PolicyChanged(load_policy(), 7))
    (span,) = ended()
    assert (span.name, span.attributes["stowplan.policy.generation"]) == ("policy", 7)
    assert span.end_time - span.start_time == 250_000_000


@pytest.mark.parametrize(
    ("environment", "answer"),
    [
        ({}, False),
        (ENDPOINT, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        (ENDPOINT | {"OTEL_SDK_DISABLED": "TRUE"}, False),
        (ENDPOINT | {"OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_the_environment_decides(environment, answer):
    assert wanted(environment) is answer
    if not answer:
        assert tracing(environment) is None


def test_a_missing_sdk_is_told_once(caplog, monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    assert tracing(ENDPOINT) is None
    (record,) = caplog.records
    assert "stowplan[otel]" in record.getMessage()


def test_other_protocols_are_told(caplog):
    assert tracing(ENDPOINT | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}) is None
    assert "http/protobuf" in caplog.records[0].getMessage()


def test_an_endpoint_makes_a_listener(monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    found = tracing()
    assert isinstance(found, Traces)
    found.close()
