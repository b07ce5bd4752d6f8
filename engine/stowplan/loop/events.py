"""What the loop is told: changes of the cluster, answers to its own effects, and that time has come to try a pod.

Every event is a frozen value. Pods are named by key and uid, since a recreated pod has the key of the old one.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from stowplan.objects import Node, OtherFact, Pod
from stowplan.policy.compile import Policy
from stowplan.policy.offers import Claim


@dataclass(frozen=True, slots=True)
class PodChanged:
    """A pod is new or has changed. One that waits carries its whole object in `raw`."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class PodGone:
    """A pod is deleted, or has finished."""

    key: str
    uid: str


@dataclass(frozen=True, slots=True)
class NodeChanged:
    """A node is new or has changed."""

    node: Node


@dataclass(frozen=True, slots=True)
class NodeGone:
    """A node is deleted."""

    name: str


@dataclass(frozen=True, slots=True)
class FactChanged:
    """A fact of another kind is new or has changed."""

    fact: OtherFact


@dataclass(frozen=True, slots=True)
class FactGone:
    """A fact of another kind is deleted; `key` as the fact's own (a Workload's includes its kind)."""

    kind: type
    key: str


@dataclass(frozen=True, slots=True)
class Synced:
    """The first lists of all kinds are complete: the store is the cluster."""


@dataclass(frozen=True, slots=True)
class Leading:
    """Whether this process may act. Nothing is decided before the first event that says so."""

    leads: bool


@dataclass(frozen=True, slots=True)
class PolicyChanged:
    """From the next decision on this policy is in force. `generation` counts those that were; `digest` is of its text."""

    policy: Policy
    generation: int = 0
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Cycle:
    """Time to try the next pod, if one is ready, and to move those whose waiting is over."""


class Failure(enum.Enum):
    """Why a pod is not bound."""

    GONE = "gone"
    """deleted or recreated under its name: nobody waits for this pod any more"""
    ELSEWHERE = "elsewhere"
    """bound to another node by somebody else"""
    REFUSED = "refused"
    """the API server or an extender said no, or could not be reached in time: still unbound, worth another attempt"""
    UNKNOWN = "unknown"
    """no answer, and the pod cannot be looked up either: the watch will tell, so the assumption stays"""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What must be written before binding is written (`Prepare`)."""

    key: str
    uid: str


@dataclass(frozen=True, slots=True)
class Bound:
    """The pod is bound to the node that was asked for (`Bind`)."""

    key: str
    uid: str


@dataclass(frozen=True, slots=True)
class NotBound:
    """`Prepare` or `Bind` came to nothing."""

    key: str
    uid: str
    failure: Failure
    message: str


@dataclass(frozen=True, slots=True)
class Evicted:
    """All victims of a preemption are deleted or being deleted (`Evict`); a `message` says what failed."""

    key: str
    uid: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """What the extenders say about a pod that they were consulted about (`Consult`).

    `nodes`: names that passed all filters, None where none was asked; `scores`: sums to add to a node's total, weights applied;
    `refused` and `final`: messages by node; `error`: a failed call that may not be ignored.
    """

    key: str
    uid: str
    nodes: frozenset[str] | None = None
    scores: tuple[tuple[str, int], ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    final: tuple[tuple[str, str], ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class VictimAdvice:
    """What an extender makes of offers to evict pods (`ConsultVictims`); `error`: the call failed."""

    key: str
    uid: str
    claims: tuple[Claim, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Deallocated:
    """A claim is given up as far as it may be (`Deallocate`); a `message` says what failed."""

    key: str
    uid: str
    message: str = ""


Event = (
    PodChanged
    | PodGone
    | NodeChanged
    | NodeGone
    | FactChanged
    | FactGone
    | Synced
    | Leading
    | PolicyChanged
    | Cycle
    | Prepared
    | Bound
    | NotBound
    | Evicted
    | Advice
    | VictimAdvice
    | Deallocated
)
