"""Random changes of a cluster, and a plain record of what is there, against which a store can be checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from properties.clusters import FACTS, ODD_FRAGMENTS, STORAGE, node, node_looks, palettes, pod, pod_looks, waiting_looks
from stowplan.objects import Fact, Node, OtherFact, Pod, read
from stowplan.state import Store

NODES = tuple(f"n{i}" for i in range(20))
"""more than the rows that a new store has room for"""
PODS = tuple(f"p{i}" for i in range(12))
CHANGES = ("set_node", "set_pod", "set_pod", "remove_node", "remove_pod", "assume", "assume", "forget", "set_fact")
FINISHED = {"status": {"phase": "Succeeded"}}
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web", "labels": {"team": "red"}}}


def fact_of(item: dict[str, Any]) -> Fact:
    found = read(item)
    assert found is not None
    return found


@dataclass(slots=True)
class World:
    """A store that lives through changes, and the facts as they are after them."""

    data: Any
    store: Store = field(default_factory=Store)
    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    assumed: dict[str, str] = field(default_factory=dict)
    facts: dict[tuple[type, str], OtherFact] = field(default_factory=dict)
    palette: tuple[Any, ...] = ()

    def draw(self, strategy: st.SearchStrategy[Any]) -> Any:
        return self.data.draw(strategy)

    def rebuilt(self) -> Store:
        """A store made from the facts alone."""
        store = Store()
        for fact in (*self.facts.values(), *self.nodes.values()):
            store.add(fact)
        for key, found in self.pods.items():
            store.add(found)
            if key in self.assumed:
                store.assume(found, self.assumed[key])
        return store

    # Changes

    def step(self) -> None:
        """One random change."""
        getattr(self, self.draw(st.sampled_from(CHANGES)))()

    def populate(self, nodes: int, pods: int) -> None:
        self.palette = self.draw(palettes(*ODD_FRAGMENTS))
        for item in STORAGE:
            self.keep(fact_of(item))
        for name in NODES[:nodes]:
            self.set_node(name)
        for name in PODS[:pods]:
            self.set_pod(name)

    def set_node(self, name: str | None = None) -> None:
        found = fact_of(node(name or self.draw(st.sampled_from(NODES)), self.draw(node_looks())))
        assert isinstance(found, Node)
        self.nodes[found.name] = found
        self.store.set_node(found)

    def remove_node(self) -> None:
        if self.nodes:
            name = self.draw(st.sampled_from(sorted(self.nodes)))
            del self.nodes[name]
            self.store.remove_node(name)

    def set_pod(self, name: str | None = None) -> None:
        """A pod is new, changes or moves; now and then to a node that is not there, or to its end."""
        on = self.draw(st.none() | st.sampled_from((*NODES[:6], "nowhere")))
        looks = self.draw(waiting_looks(self.palette) if on is None else pod_looks((*self.palette, FINISHED)))
        found = fact_of(pod(name or self.draw(st.sampled_from(PODS)), looks, on))
        assert isinstance(found, Pod)
        self.pods.pop(found.key, None)
        self.assumed.pop(found.key, None)
        if not found.finished:
            self.pods[found.key] = found
        self.store.set_pod(found)

    def remove_pod(self) -> None:
        if self.pods:
            key = self.draw(st.sampled_from(sorted(self.pods)))
            del self.pods[key]
            self.assumed.pop(key, None)
            self.store.remove_pod(key)

    def assume(self) -> None:
        if self.store.pending and self.nodes:
            key = self.draw(st.sampled_from(sorted(self.store.pending)))
            self.place(key, self.draw(st.sampled_from(sorted(self.nodes))))

    def place(self, key: str, name: str) -> None:
        self.store.assume(self.pods[key], name)
        self.assumed[key] = name

    def forget(self) -> None:
        if self.assumed:
            key = self.draw(st.sampled_from(sorted(self.assumed)))
            del self.assumed[key]
            self.store.forget(self.pods[key])

    def keep(self, fact: OtherFact) -> None:
        self.facts[type(fact), fact.key] = fact
        self.store.set_fact(fact)

    def set_fact(self) -> None:
        found = fact_of(self.draw(st.sampled_from((*FACTS, NAMESPACE, *STORAGE))))
        assert not isinstance(found, Pod | Node)
        if self.draw(st.booleans()):
            self.keep(found)
        else:
            self.facts.pop((type(found), found.key), None)
            self.store.remove_fact(type(found), found.key)
