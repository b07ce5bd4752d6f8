"""What is written about pods stays within what the API server takes."""

from __future__ import annotations

import msgspec

from stowplan.edge.kube import pods
from stowplan.loop.effects import Mark, Why
from unit.edge.kube.rig import encode, pod

LONG = "0/5000 nodes are available: " + ", ".join(f"1 node n{number} has a reason of its own, ä" for number in range(5000))


def condition(request):
    (found,) = msgspec.json.decode(request.body)["status"]["conditions"]
    return found


def test_messages_of_conditions_are_bounded():
    effect = Mark(pod(), Why.UNSCHEDULABLE, LONG)
    message = condition(pods.mark(effect, pods.Seen(), 1000.0))["message"]
    assert 32_000 < len(message.encode()) <= 32_768
    assert message.endswith(" ...")
    assert LONG.startswith(message.removesuffix(" ..."))


def test_a_bounded_message_that_is_there_is_no_news():
    effect = Mark(pod(), Why.UNSCHEDULABLE, LONG)
    found = condition(pods.mark(effect, pods.Seen(), 1000.0))
    known = pods.seen(encode({"status": {"conditions": [found]}}))
    assert pods.mark(effect, known, 2000.0) is None
