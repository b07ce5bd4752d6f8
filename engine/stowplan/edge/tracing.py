"""Spans for OpenTelemetry, where the standard environment variables name a collector (`OTEL_EXPORTER_OTLP_ENDPOINT`).

Spans are made when they have ended, from what the journal tells: an attempt, in it deciding, preparing and binding; and the change
of a policy. Without an endpoint nothing of OpenTelemetry is imported.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stowplan import __version__
from stowplan.edge.journal import Attempt, Result
from stowplan.edge.logs import ROOT, say
from stowplan.objects import Pod

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
HTTP = "http/protobuf"
MISSING = "no traces: an OTLP endpoint is set, and the OpenTelemetry SDK is not installed (pip install 'stowplan[otel]')"

_log = logging.getLogger(f"{ROOT}.tracing")


def wanted(environment: Mapping[str, str]) -> bool:
    """Whether the environment asks for traces."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true" or environment.get("OTEL_TRACES_EXPORTER") == "none":
        return False
    return any(environment.get(name) for name in ENDPOINTS)


def tracing(environment: Mapping[str, str] = os.environ) -> Traces | None:
    """A listener that sends spans; None, and a warning, where they are asked for and cannot be had."""
    if not wanted(environment):
        return None
    protocol = next((environment[name] for name in PROTOCOLS if environment.get(name)), HTTP)
    if protocol != HTTP:
        say(_log, logging.WARNING, f"no traces: of the protocols for OTLP, {HTTP} is spoken", protocol=protocol)
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        say(_log, logging.WARNING, MISSING)
        return None
    named = {} if environment.get("OTEL_SERVICE_NAME") else {"service.name": ROOT}
    provider = TracerProvider(resource=Resource.create(named | {"service.version": __version__}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Traces(provider)


class Traces:
    """A `Listener` of the journal that makes spans of what it hears."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer: Tracer = provider.get_tracer(ROOT, __version__)

    def attempted(self, attempt: Attempt) -> None:
        """One span, with a child for each part that took place."""
        from opentelemetry.trace import set_span_in_context

        span = self._tracer.start_span("attempt", start_time=_ns(attempt.started), attributes=_attributes(attempt))
        if span.is_recording():
            inside = set_span_in_context(span)
            for name, begin, end in _parts(attempt):
                self._tracer.start_span(name, inside, start_time=_ns(begin)).end(_ns(end))
            _judge(span, attempt)
        span.end(_ns(attempt.ended))

    def preempted(self, preemptor: Pod, node: str, victims: Sequence[Pod]) -> None:
        """The attempt says which node was nominated."""

    def policy(self, generation: int, seconds: float, now: float) -> None:
        """A span for putting a policy into force."""
        attributes = {"stowplan.policy.generation": generation}
        self._tracer.start_span("policy", start_time=_ns(now), attributes=attributes).end(_ns(now + seconds))

    def close(self) -> None:
        """Send what is left, for some seconds at most."""
        self._provider.force_flush(3000)
        self._provider.shutdown()


def _ns(moment: float) -> int:
    return int(moment * 1e9)


def _attributes(attempt: Attempt) -> dict[str, str | int]:
    pod = attempt.pod
    found: dict[str, str | int] = {
        "k8s.namespace.name": pod.namespace,
        "k8s.pod.name": pod.name,
        "k8s.pod.uid": pod.uid,
        "stowplan.profile": attempt.profile,
        "stowplan.policy.generation": attempt.generation,
        "stowplan.attempt": attempt.number,
        "stowplan.result": attempt.result.value,
    }
    return found | ({"k8s.node.name": attempt.node} if attempt.node else {})


def _parts(attempt: Attempt) -> list[tuple[str, float, float]]:
    """Name, begin and end of the parts of an attempt."""
    decided = attempt.ended if attempt.decided is None else attempt.decided
    parts = [("decide", attempt.started, decided)]
    if attempt.decided is None:
        return parts
    if attempt.prepared is not None:
        parts.append(("prepare", decided, attempt.prepared))
    return [*parts, ("bind", decided if attempt.prepared is None else attempt.prepared, attempt.ended)]


def _judge(span: Span, attempt: Attempt) -> None:
    """An attempt that no node passed has not failed: an error is what nobody decided."""
    from opentelemetry.trace import Status, StatusCode

    if attempt.message:
        span.set_attribute("stowplan.message", attempt.message)
    if attempt.result is Result.ERROR:
        span.set_status(Status(StatusCode.ERROR, attempt.message))
