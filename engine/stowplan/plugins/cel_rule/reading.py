"""What a rule reads of a node, from the paths its expressions touch: the columns, and what tells rows apart for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from stowplan.cel import Program
from stowplan.cel.touches import ELEMENT, LENGTH, Path, touches
from stowplan.cel.tree import Call, Select, walk
from stowplan.state import (
    ALLOCATABLE,
    AREAS,
    IMAGE_LISTS,
    LABELS,
    MATCHING,
    NAME,
    READY,
    REQUESTED,
    SEATS,
    TAINTS,
    UNSCHEDULABLE,
    Cluster,
    Coded,
    Column,
    Numbers,
    label,
    raw_field,
)

CREATED = ("metadata", "creationTimestamp")
FACTS: dict[str, Column[Any]] = {
    "taints": TAINTS,
    "unschedulable": UNSCHEDULABLE,
    "images": IMAGE_LISTS,
    "ready": READY,
    "name": NAME,
}
_AMOUNTS: dict[str, tuple[Column[Any], ...]] = {
    "allocatable": (ALLOCATABLE,),
    "requested": (REQUESTED,),
    "free": (ALLOCATABLE, REQUESTED),
}
OF_PODS = frozenset(("name", "namespace", "labels", "priority", "requests", "owner", "age"))
"""members of the pods on a node"""
_SHARED = frozenset(("labels", "namespace", "requests", "priority", "owner"))
"""members of a pod that follow from what pods of one spec, label set, namespace and owner share"""


@dataclass(slots=True)
class Reading:
    """What expressions read. Names of resources are None where all are read."""

    pod: set[Path] = field(default_factory=set)
    namespace: set[Path] = field(default_factory=set)
    variables: set[str] = field(default_factory=set)
    now: bool = False
    whole_node: bool = False
    coded: dict[Column[Any], None] = field(default_factory=dict)
    raw: set[Path] = field(default_factory=set)
    amounts: dict[Column[Any], set[str] | None] = field(default_factory=dict)
    pods: bool = False
    of_pods: set[str] = field(default_factory=set)
    """members of the pods on a node"""
    beyond: bool = False
    """whether it reads more than the row: domains or the cluster"""
    cluster: bool = False

    def add(self, program: Program) -> None:
        """Take in what an expression touches."""
        domains, whole = _uses_of_node(program)
        self.beyond |= domains
        self.whole_node |= whole
        for path in touches(program.checked):
            written = path[: next((place for place, step in enumerate(path) if step in (ELEMENT, LENGTH)), None)]
            head, rest = written[0], written[1:]
            if head == "pod":
                self.pod.add(rest)
                self.now |= rest[:1] == ("age",)
            elif head == "namespace":
                self.namespace.add(rest)
            elif head == "now":
                self.now = True
            elif head == "cluster":
                self.beyond = self.cluster = True
            elif head == "variables":
                self.variables |= set(rest[:1])
            elif head == "node":
                self._node(rest)
                self.of_pods |= _of_pods(path)

    def join(self, other: Reading) -> None:
        """Take in what another expression reads, variables aside."""
        self.pod |= other.pod
        self.namespace |= other.namespace
        self.raw |= other.raw
        self.coded |= other.coded
        for column, names in other.amounts.items():
            self._amount(column, names)
        self.now |= other.now
        self.pods |= other.pods
        self.of_pods |= other.of_pods
        self.beyond |= other.beyond
        self.cluster |= other.cluster
        self.whole_node |= other.whole_node

    def _node(self, path: Path) -> None:
        if not path:
            return
        head, rest = path[0], path[1:]
        if path[:2] == ("metadata", "labels"):
            head, rest = "labels", path[2:]
        elif path == ("metadata", "name"):
            head = "name"
        if head == "labels":
            self.coded[label(rest[0]) if rest else LABELS] = None
        elif head in FACTS:
            self.coded[FACTS[head]] = None
        elif head in _AMOUNTS:
            for column in _AMOUNTS[head]:
                self._amount(column, {rest[0]} if rest else None)
        elif head == "pods":
            self.pods = True
        elif head == "age":
            self.now = True
            self._raw(CREATED)
        else:
            self._raw(("metadata", *path) if head == "annotations" else path)

    def _raw(self, path: Path) -> None:
        self.raw.add(path)
        self.coded[raw_field(path)] = None

    def _amount(self, column: Column[Any], names: set[str] | None) -> None:
        known = self.amounts.get(column, set())
        self.amounts[column] = None if names is None or known is None else known | names

    @property
    def members(self) -> tuple[str, ...]:
        """What it reads of nodes, as expressions call it."""
        names = {member for member, column in FACTS.items() if column in self.coded}
        names |= {"labels"} if any(column.family == LABELS.family for column in self.coded) else set()
        names |= {column.family for column in self.amounts} | {".".join(path) for path in self.raw}
        names |= ({"pods"} if self.pods else set()) | ({"other nodes"} if self.beyond else set())
        return tuple(sorted(names))

    @property
    def timed(self) -> bool:
        """Whether it depends on the moment, be it through the age of a pod."""
        return self.now or "age" in self.of_pods

    @property
    def columns(self) -> tuple[Column[Any], ...]:
        """The columns behind all that."""
        beyond = (MATCHING, AREAS) if self.beyond else ()
        return (*self.coded, *self.amounts, *((SEATS,) if self.pods else ()), *beyond)

    @property
    def of_node(self) -> bool:
        """Whether it depends on the node at all."""
        return bool(self.coded or self.amounts or self.pods or self.beyond or self.whole_node)

    @property
    def moves(self) -> bool:
        """Whether pods that come and go can change it."""
        return self.pods or self.beyond or REQUESTED in self.amounts

    @property
    def personal(self) -> bool:
        """Whether pods that share spec, labels, namespace and owner may still differ."""
        return any(path[:1] == () or path[0] not in _SHARED for path in self.pod)

    def apart(self, cluster: Cluster) -> Iterator[Numbers]:
        """Arrays over the asked rows: where all are equal, the rows look the same."""
        for column in self.coded:
            coded: Coded[Any] = cluster[column]
            yield coded.codes
        for column, names in self.amounts.items():
            amounts = cluster[column]
            for name in amounts.names if names is None else names if len(names) == 1 else sorted(names):
                yield amounts.apart(name)
        if self.pods:
            yield cluster[SEATS].codes


def _of_pods(path: Path) -> frozenset[str]:
    """The members of the pods on a node that a path reads: all of them where a pod as a whole goes anywhere."""
    if path[:2] != ("node", "pods") or path[2:] == (LENGTH,):
        return frozenset()
    return frozenset(path[3:4]) or OF_PODS


def _uses_of_node(program: Program) -> tuple[bool, bool]:
    """Whether an expression asks for the domains of a node, and whether it uses the node as a whole."""
    domains = whole = False
    variables = program.checked.variables
    for parent in walk(program.checked.root):
        for child in parent.children():
            if variables.get(child) == "node" and not isinstance(parent, Select):
                domain = isinstance(parent, Call) and parent.function == "domain" and parent.target is child
                domains |= domain
                whole |= not domain
    return domains, whole or variables.get(program.checked.root) == "node"
