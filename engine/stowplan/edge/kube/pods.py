"""What is written about pods, as requests: binding, conditions, nominations, deletion.

Every write names the pod by uid, so that a recreated pod under the old name is never meant: the API server answers 409.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec

from stowplan.edge.clock import rfc3339
from stowplan.edge.kube.texts import MESSAGE, truncated
from stowplan.edge.kube.transport import STRATEGIC, Request
from stowplan.loop.effects import Mark
from stowplan.objects import Pod

SECONDS = 15.0
"""How long a write may take; longer than API servers take for anything but an outage."""
DISRUPTION = "PreemptionByScheduler"

_encode = msgspec.json.Encoder().encode


class SeenMetadata(msgspec.Struct, rename="camel", frozen=True):
    uid: str = ""
    resource_version: str = ""
    generation: int = 0


class SeenSpec(msgspec.Struct, rename="camel", frozen=True):
    node_name: str = ""


class SeenCondition(msgspec.Struct, rename="camel", frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class SeenStatus(msgspec.Struct, rename="camel", frozen=True):
    conditions: tuple[SeenCondition, ...] | None = None
    nominated_node_name: str = ""


class Seen(msgspec.Struct):
    """Of a pod object, what tells where it has come to."""

    metadata: SeenMetadata = SeenMetadata()
    spec: SeenSpec = SeenSpec()
    status: SeenStatus = SeenStatus()

    def later_than(self, other: Seen) -> bool:
        """Is this a later version of the pod?"""
        mine, others = self.metadata.resource_version, other.metadata.resource_version
        return mine.isdecimal() and (not others.isdecimal() or int(mine) > int(others))


_decode_seen = msgspec.json.Decoder(Seen).decode


def seen(body: bytes) -> Seen | None:
    """What the text of a pod says; None if it is none."""
    try:
        return _decode_seen(body)
    except msgspec.MsgspecError:
        return None


def path(pod: Pod, subresource: str = "") -> str:
    found = f"/api/v1/namespaces/{quote(pod.namespace)}/pods/{quote(pod.name)}"
    return f"{found}/{subresource}" if subresource else found


def look(pod: Pod) -> Request:
    return Request("GET", path(pod), seconds=SECONDS)


def binding(pod: Pod, node: str) -> Request:
    """Upstream: DefaultBinder."""
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    return Request("POST", path(pod, "binding"), body=_encode(body), seconds=SECONDS)


def mark(effect: Mark, known: Seen, now: float) -> Request | None:
    """The patch that makes the status of a pod, as it is known, say what the effect says; None if it does already.

    The time of transition changes with the status only, and a new generation alone is no news (upstream: `updatePod` and
    `UpdatePodCondition`).
    """
    status: dict[str, Any] = {}
    conditions = known.status.conditions or ()
    old = next((condition for condition in conditions if condition.type == "PodScheduled"), None)
    message = truncated(effect.message, MESSAGE)
    if old is None or (old.status, old.reason, old.message) != ("False", effect.why, message):
        condition: dict[str, Any] = {"type": "PodScheduled", "status": "False", "reason": effect.why, "message": message}
        if old is None or old.status != "False":
            condition |= {"lastProbeTime": None, "lastTransitionTime": rfc3339(now)}
        if known.metadata.generation:
            condition["observedGeneration"] = known.metadata.generation
        status["conditions"] = [condition]
    if effect.nominated is not None and effect.nominated != known.status.nominated_node_name:
        status["nominatedNodeName"] = effect.nominated or None
    return _status(effect.pod, status) if status else None


def denominate(pod: Pod) -> Request:
    return _status(pod, {"nominatedNodeName": None})


def disrupt(victim: Pod, preemptor: Pod, now: float) -> Request:
    """The condition that tells a victim why it is deleted (upstream: `PreemptPod`)."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": DISRUPTION,
        "message": f"{preemptor.spec.scheduler_name}: preempting to accommodate a higher priority pod",
        "lastTransitionTime": rfc3339(now),
    }
    return _status(victim, {"conditions": [condition]})


def delete(pod: Pod) -> Request:
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": pod.uid}}
    return Request("DELETE", path(pod), body=_encode(body), seconds=SECONDS)


def _status(pod: Pod, status: dict[str, Any]) -> Request:
    body = _encode({"metadata": {"uid": pod.uid}, "status": status})
    return Request("PATCH", path(pod, "status"), body=body, content_type=STRATEGIC, seconds=SECONDS)
