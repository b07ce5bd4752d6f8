"""Victims of a preemption: told why, then deleted; the last one when all others are.

The preemptor may be tried again as soon as the last one is being deleted, and finds its place then (upstream:
`prepareCandidateAsync`).
"""

from __future__ import annotations

import asyncio

from stowplan.edge.kube import pods
from stowplan.edge.kube.calls import CONFLICT, NOT_FOUND, Caller
from stowplan.loop.effects import Evict
from stowplan.objects import Pod


async def evict(effect: Evict, caller: Caller) -> str:
    """Evict all victims; what went wrong, "" if nothing did. A victim that is not there any more is fine."""
    victims = [victim for victim in effect.victims if not victim.terminating]
    if not victims:
        return ""
    others, last = victims[:-1], victims[-1]
    failures = [failure for failure in await asyncio.gather(*(_evicted(pod, effect, caller) for pod in others)) if failure]
    if not failures:
        failures = [await _evicted(last, effect, caller)]
    return ", ".join(filter(None, failures))


async def _evicted(victim: Pod, effect: Evict, caller: Caller) -> str:
    if victim.disruption != pods.DISRUPTION:
        told = await caller.patiently(pods.disrupt(victim, effect.preemptor, caller.clock.wall()))
        if told.status in (NOT_FOUND, CONFLICT):
            return ""
        if not told.ok:
            return f"could not add the condition DisruptionTarget to pod {victim.key}: {told.message}"
    deleted = await caller.patiently(pods.delete(victim))
    if deleted.ok or deleted.status in (NOT_FOUND, CONFLICT):
        return ""
    return f"could not delete pod {victim.key}: {deleted.message}"
