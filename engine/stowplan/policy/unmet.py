"""What is missing on a node that takes a pending pod for nothing: the needs behind each rejection, the cheapest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from stowplan.objects import Node, NodeTerm
from stowplan.plugins.node_resources_fit import TOO_MANY_PODS, insufficient
from stowplan.policy.flip import written
from stowplan.policy.nominated import Attempt
from stowplan.state import PODS, REQUESTED, Cluster, Store

FIT, TAINTS, CORDONED = "NodeResourcesFit", "TaintToleration", "NodeUnschedulable"
CORDON = "node.kubernetes.io/unschedulable"
"""The taint that follows spec.unschedulable and goes with it."""
LOOKED_AT = 10_000
"""Most nodes that are compared in detail."""


@dataclass(frozen=True, slots=True)
class Unmet:
    """Nodes on which the pod would run if these needs were met."""

    needs: tuple[str, ...]
    nodes: tuple[str, ...]
    """those among the nodes that were compared, by name"""


@dataclass(frozen=True, slots=True)
class _Need:
    text: str
    cost: tuple[int, float]
    """how hard it is to meet, by kind and then by degree"""


def cheapest(store: Store, found: Attempt) -> list[Unmet]:
    """For each combination of failing filters the nodes that are nearest to taking the pod, the cheapest combination first.

    Nodes with equal needs stand together, sorted by name. Empty for a pod that no node rejects, that was not tried or is
    refused as a whole.
    """
    best: dict[tuple[str, ...], tuple[tuple[int, tuple[int, float]], str, tuple[_Need, ...]]] = {}
    alike: dict[tuple[str, ...], list[str]] = {}
    look = _Look(store, found)
    for row in _nearest(store, found):
        filters = tuple(look.failing(row))
        needs = tuple(look.needs(row, filters))
        name = store.nodes[row].name
        alike.setdefault(tuple(need.text for need in needs), []).append(name)
        rank = ((len(needs), max(need.cost for need in needs)), name, needs)
        if filters not in best or rank[:2] < best[filters][:2]:
            best[filters] = rank
    ordered = sorted(best.values(), key=lambda rank: rank[:2])
    texts = [tuple(need.text for need in needs) for _, _, needs in ordered]
    return [Unmet(needs, tuple(sorted(alike[needs]))) for needs in dict.fromkeys(texts)]


def _nearest(store: Store, found: Attempt) -> list[int]:
    """Rejected rows that few filters reject; of a pod that is bound to certain nodes, only those."""
    if found.filtering is None or found.opening is None or found.opening.refusal is not None:
        return []
    names = found.opening.names
    rows = np.array([row for row in found.infeasible if names is None or store.nodes[row].name in names], dtype=np.intp)
    if not len(rows):
        return []
    count = np.zeros(len(store.nodes), dtype=np.int64)
    for mask in found.filtering.rejected.values():
        count += mask
    chosen: list[int] = rows[np.argsort(count[rows], kind="stable")][:LOOKED_AT].tolist()
    return chosen


class _Look:
    """A close look at single nodes."""

    def __init__(self, store: Store, found: Attempt) -> None:
        self._store, self._found = store, found
        self._cluster = Cluster(store)
        self._known: dict[str, Callable[[Node, int], Iterator[_Need]]] = {
            FIT: self._fit,
            TAINTS: self._taints,
            CORDONED: self._cordoned,
            "NodeAffinity": self._affinity,
            "NodePorts": self._ports,
        }

    def failing(self, row: int) -> Iterator[str]:
        """Filters that reject a row, in order."""
        filtering = self._found.filtering
        assert filtering is not None
        return (name for name in filtering.names if filtering.rejected[name][row])

    def needs(self, row: int, filters: tuple[str, ...]) -> Iterator[_Need]:
        """What would have to be different; at least one need."""
        assert self._found.filtering is not None
        if not filters:
            reasons = ", ".join(self._found.infeasible[row].reasons)
            yield _Need(f"make room beside the pods nominated to it ({reasons})", (3, 0))
        for name in filters:
            known = self._known.get(name)
            found = list(known(self._store.nodes[row], row)) if known else []
            if name == TAINTS and not found and CORDONED in filters:
                continue  # the taint comes and goes with the cordon
            yield from found or [_Need(f"{name}: {reason}", (4, 0)) for reason in self._found.filtering.status(name, row).reasons]

    def _fit(self, node: Node, row: int) -> Iterator[_Need]:
        assert self._found.filtering is not None
        reasons = {reason for reason, mask in self._found.filtering.rejections[FIT].items() if mask[row]}
        if TOO_MANY_PODS in reasons:
            held, most = int(self._cluster[PODS]["pods"][row]), node.allocatable.get("pods")
            yield _Need(f"has no room for another pod ({held} of {most})", (2, 0))
        for name, amount in self._found.pod.spec.requests.items():
            if insufficient(name) in reasons:
                capacity = node.allocatable.get(name)
                yield _short(name, amount, capacity, capacity - int(self._cluster[REQUESTED][name][row]))

    def _taints(self, node: Node, row: int) -> Iterator[_Need]:
        cordoned = CORDONED in self.failing(row)
        for taint in node.taints:
            if taint.hard and not (taint.key == CORDON and cordoned) and not self._found.pod.spec.tolerations.tolerate(taint):
                value = f"={taint.value}" if taint.value else ""
                yield _Need(f"tolerate taint {taint.key}{value}:{taint.effect}", (1, 0))

    def _cordoned(self, _: Node, __: int) -> Iterator[_Need]:
        yield _Need("is cordoned (spec.unschedulable)", (2, 0))

    def _affinity(self, node: Node, _: int) -> Iterator[_Need]:
        spec = self._found.pod.spec
        for wanted in spec.node_selector or ():
            if not wanted.matches(node.labels):
                yield _Need(f"nodeSelector wants {wanted}, the node has {_value(node, wanted.key)}", (5, 0))
        if spec.required is not None and not spec.required.matches(node.name, node.labels) and spec.required.terms:
            closest = min((list(_mismatches(term, node)) for term in spec.required.terms), key=len)
            others = len(spec.required.terms) - 1
            more = f" (or meet one of {others} other terms)" if others else ""
            yield from (_Need(f"required node affinity wants {text}{more}", (5, 0)) for text in closest)

    def _ports(self, _: Node, row: int) -> Iterator[_Need]:
        for port in sorted(self._found.pod.spec.host_ports):
            for key, other in sorted(self._store.seats[row].items()):
                if any(port.conflicts(taken) for taken in other.spec.host_ports):
                    yield _Need(f"host port {port.port}/{port.protocol} is taken by {key}", (3, 0))
                    break


def _short(name: str, amount: int, capacity: int, free: int) -> _Need:
    if capacity == 0:
        return _Need(f"has no {name}", (7, 0))
    if amount > capacity:
        text = f"is too small: {written(name, amount)} {name} requested, {written(name, capacity)} in all"
        return _Need(text, (6, amount / capacity))
    text = f"lacks {written(name, amount - free)} {name} ({written(name, free)} of {written(name, capacity)} free)"
    return _Need(text, (0, (amount - free) / capacity))


def _mismatches(term: NodeTerm, node: Node) -> Iterator[str]:
    """Parts of a term that the node does not meet; a term that can match nothing says so."""
    if term.error is not None or term.empty:
        yield "what no node can have (the term is empty or broken)"
        return
    for wanted in term.expressions:
        if not wanted.matches(node.labels):
            yield f"{wanted}, the node has {_value(node, wanted.key)}"
    for wanted in term.fields:
        if not NodeTerm(fields=(wanted,)).matches(node.name, node.labels):
            yield str(wanted)


def _value(node: Node, key: str) -> str:
    value = node.labels.get(key)
    return "no such label" if value is None else repr(value)
