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

from stowplan.edge.kube.calls import NO_LEAVE, Caller
from stowplan.edge.kube.transport import Answer, TransportError
from stowplan.loop.effects import Consult
from stowplan.loop.events import Advice, Event, NodeChanged, NodeGone
from stowplan.objects import Pod
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


def _lower(value: Any) -> Any:
    """The answer with the keys of its outermost objects in lower case; names of nodes, further in, stay as they are."""
    if isinstance(value, list):
        return [_lower(each) for each in value]
    if isinstance(value, dict):
        return {str(key).lower(): each for key, each in value.items() if each is not None}
    return value
