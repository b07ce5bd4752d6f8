"""The cluster as facts and columns, with one writer.

The store owns rows: a node has the row number `row_of[name]`, a pod sits in the seat of its node's row. Every change goes
through it, so every column is current after every call. Invariant (checked in tests): the store equals a store built
anew from the same facts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from stowplan.objects import Fact, Node, OtherFact, Pod
from stowplan.state.changelog import ChangeLog
from stowplan.state.columns import Column, Numbers, Storage

V = TypeVar("V")


class DuplicateNodeError(ValueError):
    """A node of this name is there already."""


class Seat(NamedTuple):
    """Where a pod sat: its node, the keys of all pods there in order, and the facts that its binding replaced."""

    node: str
    order: tuple[str, ...]
    replaced: list[tuple[OtherFact, OtherFact | None]] | None


class Store:
    """Nodes, pods and the other facts that decisions read."""

    def __init__(self) -> None:
        self.capacity = 16
        self.nodes: list[Node] = []
        self.row_of: dict[str, int] = {}
        self.seats: list[dict[str, Pod]] = []
        self.strays: dict[str, dict[str, Pod]] = {}
        self.pending: dict[str, Pod] = {}
        self.nominated: dict[str, dict[str, Pod]] = {}
        """pending pods by the node that preemption reserved for them"""
        self.nominations = 0
        """Grows when `nominated` changes."""
        self.facts: dict[type, dict[str, Any]] = {}
        """facts of other kinds (Namespace, Workload, ...) by their type and key"""
        self.epoch = 0
        """Grows when a node comes, goes or changes its facts: row numbers and node columns are not what they were."""
        self.lookups = 0
        """Grows when one of `facts`, which asks are made from, changes."""
        self.now = 0.0
        """Epoch seconds at which decisions are thought to be made; `set_now` changes it."""
        self.log = ChangeLog()
        """Rows whose pods, or facts about them that are not the node's, changed, in order; readers remember their place."""
        self._places: dict[str, str] = {}
        self._replaced: dict[str, list[tuple[OtherFact, OtherFact | None]]] = {}
        self._columns: dict[Column[Any], Storage[Any]] = {}
        self._pod_columns: list[Storage[Any]] = []
        self._ranks: tuple[int, Numbers, bool] = (-1, np.zeros(0, dtype=np.int64), True)

    # Columns

    def storage(self, column: Column[V]) -> Storage[V]:
        """Storage of a column, made from the facts on first use."""
        found = self._columns.get(column)
        if found is None:
            found = self._columns[column] = column.make(self)
            if found.pods_matter:
                self._pod_columns.append(found)
        return found

    def name_ranks(self) -> Numbers:
        """Place of each row's node in the order of names, as int64 over the nodes."""
        if self._ranks[0] != self.epoch:
            order = sorted(range(len(self.nodes)), key=lambda row: self.nodes[row].name)
            ranks = np.empty(len(order), dtype=np.int64)
            ranks[order] = np.arange(len(order))
            self._ranks = (self.epoch, ranks, bool((ranks[1:] > ranks[:-1]).all()))
        return self._ranks[1]

    def named_in_order(self) -> bool:
        """Whether rows are in the order of their nodes' names."""
        self.name_ranks()
        return self._ranks[2]

    # Facts

    def add(self, fact: Fact) -> None:
        """Take in a fact of any kind; a node whose name is taken raises DuplicateNodeError, other facts replace older ones."""
        if isinstance(fact, Pod):
            self.set_pod(fact)
        elif isinstance(fact, Node):
            if fact.name in self.row_of:
                raise DuplicateNodeError(f"node {fact.name} is there twice")
            self.set_node(fact)
        else:
            self.set_fact(fact)

    def set_fact(self, fact: OtherFact) -> OtherFact | None:
        """A fact of another kind is new or has changed. Returns the one it replaces."""
        kept = self.facts.setdefault(type(fact), {})
        replaced = kept.get(fact.key)
        kept[fact.key] = fact
        self._tell(replaced, fact)
        return replaced

    def remove_fact(self, kind: type, key: str) -> None:
        """A fact of another kind is gone; an unknown key is ignored."""
        gone = self.facts.get(kind, {}).pop(key, None)
        if gone is not None:
            self._tell(gone, None)

    def _tell(self, old: OtherFact | None, new: OtherFact | None) -> None:
        """Asks and columns follow a fact that has changed."""
        self.lookups += 1
        for storage in self._columns.values():
            self.log.extend(storage.set_fact(old, new))

    def set_now(self, now: float) -> None:
        """Decisions are from now on made at this moment (epoch seconds); asks may depend on it."""
        if now != self.now:
            self.now = now
            self.lookups += 1

    # Nodes

    def set_node(self, node: Node) -> None:
        """A node is new or has changed; equal facts (a heartbeat) change nothing."""
        row = self.row_of.get(node.name)
        if row is None:
            row = self._new_row(node)
        elif self.nodes[row] == node and not any(storage.differs(row, node) for storage in self._columns.values()):
            self.nodes[row] = node  # the raw object may be another
            return
        self.nodes[row] = node
        self.epoch += 1
        for storage in self._columns.values():
            storage.set_node(row, node)
        for pod in self.strays.pop(node.name, {}).values():
            self._seat(row, pod)

    def _new_row(self, node: Node) -> int:
        row = self.row_of[node.name] = len(self.nodes)
        self.nodes.append(node)
        self.seats.append({})
        if len(self.nodes) > self.capacity:
            self.capacity *= 2
            for storage in self._columns.values():
                storage.grow(self.capacity)
        return row

    def remove_node(self, name: str) -> None:
        """A node is gone; its pods are kept until they are removed themselves. The last row takes over its number."""
        row = self.row_of.pop(name)
        stranded = self.seats[row]
        for key in list(stranded):
            self.strays.setdefault(name, {})[key] = stranded[key]
            self._unseat(row, stranded[key])
        last = len(self.nodes) - 1
        if row != last:
            self.nodes[row], self.seats[row] = self.nodes[last], self.seats[last]
            self.row_of[self.nodes[row].name] = row
        for storage in self._columns.values():
            storage.move(last, row)
        self.nodes.pop()
        self.seats.pop()
        self.epoch += 1

    # Pods

    def set_pod(self, pod: Pod) -> None:
        """A pod is new or has changed: it runs on its node, waits, or (finished) is of no interest."""
        self.remove_pod(pod.key)
        if pod.finished:
            return
        if pod.node_name:
            self._put(pod, pod.node_name)
        else:
            self._wait(pod)

    def remove_pod(self, key: str) -> None:
        """A pod is gone; an unknown key is ignored."""
        self._replaced.pop(key, None)  # nothing is left to undo: another pod may get the name
        self._leave_queue(key)
        name = self._places.pop(key, None)
        if name is None:
            return
        row = self.row_of.get(name)
        if row is None:
            del self.strays[name][key]
            if not self.strays[name]:
                del self.strays[name]
        else:
            self._unseat(row, self.seats[row][key])

    def assume(self, pod: Pod, name: str, facts: Iterable[OtherFact] = ()) -> None:
        """Count a pending pod on a node before the API server says so, and take over the facts as its binding will make them.

        Undone by `forget`.
        """
        self._leave_queue(pod.key)
        self._put(pod, name)
        replaced = [(fact, self.set_fact(fact)) for fact in facts]
        if replaced:
            self._replaced[pod.key] = replaced

    def forget(self, pod: Pod) -> None:
        """Undo `assume`: the pod waits again, and the facts are what they were."""
        replaced = self._replaced.pop(pod.key, [])
        self.remove_pod(pod.key)
        self._wait(pod)
        for fact, old in reversed(replaced):
            if old is None:
                self.remove_fact(type(fact), fact.key)
            else:
                self.set_fact(old)

    def requeue(self, pods: Iterable[Pod]) -> None:
        """Let these pods wait, in this order, and no others."""
        self.pending, self.nominated = {}, {}
        self.nominations += 1
        for pod in pods:
            self._wait(pod)

    def evict(self, pod: Pod) -> Seat:
        """Remove a pod from its node, which exists. Undone by `put_back`, given what this returns."""
        name, replaced = self._places[pod.key], self._replaced.get(pod.key)
        seat = Seat(name, tuple(self.seats[self.row_of[name]]), replaced)
        self.remove_pod(pod.key)
        return seat

    def put_back(self, pod: Pod, seat: Seat) -> None:
        """Undo `evict`, once everything that came later on that node is undone: its pods stand in their old order again."""
        self._places[pod.key] = seat.node
        if seat.replaced:
            self._replaced[pod.key] = seat.replaced
        row = self.row_of[seat.node]
        seats = self.seats[row] | {pod.key: pod}
        self.seats[row] = {key: seats[key] for key in seat.order}
        self._count(row, pod, 1)

    def pod(self, key: str) -> Pod | None:
        """The pod of this key, waiting or on a node."""
        name = self._places.get(key)
        if name is None:
            return self.pending.get(key)
        row = self.row_of.get(name)
        return (self.strays[name] if row is None else self.seats[row]).get(key)

    def place_of(self, key: str) -> str | None:
        """Name of the node a pod sits on, existing or not."""
        return self._places.get(key)

    def _wait(self, pod: Pod) -> None:
        self.pending[pod.key] = pod
        if pod.nominated_node:
            self.nominated.setdefault(pod.nominated_node, {})[pod.key] = pod
            self.nominations += 1

    def _leave_queue(self, key: str) -> None:
        pod = self.pending.pop(key, None)
        if pod is not None and pod.nominated_node:
            self.nominations += 1
            self.nominated[pod.nominated_node].pop(key, None)
            if not self.nominated[pod.nominated_node]:
                del self.nominated[pod.nominated_node]

    def _put(self, pod: Pod, name: str) -> None:
        self._places[pod.key] = name
        row = self.row_of.get(name)
        if row is None:
            self.strays.setdefault(name, {})[pod.key] = pod
        else:
            self._seat(row, pod)

    def _seat(self, row: int, pod: Pod) -> None:
        self.seats[row][pod.key] = pod
        self._count(row, pod, 1)

    def _unseat(self, row: int, pod: Pod) -> None:
        del self.seats[row][pod.key]
        self._count(row, pod, -1)

    def _count(self, row: int, pod: Pod, sign: int) -> None:
        for storage in self._pod_columns:
            storage.count_pod(row, pod, sign)
        self.log.append(row)
