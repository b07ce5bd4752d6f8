"""What would make a pod fit that fits nowhere: what to do about each rejection, node by node, the cheapest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from stowplan.objects import Node, NodeTerm, Pod
from stowplan.plugins.node_resources_fit import TOO_MANY_PODS, insufficient
from stowplan.policy.incomplete import claims
from stowplan.policy.nominated import Attempt
from stowplan.state import PODS, REQUESTED, Cluster, Store
from stowplan.text import counted, some

FIT, TAINTS, CORDONED = "NodeResourcesFit", "TaintToleration", "NodeUnschedulable"
CORDON = "node.kubernetes.io/unschedulable"
"""The taint that follows spec.unschedulable and goes with it."""
PLENTY = 10
"""Cores, or Gi, from which on amounts are written as such, with decimals."""
VICTIMS = 4
"""Pods that are named before the rest is counted."""
LOOKED_AT = 10_000
"""Most nodes that are compared in detail."""


@dataclass(frozen=True, slots=True)
class Unmet:
    """Nodes on which the pod would run if all of these needs were met."""

    needs: tuple[str, ...]
    """what to do, as imperatives; of nodes that are too small, why they are"""
    nodes: tuple[str, ...]
    """those among the nodes that were compared, by name"""
    possible: bool = True
    """false for nodes that are too small for the pod even when they are empty"""


@dataclass(frozen=True, slots=True)
class _Need:
    text: str
    cost: tuple[int, float]
    """how hard it is to meet, by kind and then by degree"""


def remedies(store: Store, found: Attempt) -> Iterator[str]:
    """What would let the pod fit that no single node is about: evictions, and kinds to add to an incomplete dump."""
    yield from (f"add {lack.kinds} to the dump: {lack.text}" for lack in claims(store, [found.pod]))
    preemption = found.preemption
    if preemption is not None and preemption.victims:
        victims = some([victim.key for victim in preemption.victims], VICTIMS)
        yield f"evict {victims} from {preemption.node}, as preemption does without being asked"


def cheapest(store: Store, found: Attempt) -> list[Unmet]:
    """For each combination of failing filters the nodes that are nearest to taking the pod, the cheapest combination first.

    Nodes with equal needs stand together, sorted by name; those that are too small come last, grouped by the resources that they
    lack. Empty for a pod that no node rejects, that was not tried or is refused as a whole.
    """
    best: dict[tuple[str, ...], tuple[tuple[int, tuple[int, float]], str, tuple[_Need, ...]]] = {}
    alike: dict[tuple[str, ...], list[str]] = {}
    small: dict[tuple[str, ...], list[Node]] = {}
    look = _Look(store, found)
    for row in _nearest(store, found):
        too_small = look.too_small(row)
        if too_small:
            small.setdefault(too_small, []).append(store.nodes[row])
            continue
        filters = tuple(look.failing(row))
        needs = tuple(look.needs(row, filters))
        name = store.nodes[row].name
        alike.setdefault(tuple(need.text for need in needs), []).append(name)
        rank = ((len(needs), max(need.cost for need in needs)), name, needs)
        if filters not in best or rank[:2] < best[filters][:2]:
            best[filters] = rank
    ordered = sorted(best.values(), key=lambda rank: rank[:2])
    texts = [tuple(need.text for need in needs) for _, _, needs in ordered]
    return [
        *(Unmet(needs, tuple(sorted(alike[needs]))) for needs in dict.fromkeys(texts)),
        *(_impossible(found.pod, lacking, small[lacking]) for lacking in sorted(small, key=lambda key: (len(key), key))),
    ]


def _impossible(pod: Pod, lacking: tuple[str, ...], nodes: list[Node]) -> Unmet:
    texts = []
    for name in lacking:
        largest = max(node.allocatable.get(name) for node in nodes)
        wanted, most = _alike(name, pod.spec.requests.get(name), largest)
        texts.append(f"{wanted} {name} requested, {f'{most} at most' if largest else 'none there'}")
    return Unmet(tuple(texts), tuple(sorted(node.name for node in nodes)), possible=False)


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

    def too_small(self, row: int) -> tuple[str, ...]:
        """Resources of which the node, even if it were empty, has less than the pod requests."""
        filtering = self._found.filtering
        assert filtering is not None
        if FIT not in filtering.rejected or not filtering.rejected[FIT][row]:
            return ()
        reasons = {reason for reason, mask in filtering.rejections[FIT].items() if mask[row]}
        capacity, requests = self._store.nodes[row].allocatable, self._found.pod.spec.requests
        return tuple(name for name, amount in requests.items() if insufficient(name) in reasons and amount > capacity.get(name))

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
            told = [reason.removeprefix("node(s) ") for reason in self._found.filtering.status(name, row).reasons]
            yield from found or [_Need(f"satisfy {name} ({reason})", (4, 0)) for reason in told]

    def _fit(self, node: Node, row: int) -> Iterator[_Need]:
        assert self._found.filtering is not None
        reasons = {reason for reason, mask in self._found.filtering.rejections[FIT].items() if mask[row]}
        if TOO_MANY_PODS in reasons:
            held, most = int(self._cluster[PODS]["pods"][row]), node.allocatable.get("pods")
            yield _Need(f"remove a pod (it runs {held} of at most {most})", (2, 0))
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
        yield _Need("uncordon the node", (2, 0))

    def _affinity(self, node: Node, _: int) -> Iterator[_Need]:
        spec = self._found.pod.spec
        for wanted in spec.node_selector or ():
            if not wanted.matches(node.labels):
                yield _Need(f"meet nodeSelector {wanted} (the node has {_value(node, wanted.key)})", (5, 0))
        if spec.required is not None and not spec.required.matches(node.name, node.labels) and spec.required.terms:
            closest = min((list(_mismatches(term, node)) for term in spec.required.terms), key=len)
            others = len(spec.required.terms) - 1
            more = f", or one of {counted(others, 'other term')}" if others else ""
            yield from (_Need(f"meet required node affinity {text}{more}", (5, 0)) for text in closest)

    def _ports(self, _: Node, row: int) -> Iterator[_Need]:
        for port in sorted(self._found.pod.spec.host_ports):
            for key, other in sorted(self._store.seats[row].items()):
                if any(port.conflicts(taken) for taken in other.spec.host_ports):
                    yield _Need(f"free host port {port.port}/{port.protocol}, which {key} takes", (3, 0))
                    break


def _short(name: str, amount: int, capacity: int, free: int) -> _Need:
    """More is requested than is free, on a node that is large enough."""
    lack, left, most = _alike(name, amount - free, free, capacity)
    now = f"{left} of {most} free" if free >= 0 else f"{left.removeprefix('-')} more than its {most} are requested there"
    what = f"shrink the {name} request by {lack} ({now})" if free > 0 else f"free {lack} of {name} ({now})"
    return _Need(what, (0, (amount - free) / capacity))


def _alike(name: str, *amounts: int) -> list[str]:
    """Amounts in scheduler units, the first rounded up and the others down, all written in the same unit."""
    large, small = ("", 1), ("", 1)
    if name == "cpu":
        large, small = ("", 1000), ("m", 1)
    elif name in ("memory", "ephemeral-storage") or name.startswith("hugepages-"):
        large, small = ("Gi", 1 << 30), ("Mi", 1 << 20)
    least = min((abs(n) for n in amounts if n), default=0)
    unit, size = large if least >= PLENTY * large[1] or not any(n % large[1] for n in amounts) else small
    digits = 1000 if size == large[1] else 1
    first, *others = amounts
    rounded = [-(-first * digits // size), *(n * digits // size for n in others)]
    return [f"{n / digits:.3f}".rstrip("0").rstrip(".") + unit for n in rounded]


def _mismatches(term: NodeTerm, node: Node) -> Iterator[str]:
    """Parts of a term that the node does not meet; a term that can match nothing says so."""
    if term.error is not None or term.empty:
        yield "what no node can have (the term is empty or broken)"
        return
    for wanted in term.expressions:
        if not wanted.matches(node.labels):
            yield f"{wanted} (the node has {_value(node, wanted.key)})"
    for wanted in term.fields:
        if not NodeTerm(fields=(wanted,)).matches(node.name, node.labels):
            yield str(wanted)


def _value(node: Node, key: str) -> str:
    value = node.labels.get(key)
    return "no such label" if value is None else repr(value)
