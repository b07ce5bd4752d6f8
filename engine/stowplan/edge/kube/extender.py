"""HTTP extenders: asked about nodes, and to bind (upstream: `HTTPExtender`).

Each is given what the ones before it kept. Names of nodes are sent to those that know nodes themselves, whole nodes to the
others. An error ends the attempt unless the extender may be ignored; one in prioritising is ignored in any case.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import msgspec

from stowplan.edge.kube.calls import NO_LEAVE, NOT_FOUND, Caller
from stowplan.edge.kube.pods import look, seen
from stowplan.edge.kube.transport import Answer, TransportError
from stowplan.loop.effects import Consult, ConsultVictims
from stowplan.loop.events import Advice, Event, NodeChanged, NodeGone, VictimAdvice
from stowplan.objects import Pod
from stowplan.policy.offers import Claim, Offer, Offers
from stowplan.profile import Extender

SCALE = 10
"""Points of a node's score for one of an extender's, which goes to 10 where a node's goes to 100."""


class Web(Protocol):
    """How extenders are reached."""

    async def post(self, extender: Extender, url: str, body: bytes) -> Answer:
        """One call, within the extender's time. Raises TransportError."""
        ...


class ExtenderError(Exception):
    """An extender could not be asked, or said nonsense."""


class _Names(msgspec.Struct):
    name: str = ""


class _Item(msgspec.Struct):
    metadata: _Names


class _Nodes(msgspec.Struct):
    items: list[_Item] | None = None


class _Filtered(msgspec.Struct):
    """`ExtenderFilterResult`, with its keys in lower case: Go does not mind how they are written."""

    nodes: _Nodes | None = None
    nodenames: list[str] | None = None
    failednodes: dict[str, str] | None = None
    failedandunresolvablenodes: dict[str, str] | None = None
    error: str = ""


class _Priority(msgspec.Struct):
    host: str = ""
    score: int = 0


class _Bound(msgspec.Struct):
    error: str = ""


class _Victim(msgspec.Struct):
    uid: str = ""


class _Victims(msgspec.Struct):
    pods: list[dict[str, Any]] | None = None
    numpdbviolations: int = 0


class _Preempted(msgspec.Struct):
    """`ExtenderPreemptionResult`, which has identifiers of pods whatever was sent."""

    nodenametometavictims: dict[str, dict[str, Any] | None] | None = None


T = TypeVar("T")


@dataclass(slots=True)
class _Opinion:
    """What has been said so far."""

    kept: list[str]
    refused: dict[str, str] = field(default_factory=dict)
    final: dict[str, str] = field(default_factory=dict)
    scores: dict[str, int] = field(default_factory=dict)


class Extenders:
    """See `Advisers`. Keeps the nodes as they are, for extenders that do not know them."""

    def __init__(self, web: Web | None, caller: Caller) -> None:
        self._web, self._caller = web, caller
        self._nodes: dict[str, bytes] = {}

    def saw(self, events: Sequence[Event]) -> None:
        """What the loop is told of nodes."""
        if self._web is None:
            return
        for event in events:
            if isinstance(event, NodeChanged):
                self._nodes[event.node.name] = event.node.raw
            elif isinstance(event, NodeGone):
                self._nodes.pop(event.name, None)

    async def consult(self, effect: Consult) -> Advice:
        """Filter with each in turn, then prioritise what is left."""
        pod, opinion = effect.pod, _Opinion(list(effect.nodes))
        filters = [each for each in effect.extenders if each.filter_verb]
        try:
            for extender in filters:
                if not opinion.kept:
                    break
                await self._filter(extender, pod, opinion)
        except ExtenderError as error:
            return Advice(pod.key, pod.uid, error=str(error))
        if effect.prioritize and len(opinion.kept) > 1:
            asked = (each for each in effect.extenders if each.prioritize_verb)
            await asyncio.gather(*(self._prioritize(each, pod, opinion) for each in asked))
        return Advice(
            pod.key,
            pod.uid,
            frozenset(opinion.kept) if filters else None,
            tuple(opinion.scores.items()),
            tuple(opinion.refused.items()),
            tuple(opinion.final.items()),
        )

    async def bind(self, extender: Extender, pod: Pod, node: str) -> str:
        """Have an extender bind the pod; what went wrong, "" if nothing did."""
        if not self._caller.may_write():
            return NO_LEAVE
        body = {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node}
        try:
            return (await self._ask(extender, extender.bind_verb, body, _Bound)).error
        except ExtenderError as error:
            return str(error)

    async def victims(self, effect: ConsultVictims) -> VictimAdvice:
        """Ask about the pods that would be evicted (upstream: `ProcessPreemption`)."""
        pod, extender = effect.pod, effect.extender
        try:
            arguments = await self._preemption(extender, pod, effect.offers)
            found = await self._ask(extender, extender.preempt_verb, arguments, _Preempted)
            claims = _claims(extender, found)
        except ExtenderError as error:
            if extender.ignorable:
                self._caller.observer.failed("extender", f"{error}; ignored")
            return VictimAdvice(pod.key, pod.uid, error=str(error))
        return VictimAdvice(pod.key, pod.uid, claims)

    async def _preemption(self, extender: Extender, pod: Pod, offers: Offers) -> dict[str, Any]:
        """`ExtenderPreemptionArgs`."""
        arguments: dict[str, Any] = {"Pod": msgspec.Raw(pod.raw), "NodeNameToVictims": None, "NodeNameToMetaVictims": None}
        if extender.node_cache_capable:
            identified = {node: _victims([{"UID": each.uid} for each in offer.victims], offer) for node, offer in offers.items()}
            return arguments | {"NodeNameToMetaVictims": identified}
        whole = await asyncio.gather(*(self._whole(each) for offer in offers.values() for each in offer.victims))
        there = {uid: found for uid, found in whole if found is not None}
        victims = {
            node: _victims([there[each.uid] for each in offer.victims], offer)
            for node, offer in offers.items()
            if all(each.uid in there for each in offer.victims)
        }
        return arguments | {"NodeNameToVictims": victims}

    async def _whole(self, pod: Pod) -> tuple[str, msgspec.Raw | None]:
        """A pod as the API server has it, None if it is not there any more: of pods that run only facts are kept."""
        outcome = await self._caller.patiently(look(pod))
        answer = outcome.answer
        if outcome.status == NOT_FOUND or (outcome.ok and answer is not None and not _is(pod, answer.body)):
            return pod.uid, None
        if not outcome.ok or answer is None:
            raise ExtenderError(f"pod {pod.key}, a victim, cannot be looked up: {outcome.message}")
        return pod.uid, msgspec.Raw(answer.body)

    async def _filter(self, extender: Extender, pod: Pod, opinion: _Opinion) -> None:
        try:
            found = await self._ask(extender, extender.filter_verb, self._arguments(extender, pod, opinion.kept), _Filtered)
            kept = _kept(extender, found, opinion.kept)
        except ExtenderError as error:
            if not extender.ignorable:
                raise
            self._caller.observer.failed("extender", f"{error}; ignored")
            return
        opinion.final |= found.failedandunresolvablenodes or {}
        opinion.refused |= {name: text for name, text in (found.failednodes or {}).items() if name not in opinion.final}
        opinion.kept = kept

    async def _prioritize(self, extender: Extender, pod: Pod, opinion: _Opinion) -> None:
        try:
            arguments = self._arguments(extender, pod, opinion.kept)
            found = await self._ask(extender, extender.prioritize_verb, arguments, list[_Priority])
        except ExtenderError as error:
            self._caller.observer.failed("extender", f"{error}; ignored")
            return
        for each in found:
            opinion.scores[each.host] = opinion.scores.get(each.host, 0) + each.score * extender.weight * SCALE

    def _arguments(self, extender: Extender, pod: Pod, names: list[str]) -> dict[str, Any]:
        arguments: dict[str, Any] = {"Pod": msgspec.Raw(pod.raw), "Nodes": None, "NodeNames": None}
        if extender.node_cache_capable:
            return arguments | {"NodeNames": names}
        items = [msgspec.Raw(self._nodes[name]) for name in names if name in self._nodes]
        return arguments | {"Nodes": {"metadata": {}, "items": items}}

    async def _ask(self, extender: Extender, verb: str, body: dict[str, Any], shape: type[T]) -> T:
        """Ask one thing. ExtenderError, in upstream's words where it has some."""
        url = f"{extender.url_prefix.rstrip('/')}/{verb}"
        if self._web is None:
            raise ExtenderError(f"nobody can reach the extender at URL {url}")
        try:
            answer = await self._web.post(extender, url, msgspec.json.encode(body))
        except TransportError as error:
            raise ExtenderError(f'Post "{url}": {error}') from None
        if answer.status != 200:
            raise ExtenderError(f"failed {verb} with extender at URL {url}, code {answer.status}")
        try:
            return msgspec.convert(_lower(msgspec.json.decode(answer.body)), shape)
        except msgspec.MsgspecError as error:
            raise ExtenderError(f"the extender at URL {url} answered nonsense: {error}") from None


def _kept(extender: Extender, found: _Filtered, asked: list[str]) -> list[str]:
    """The nodes that an extender keeps, of those that it was asked about."""
    if found.error:
        raise ExtenderError(found.error)
    if extender.node_cache_capable and found.nodenames is not None:
        names = found.nodenames
    elif found.nodes is not None:
        names = [item.metadata.name for item in found.nodes.items or ()]
    else:
        names = []
    known = set(asked)
    for name in names:
        if name not in known:
            url = extender.url_prefix.rstrip("/")
            raise ExtenderError(f'extender "{url}" claims a filtered node "{name}" which is not found in the input node list')
    return names


def _victims(pods: list[Any], offer: Offer) -> dict[str, Any]:
    return {"Pods": pods, "NumPDBViolations": offer.violations}


def _is(pod: Pod, body: bytes) -> bool:
    found = seen(body)
    return found is not None and found.metadata.uid == pod.uid


def _claims(extender: Extender, found: _Preempted) -> tuple[Claim, ...]:
    """The nodes that are left, each with the pods to evict. ExtenderError for nonsense."""
    claims = []
    try:
        for node, told in (found.nodenametometavictims or {}).items():
            victims = msgspec.convert(_lower(told or {}), _Victims)
            pods = tuple(msgspec.convert(_lower(each), _Victim).uid for each in victims.pods or ())
            claims.append((node, pods, victims.numpdbviolations))
    except msgspec.ValidationError as error:
        url = f"{extender.url_prefix.rstrip('/')}/{extender.preempt_verb}"
        raise ExtenderError(f"the extender at URL {url} answered nonsense: {error}") from None
    return tuple(claims)


def _lower(value: Any) -> Any:
    """The answer with the keys of its outermost objects in lower case; names of nodes, further in, stay as they are."""
    if isinstance(value, list):
        return [_lower(each) for each in value]
    if isinstance(value, dict):
        return {str(key).lower(): each for key, each in value.items() if each is not None}
    return value
