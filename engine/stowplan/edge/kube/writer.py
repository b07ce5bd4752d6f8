"""Carries out the loop's effects on pods, and answers.

Effects on one pod are carried out in order, those on different pods at the same time; of marks that wait, the newest counts.
An answer is given once it is certain: after a conflict, or a write that nobody answered, the pod itself is asked.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, Protocol

from stowplan.edge.clock import Backoff, monotonic
from stowplan.edge.kube import pods
from stowplan.edge.kube.calls import CONFLICT, NOT_FOUND, Caller, Outcome
from stowplan.edge.kube.evictions import evict
from stowplan.edge.kube.lanes import Lanes, Spawn
from stowplan.loop.effects import Bind, Consult, ConsultVictims, Deallocate, Denominate, Evict, Mark, Prepare
from stowplan.loop.events import Advice, Bound, Deallocated, Event, Evicted, Failure, NotBound, Prepared, VictimAdvice
from stowplan.objects import Pod, ResourceClaim
from stowplan.profile import Extender

ROUNDS = 3
"""How often an unanswered bind that has left no trace is written again: the first one may still be on its way."""
LONGEST_LOOK = 2.0
"""Seconds between two looks at a pod whose binding is uncertain: it takes room on a node, and its like wait."""
REMEMBERED = 20_000

Written = Bind | Prepare | Mark | Denominate | Evict | Consult | ConsultVictims | Deallocate


class Preparer(Protocol):
    """Writes what must stand before a pod is bound."""

    async def prepare(self, effect: Prepare) -> Prepared | NotBound: ...

    async def undo(self, pod: Pod) -> None:
        """The pod is not bound after all."""

    def bound(self, pod: Pod) -> None:
        """There is nothing to undo any more."""

    async def deallocate(self, pod: Pod, claim: ResourceClaim) -> str:
        """What went wrong, "" if nothing did."""


class Advisers(Protocol):
    """Asks the extenders."""

    async def consult(self, effect: Consult) -> Advice: ...

    async def victims(self, effect: ConsultVictims) -> VictimAdvice: ...

    async def bind(self, extender: Extender, pod: Pod, node: str) -> str:
        """What went wrong, "" if nothing did."""


@dataclass(frozen=True, slots=True)
class Help:
    """Who does what is not about pods alone, and how urgent writes and the others are sent."""

    urgent: Caller
    calm: Caller
    preparer: Preparer
    advisers: Advisers


class Writer:
    """Takes effects; delivers their answers as events."""

    def __init__(self, help_: Help, deliver: Callable[[tuple[Event, ...]], None], spawn: Spawn) -> None:
        self._urgent, self._calm = help_.urgent, help_.calm
        self._preparer, self._advisers = help_.preparer, help_.advisers
        self._deliver = deliver
        self._lanes: Lanes[Written] = Lanes(self._carry_out, spawn)
        self._latest: dict[str, pods.Seen] = {}
        self._stopping = False

    @property
    def busy(self) -> int:
        """Objects with effects that are not carried out yet."""
        return len(self._lanes)

    def take(self, effect: Written) -> None:
        """Have an effect carried out."""
        lane = _lane(effect)
        if isinstance(effect, Mark) and isinstance(last := self._lanes.last(lane), Mark):
            nominated = last.nominated if effect.nominated is None else effect.nominated
            self._lanes.replace_last(lane, replace(effect, nominated=nominated))
        else:
            self._lanes.put(lane, effect)

    async def drain(self, seconds: float) -> None:
        """Let what was begun come to an end, for so long. Pods are not looked up for ever any more."""
        self._stopping = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._lanes.idle()

    async def _carry_out(self, effect: Written) -> None:
        begun = monotonic()
        event = await self._done(effect)
        self._urgent.observer.answered(effect, event, monotonic() - begun)
        if event is not None:
            self._deliver((event,))

    def _done(self, effect: Written) -> Coroutine[Any, Any, Event | None]:
        match effect:
            case Bind():
                return self._bind(effect)
            case Prepare():
                return self._preparer.prepare(effect)
            case Mark() | Denominate():
                return self._told(effect)
            case Evict():
                return self._evict(effect)
            case Deallocate():
                return self._deallocate(effect)
            case _:
                return self._consult(effect)

    def _told(self, effect: Mark | Denominate) -> Coroutine[Any, Any, None]:
        return self._mark(effect) if isinstance(effect, Mark) else self._denominate(effect)

    def _consult(self, effect: Consult | ConsultVictims) -> Coroutine[Any, Any, Event]:
        return self._advisers.consult(effect) if isinstance(effect, Consult) else self._advisers.victims(effect)

    # Binding

    async def _bind(self, effect: Bind) -> Event:
        pod = effect.pod
        event = await self._bound_through(effect, effect.extender) if effect.extender is not None else None
        event = event or await self._bound(pod, effect.node)
        if isinstance(event, NotBound) and event.failure in (Failure.REFUSED, Failure.GONE):
            await self._preparer.undo(pod)
        else:
            self._preparer.bound(pod)
            self._latest.pop(pod.uid, None)
        return event

    async def _bound(self, pod: Pod, node: str) -> Event:
        """Bind, until it is known what came of it."""
        message = ""
        for _ in range(ROUNDS):
            outcome = await self._urgent.patiently(pods.binding(pod, node), repeatable=False)
            message = outcome.message
            if outcome.ok:
                return Bound(pod.key, pod.uid)
            if outcome.status == NOT_FOUND:
                return NotBound(pod.key, pod.uid, Failure.GONE, message)
            if not outcome.uncertain and outcome.status != CONFLICT:
                break
            found = await self._look(pod, node, message)
            if found is not None:
                return found
            if not outcome.uncertain:
                break
        return NotBound(pod.key, pod.uid, Failure.REFUSED, f'running Bind plugin "DefaultBinder": {message}')

    async def _bound_through(self, effect: Bind, extender: Extender) -> Event | None:
        """Binding by an extender; None where it failed and may be ignored."""
        pod = effect.pod
        message = await self._advisers.bind(extender, pod, effect.node)
        if not message:
            return Bound(pod.key, pod.uid)
        found = await self._look(pod, effect.node, message)
        if found is not None or extender.ignorable:
            return found
        return NotBound(pod.key, pod.uid, Failure.REFUSED, message)

    async def _look(self, pod: Pod, node: str, message: str) -> Event | None:
        """Where the pod has come to, None if nowhere; asked until there is an answer, as a wrong guess binds a pod twice."""
        backoff = Backoff(self._urgent.clock, 0.05, LONGEST_LOOK)
        while True:
            outcome = await self._urgent.once(pods.look(pod))
            if outcome.status == NOT_FOUND:
                return NotBound(pod.key, pod.uid, Failure.GONE, message)
            found = pods.seen(outcome.answer.body) if outcome.ok and outcome.answer is not None else None
            if found is not None:
                if found.metadata.uid != pod.uid:
                    return NotBound(pod.key, pod.uid, Failure.GONE, message)
                if found.spec.node_name == node:
                    return Bound(pod.key, pod.uid)
                return NotBound(pod.key, pod.uid, Failure.ELSEWHERE, message) if found.spec.node_name else None
            if self._stopping:
                return NotBound(pod.key, pod.uid, Failure.UNKNOWN, message)
            self._urgent.observer.failed(f"Pod {pod.key}", f"cannot be looked up after binding it: {outcome.message}")
            await backoff.pause()

    # The rest

    async def _mark(self, effect: Mark) -> None:
        pod = effect.pod
        known = self._known(pod)
        request = pods.mark(effect, known, self._calm.clock.wall())
        if request is not None:
            self._remember(pod, await self._calm.patiently(request))

    async def _denominate(self, effect: Denominate) -> None:
        if self._known(effect.pod).status.nominated_node_name or not effect.pod.raw:
            self._remember(effect.pod, await self._calm.patiently(pods.denominate(effect.pod)))

    def _known(self, pod: Pod) -> pods.Seen:
        """The pod as the loop saw it, or as an own write left it, whichever is later."""
        told = (pods.seen(pod.raw) if pod.raw else None) or pods.Seen()
        own = self._latest.get(pod.uid)
        if own is not None and own.later_than(told):
            return own
        self._latest.pop(pod.uid, None)
        return told

    def _remember(self, pod: Pod, outcome: Outcome) -> None:
        """What an own write has made of a pod; the loop learns of it later."""
        if outcome.ok and outcome.answer is not None:
            found = pods.seen(outcome.answer.body)
            if found is not None and found.metadata.uid == pod.uid:
                self._latest[pod.uid] = found
                if len(self._latest) > REMEMBERED:
                    self._latest.pop(next(iter(self._latest)))
        elif outcome.status not in (NOT_FOUND, CONFLICT):
            self._calm.observer.failed(f"Pod {pod.key}", f"its status cannot be written: {outcome.message}")

    async def _evict(self, effect: Evict) -> Evicted:
        pod = effect.preemptor
        return Evicted(pod.key, pod.uid, await evict(effect, self._urgent))

    async def _deallocate(self, effect: Deallocate) -> Deallocated:
        pod, claim = effect.pod, effect.claim
        message = await self._preparer.deallocate(pod, claim)
        if message:
            self._calm.observer.failed(f"ResourceClaim {claim.key}", f"it cannot be given up for pod {pod.key}: {message}")
        return Deallocated(pod.key, pod.uid, message)


def _lane(effect: Written) -> str:
    """Whose turn it is: a preemptor is marked while its victims are still being evicted."""
    match effect:
        case Evict():
            return f"evict {effect.preemptor.uid}"
        case Consult() | ConsultVictims():
            return f"consult {effect.pod.uid}"
        case Deallocate():
            return f"deallocate {effect.pod.uid}"
        case _:
            return effect.pod.uid
