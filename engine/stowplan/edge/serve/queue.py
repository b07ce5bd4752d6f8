"""/queue: the pods that wait, for what, and until when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from math import floor
from typing import Any

from stowplan.edge.serve.pages import Asked, Page, Reply, as_json, limit_of, names_of, quoted, refused
from stowplan.edge.serve.standing import Stand, Standing
from stowplan.loop.ledger import Ledger
from stowplan.loop.waiting import FLUSH_SECONDS, POOL_SECONDS, Place, Waiting
from stowplan.objects import Pod
from stowplan.text.moments import rfc3339_micro

MOST = 1000
"""Pods that are shown unless a `limit` is given."""
LONGEST = 4096
"""Characters of a message."""
ACTIVE, BACKING_OFF, UNSCHEDULABLE, GATED = "active", "backing off", "unschedulable", "gated"
PREEMPTING, BINDING, ASKING, UNSERVED = "preempting", "being bound", "asking extenders", "not served"
ORDER = (BINDING, ASKING, ACTIVE, PREEMPTING, BACKING_OFF, UNSCHEDULABLE, GATED, UNSERVED)
"""States, the nearest to a node first."""


def queue(ledger: Callable[[], Ledger], stand: Stand = lambda: Standing(leads=True)) -> Page:
    """The page; `pod` (a key or a name) and `state` narrow it, `limit` is the most pods that are shown."""

    def answer(asked: Asked) -> Reply:
        now = ledger()
        limit, pods, states = limit_of(asked, MOST), names_of(asked, "pod", keys=True), asked.query.get("state", ())
        if isinstance(limit, Reply):
            return limit
        if isinstance(pods, Reply):
            return pods
        if unknown := [state for state in states if state not in ORDER]:
            return refused(f"{quoted(unknown[0])} is no state; states: {', '.join(ORDER)}")
        found = list(waiting(now))
        counts = Counter(str(each["state"]) for each in found)
        kept = [each for each in found if (not pods or _is(each, pods)) and (not states or each["state"] in states)]
        kept.sort(key=lambda each: (ORDER.index(each["state"]), each.get("since") or 0.0))
        return as_json(
            {
                "apiVersion": "stowplan.io/v1alpha1",
                "kind": "Queue",
                **stand().to_json(),
                "leads": now.leads,
                "synced": now.synced,
                "shadow": now.shadow is not None,
                "profiles": list(now.policy.profiles),
                "counts": {state: counts[state] for state in ORDER if counts[state]},
                "total": len(kept),
                "items": [_dated(each) for each in kept[:limit]],
            }
        )

    return Page("/queue", answer, takes=("pod", "state", "limit"))


def _is(each: dict[str, Any], pods: tuple[str, ...]) -> bool:
    return each["pod"] in pods or each["pod"].rpartition("/")[2] in pods


def _dated(each: dict[str, Any]) -> dict[str, Any]:
    return each | {name: rfc3339_micro(each[name]) for name in ("since", "nextTry") if name in each}


def waiting(ledger: Ledger) -> Iterator[dict[str, Any]]:
    """Every pod without a node, with its state, in no order; times in epoch seconds."""
    flying = {flight.entry.pod.key: flight for flight in ledger.flights.by_uid.values()}
    asked = {entry.pod.key for entry in ledger.consulted.values()}
    for flight in flying.values():
        if flight.seen:
            continue
        yield _entry(flight.entry, BINDING, {"node": flight.node, "stage": flight.stage.value, "since": flight.started})
    for key, entry in ledger.queue.pods.items():
        if key in flying:
            continue
        if key in asked:
            yield _entry(entry, ASKING, {})
        else:
            yield _entry(entry, *_state(entry))
    for pod in ledger.store.pending.values():
        if not ledger.serves(pod) and not pod.terminating:
            yield _head(pod) | {"state": UNSERVED, "message": f'no scheduler serves "{pod.spec.scheduler_name}" here'}


def _state(entry: Waiting) -> tuple[str, dict[str, Any]]:
    """What a pod in the queue waits for, and what that state has to say."""
    if entry.busy:
        return PREEMPTING, {"since": entry.timestamp}
    match entry.place:
        case Place.BACKOFF | Place.ERROR:
            return BACKING_OFF, {"since": entry.timestamp, "nextTry": floor(entry.expiry) + 1.0}
        case Place.POOL:
            return UNSCHEDULABLE, {"since": entry.timestamp, "nextTry": entry.timestamp + POOL_SECONDS + FLUSH_SECONDS}
        case Place.GATED:
            return GATED, {"since": entry.timestamp, "message": entry.gate or ""}
    return ACTIVE, {"since": entry.timestamp}


def _entry(entry: Waiting, state: str, more: dict[str, Any]) -> dict[str, Any]:
    """A pod that a profile serves. `nextTry` is the latest moment: a change of the cluster or of the policy may come earlier."""
    said = {"message": entry.message, "plugins": sorted(entry.rejectors), "node": entry.pod.nominated_node} | more
    kept = {name: value for name, value in said.items() if value}
    if len(str(kept.get("message", ""))) > LONGEST:
        kept["message"] = f"{kept['message'][:LONGEST]} ..."
    return _head(entry.pod) | {"state": state, "attempts": entry.attempts} | kept


def _head(pod: Pod) -> dict[str, Any]:
    return {"pod": pod.key, "uid": pod.uid, "scheduler": pod.spec.scheduler_name, "priority": pod.spec.priority}
