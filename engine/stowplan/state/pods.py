"""Columns with a row per scheduled pod: counters of pods that match, and of the affinity terms that pods carry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from stowplan.objects import Labels, Pod, PodTerm
from stowplan.state.columns import Storage
from stowplan.state.counters import Count, Counter

if TYPE_CHECKING:
    from stowplan.state.cluster import Cluster
    from stowplan.state.store import Store


class PodTest(Protocol):
    """A question about a pod's namespace, labels and state of deletion; hashable."""

    def __hash__(self) -> int: ...

    def holds(self, namespace: str, labels: Labels, *, terminating: bool) -> bool:
        """Whether a pod of this shape counts."""

    def supposed(self, namespace: str, labels: Labels) -> bool:
        """Whether a pod that is thought to come or go counts."""


class Shape(NamedTuple):
    """What counters see of a pod."""

    namespace: str
    labels: Labels
    terminating: bool


def shape_of(pod: Pod) -> Shape:
    """Shape of a pod."""
    return Shape(pod.namespace, pod.labels, pod.terminating)


class MatchCounter(Counter):
    """Pods for which a test holds."""

    def __init__(self, store: Store, test: PodTest) -> None:
        super().__init__(store)
        self.test = test

    def weight(self, pod: Pod) -> int:
        return int(self.test.supposed(pod.namespace, pod.labels))

    def holds(self, shape: Shape) -> bool:
        """Whether pods of the shape count."""
        return self.test.holds(shape.namespace, shape.labels, terminating=shape.terminating)


class PodTable(Storage["Matching"]):
    """Shape and row of every scheduled pod, and the counters over them."""

    pods_matter = True

    def __init__(self, store: Store) -> None:
        self._store = store
        self._codes: dict[Shape, int] = {}
        self._shapes: list[Shape] = []
        self._interested: list[list[MatchCounter]] = []
        """by shape: the counters its pods count in"""
        self._rows: dict[int, dict[int, int]] = {}
        """shape -> row -> number of pods"""
        self._counters: dict[PodTest, MatchCounter] = {}
        for row, pods in enumerate(store.seats):
            for pod in pods.values():
                self.count_pod(row, pod, 1)

    def grow(self, capacity: int) -> None:
        for counter in self._counters.values():
            counter.grow(capacity)

    def move(self, source: int, target: int) -> None:
        for rows in self._rows.values():
            if source in rows:
                rows[target] = rows.pop(source)
        for counter in self._counters.values():
            counter.move(source, target)

    def count_pod(self, row: int, pod: Pod, sign: int) -> None:
        code = self._code(shape_of(pod))
        rows = self._rows[code]
        rows[row] = rows.get(row, 0) + sign
        if not rows[row]:
            del rows[row]
        for counter in self._interested[code]:
            counter.add(row, sign)

    def _code(self, shape: Shape) -> int:
        code = self._codes.get(shape)
        if code is None:
            code = self._codes[shape] = len(self._shapes)
            self._shapes.append(shape)
            self._rows[code] = {}
            self._interested.append([counter for counter in self._counters.values() if counter.holds(shape)])
        return code

    def counter(self, test: PodTest) -> MatchCounter:
        """The counter of a test, made from the shapes on first use."""
        found = self._counters.get(test)
        if found is None:
            found = self._counters[test] = MatchCounter(self._store, test)
            for code, shape in enumerate(self._shapes):
                if found.holds(shape):
                    self._interested[code].append(found)
                    rows = self._rows[code]
                    found.counts[list(rows)] += np.fromiter(rows.values(), np.int64, len(rows))
        return found

    def view(self, cluster: Cluster) -> Matching:
        return Matching(self, cluster)


class Matching:
    """View of the counters of pods."""

    __slots__ = ("_cluster", "_table")

    def __init__(self, table: PodTable, cluster: Cluster) -> None:
        self._table, self._cluster = table, cluster

    def count(self, test: PodTest) -> Count:
        """How many pods pass the test, by row and by domain."""
        return Count(self._table.counter(test), self._cluster)


class Held(NamedTuple):
    """A term that scheduled pods carry: which of the four lists it is in, its weight there, and whose namespace it means."""

    kind: str
    """required | required-anti | preferred | preferred-anti"""
    weight: int
    term: PodTerm
    namespace: str


def held_terms(pod: Pod) -> Iterator[Held]:
    """All affinity terms of a pod, repeated as written."""
    spec = pod.spec
    for term in spec.affinity:
        yield Held("required", 0, term, pod.namespace)
    for term in spec.anti_affinity:
        yield Held("required-anti", 0, term, pod.namespace)
    for weight, term in spec.preferred_affinity:
        yield Held("preferred", weight, term, pod.namespace)
    for weight, term in spec.preferred_anti_affinity:
        yield Held("preferred-anti", weight, term, pod.namespace)


class Question(Protocol):
    """A question about terms; hashable."""

    def __hash__(self) -> int: ...

    def meets(self, held: Held) -> bool:
        """Whether the term is one of those asked for."""


class TermCounter(Counter):
    """Pods that carry one term."""

    def __init__(self, store: Store, held: Held) -> None:
        super().__init__(store)
        self.held = held

    def weight(self, pod: Pod) -> int:
        return sum(held == self.held for held in held_terms(pod))


class TermTable(Storage["Terms"]):
    """A counter for each distinct affinity term that scheduled pods carry."""

    pods_matter = True

    def __init__(self, store: Store) -> None:
        self._store = store
        self.version = 0
        """grows when a term is seen for the first time"""
        self.counters: dict[Held, TermCounter] = {}
        self._order: list[TermCounter] = []
        self._answers: dict[Question, tuple[int, list[TermCounter]]] = {}
        """by question: how many of the terms were looked at, and the counters of those that meet it"""
        for row, pods in enumerate(store.seats):
            for pod in pods.values():
                self.count_pod(row, pod, 1)

    def grow(self, capacity: int) -> None:
        for counter in self.counters.values():
            counter.grow(capacity)

    def move(self, source: int, target: int) -> None:
        for counter in self.counters.values():
            counter.move(source, target)

    def count_pod(self, row: int, pod: Pod, sign: int) -> None:
        for held in held_terms(pod):
            self.counter(held).add(row, sign)

    def counter(self, held: Held) -> TermCounter:
        """The counter of a term, new with the first pod that carries it."""
        found = self.counters.get(held)
        if found is None:
            found = self.counters[held] = TermCounter(self._store, held)
            self._order.append(found)
            self.version += 1
        return found

    def meeting(self, question: Question) -> list[TermCounter]:
        """Counters of the terms that meet a question; each term is looked at once per question."""
        seen, found = self._answers.get(question, (0, []))
        if seen < len(self._order):
            found += [counter for counter in self._order[seen:] if question.meets(counter.held)]
            self._answers[question] = (len(self._order), found)
        return found

    def view(self, cluster: Cluster) -> Terms:
        for pod in cluster.changes.kinds() if cluster.changes else ():
            for held in held_terms(pod):
                self.counter(held)
        return Terms(self, cluster)


class Terms:
    """View of the terms that scheduled (and supposed) pods carry."""

    __slots__ = ("_cluster", "_table")

    def __init__(self, table: TermTable, cluster: Cluster) -> None:
        self._table, self._cluster = table, cluster

    def meeting(self, question: Question) -> Iterator[tuple[Held, Count]]:
        """Every distinct term that meets a question, with the count of the pods that carry it."""
        if self._cluster.watch is not None:
            self._cluster.watch.depends(self._table)
        for counter in self._table.meeting(question):
            yield counter.held, Count(counter, self._cluster)
