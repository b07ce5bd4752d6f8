"""A loop with an edge that does at once what it is asked, or what a test says instead."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stowplan.edge.load import load_policy
from stowplan.edge.notation import read_notation
from stowplan.loop.effects import Bind, Consult, Denominate, Effect, Evict, Mark, Note, Prepare
from stowplan.loop.events import (
    Bound,
    Cycle,
    Event,
    Evicted,
    FactChanged,
    Leading,
    NodeChanged,
    NodeGone,
    PodChanged,
    PodGone,
    Prepared,
    Synced,
)
from stowplan.loop.loop import Loop
from stowplan.objects import Node, Pod, read


@dataclass
class Scene:
    """One loop, the API objects that it was shown by (kind, key), and all effects so far."""

    policy: Any = None
    answers: bool = True
    loop: Loop = field(init=False)
    objects: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    effects: list[Effect] = field(default_factory=list)
    now: float = 1000.0

    def __post_init__(self) -> None:
        self.loop = Loop(load_policy(self.policy), lambda _: 0)

    def start(self, text: str = "") -> Scene:
        self.show(text)
        self.handle(Synced())
        self.handle(Leading(leads=True))
        return self

    def show(self, text: str) -> None:
        """Objects in the notation are new or have changed."""
        for item in read_notation(text):
            self.put(item)

    def put(self, item: dict[str, Any]) -> None:
        metadata = item["metadata"]
        key = f"{metadata.get('namespace', 'default')}/{metadata['name']}"
        metadata.setdefault("uid", str(uuid.uuid5(uuid.NAMESPACE_URL, f"{item['kind']}{key}")))
        item.get("spec", {}).setdefault("priority", 0) if item["kind"] == "Pod" else None
        self.objects[item["kind"], key] = item
        fact = read(msgspec.json.encode(item))
        match fact:
            case Pod():
                self.handle(PodChanged(fact))
            case Node():
                self.handle(NodeChanged(fact))
            case _:
                assert fact is not None
                self.handle(FactChanged(fact))

    def patch(self, kind: str, key: str, **members: Any) -> None:
        """An object is shown with other members of spec, status or metadata."""
        item = msgspec.json.decode(msgspec.json.encode(self.objects[kind, key]))
        for part, values in members.items():
            item.setdefault(part, {}).update(values)
        self.put(item)

    def delete(self, kind: str, key: str) -> None:
        item = self.objects.pop((kind, key))
        if kind == "Pod":
            self.handle(PodGone(key, item["metadata"]["uid"]))
        else:
            self.handle(NodeGone(item["metadata"]["name"]))

    def handle(self, event: Event) -> list[Effect]:
        found = self.loop.handle(event, self.now)
        self.effects += found
        if self.answers:
            for effect in found:
                self._answer(effect)
        return found

    def _answer(self, effect: Effect) -> None:
        match effect:
            case Bind(pod, node):
                self.handle(Bound(pod.key, pod.uid))
                self.patch("Pod", pod.key, spec={"nodeName": node})
            case Prepare(pod):
                self.handle(Prepared(pod.key, pod.uid))
            case Evict(pod, _, victims):
                for victim in victims:
                    self.delete("Pod", victim.key)
                self.handle(Evicted(pod.key, pod.uid))
            case Mark(pod, nominated=str() as node):
                if ("Pod", pod.key) in self.objects:
                    self.patch("Pod", pod.key, status={"nominatedNodeName": node})
            case Denominate(pod):
                self.patch("Pod", pod.key, status={"nominatedNodeName": ""})

    def run(self, seconds: float = 0.0) -> None:
        """Let the loop do all that it can until then."""
        end = self.now + seconds
        while True:
            for _ in range(1000):
                if not self.loop.ready(self.now):
                    break
                self.handle(Cycle())
            else:
                raise AssertionError("the loop does not come to rest")
            moment = self.loop.wake_at()
            if moment is None or moment > end:
                self.now = end
                return
            self.now = max(moment, self.now)

    # What came of it

    def where(self) -> dict[str, str]:
        """Nodes of bound pods by the pods' names."""
        return {effect.pod.name: effect.node for effect in self.effects if isinstance(effect, Bind)}

    def of(self, kind: type) -> list[Any]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def notes(self, name: str) -> list[tuple[str, str]]:
        """Reasons and texts of the Events about a pod."""
        return [(note.reason, note.text) for note in self.of(Note) if note.pod.name == name]

    def place(self, key: str) -> str:
        entry = self.loop.ledger.queue.pods.get(key)
        return "gone" if entry is None else str(entry.place)


__all__ = ["Consult", "Scene"]
