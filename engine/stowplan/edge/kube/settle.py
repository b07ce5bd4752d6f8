"""Objects brought to how they should be, with others writing to them at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from stowplan.edge.kube.calls import CONFLICT, NOT_FOUND, Caller, Outcome
from stowplan.edge.kube.transport import MERGE, STRATEGIC, Request

TRIES = 5
SECONDS = 15.0

Object = dict[str, Any]
Change = Callable[[Object], Object | None]
"""From an object as it is to a merge patch; None if nothing is to be done. PrepareError if it cannot be."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class PrepareError(Exception):
    """The pod cannot be bound as decided; the text says why."""


async def settle(caller: Caller, path: str, change: Change, sub: str = "") -> Object:
    """The object, once the change has been made by somebody. PrepareError if it cannot be made.

    An answer that did not come, and a conflict, lead to another look at the object.
    """
    message = ""
    for _ in range(TRIES):
        held = await read(caller, path)
        body = change(held)
        if body is None:
            return held
        body["metadata"] = {**body.get("metadata", {}), "resourceVersion": held["metadata"].get("resourceVersion")}
        request = Request("PATCH", path + sub, body=_encode(body), content_type=MERGE, seconds=SECONDS)
        outcome = await caller.patiently(request)
        if outcome.ok:
            return _decoded(outcome)
        message = outcome.message
        if outcome.status != CONFLICT and not outcome.uncertain:
            break
    raise PrepareError(message)


async def read(caller: Caller, path: str) -> Object:
    """An object as it is. PrepareError if it cannot be had."""
    outcome = await caller.patiently(Request("GET", path, seconds=SECONDS))
    if not outcome.ok:
        raise PrepareError(outcome.message)
    return _decoded(outcome)


async def create(caller: Caller, folder: str, body: Object) -> Object:
    """A new object with a name of its own, which nobody else would give. PrepareError if it cannot be made."""
    outcome = await caller.patiently(Request("POST", folder, body=_encode(body), seconds=SECONDS))
    if outcome.status == CONFLICT:  # an attempt that was not answered has been successful
        return await read(caller, f"{folder}/{body['metadata']['name']}")
    if not outcome.ok:
        raise PrepareError(outcome.message)
    return _decoded(outcome)


async def patch(caller: Caller, path: str, body: Object) -> Outcome:
    """A strategic merge patch, whatever the object looks like."""
    return await caller.patiently(Request("PATCH", path, body=_encode(body), content_type=STRATEGIC, seconds=SECONDS))


async def delete(caller: Caller, path: str, uid: str) -> bool:
    """Whether the object is gone, or going."""
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
    outcome = await caller.patiently(Request("DELETE", path, body=_encode(body), seconds=SECONDS))
    return outcome.ok or outcome.status in (NOT_FOUND, CONFLICT)


def _decoded(outcome: Outcome) -> Object:
    assert outcome.answer is not None
    try:
        return _decode(outcome.answer.body)
    except msgspec.MsgspecError as error:
        raise PrepareError(f"the API server sent what is no object: {error}") from None
