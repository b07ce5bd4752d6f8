"""The contract of a plugin: a value and a few pure functions.

A plugin says what it wants to know of a pod (`asks`), which columns it reads, which nodes it rejects and how it scores the
rest. Caching, requeueing, preemption re-checks and explanations are derived from that by `policy`; a plugin contains none
of it. Functions get the cluster as a view of *some* rows and answer for each row by itself: array lengths mean nothing,
and what they want to know of the feasible set comes from `feasible` alone. A plugin performs no effects.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stowplan.objects import OtherFact, Pod
from stowplan.state import Cluster, Column, Feasible, Mask, Numbers

MAX_SCORE = 100
"""Highest normalised score; the lowest is 0."""


class Code(enum.Enum):
    """Outcome by consequence; the values are kube-scheduler's names."""

    SUCCESS = "Success"
    ERROR = "Error"
    UNSCHEDULABLE = "Unschedulable"
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    SKIP = "Skip"


class Reason(NamedTuple):
    """Why a node is rejected. `final`: evicting pods cannot help. `error`: the whole attempt ends with an error."""

    text: str
    final: bool = False
    error: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """A pod-wide no, given before any node is looked at."""

    code: Code
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Area:
    """Some nodes by the label value that they share; `rows` are those of the store."""

    name: str
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Detail:
    """A fact behind rejections. With `areas` it is about nodes, and what other plugins say of them completes the sentence.

    `text` is a sentence or, with areas, the rest of one that begins with their names: "holds the minimum at 0". `kind` is
    what they are (zone). `remedies`: what would leave an area out, by the plugin that rejects all of it.
    """

    text: str
    kind: str = ""
    areas: tuple[Area, ...] = ()
    remedies: Mapping[str, str] = field(default_factory=dict, hash=False)


class ScoringError(Exception):
    """Scoring this pod fails for all nodes; the text is what kube-scheduler reports."""


Rejections = Mapping[Reason, Mask]
"""Rejected rows by reason, in the order in which reasons are listed."""


@dataclass(frozen=True, slots=True)
class NoArgs:
    """Args of a plugin that takes none."""


NO_ARGS = NoArgs()


Normalise = Callable[[Any, Numbers, Feasible], Numbers]
"""(ask, raw, feasible) -> scores in 0..100; rows that are not feasible may get anything."""


def more_is_better(_: object, raw: Numbers, feasible: Feasible) -> Numbers:
    """Scale to 0..100 by the highest raw score; all 0 stays 0 (helper.DefaultNormalizeScore)."""
    highest = feasible.highest(raw, initial=0)
    return raw if highest == 0 else raw * MAX_SCORE // highest


def fewer_is_better(_: object, raw: Numbers, feasible: Feasible) -> Numbers:
    """As more_is_better, reversed; all 0 gives 100 (helper.DefaultNormalizeScore with reverse)."""
    return MAX_SCORE - more_is_better(_, raw, feasible)


@dataclass(frozen=True, slots=True)
class Release:
    """Something that PostFilter gives up, as it stands, and what kube-scheduler says of that."""

    text: str
    fact: OtherFact


@dataclass(frozen=True, slots=True, eq=False)
class Plugin:
    """A named unit of policy. Functions that are absent mean that the plugin has nothing to say there.

    asks      (pod, args, cluster) -> what the pod wants of this plugin: frozen, hashable, all of the pod that matters, facts
              that belong to it (Services, claims) included. None: Skip at PreFilter and PreScore
    refuses   (ask, cluster) -> a Refusal of the pod as a whole
    narrows   (ask) -> names of the only candidate nodes; None: all
    rejects   (ask, cluster) -> rejected rows by reason. None: Skip at PreFilter
    final     (ask, cluster) -> rows whose rejection is final where that depends on the row
    scores    (ask, cluster, feasible) -> raw int64 score of each row. None: Skip at PreScore
    normalise raw scores to 0..100; absent: they are taken as they are
    details   (ask, cluster) -> facts behind the rejections of the view's rows, all of which the plugin rejects
    reserves  (ask, cluster, row) -> facts as binding the pod to that row of the store will make them (a claimed volume)
    releases  (ask, cluster) -> what PostFilter gives up for a pod that no node takes; the view is the rows it refused first
    gate      (pod, cluster) -> why the pod may not enter the queue
    order     (pod) -> sort key of the queue, smallest first
    """

    name: str
    points: frozenset[str]
    weight: int = 0
    default: bool = True
    args: type = NoArgs
    reads: tuple[Column[Any], ...] = ()
    asks: Callable[[Pod, Any, Cluster], Any] = lambda _pod, _args, _cluster: None
    refuses: Callable[[Any, Cluster], Refusal | None] | None = None
    narrows: Callable[[Any], frozenset[str] | None] | None = None
    rejects: Callable[[Any, Cluster], Rejections | None] | None = None
    final: Callable[[Any, Cluster], Mask] | None = None
    scores: Callable[[Any, Cluster, Feasible], Numbers | None] | None = None
    normalise: Normalise | None = None
    stateless: Mapping[str, str] = field(default_factory=dict)
    """error of a point (`filter`, `preScore`, `score`, `reserve`, `postFilter`) where the one whose state it reads has not run"""
    unaided: frozenset[Reason] = frozenset()
    """reasons that `filter` finds before it misses that state"""
    recalls: bool = False
    """scores and reserves what its own filter has found: nothing where the profile leaves that out; PreFilter prepares for all"""
    details: Callable[[Any, Cluster], Iterable[Detail]] | None = None
    reserves: Callable[[Any, Cluster, int], Iterable[OtherFact]] | None = None
    unit: int = 1
    """steps of a point in which it scores; more than 1 where scores have fractions"""
    personal: bool = False
    """asks depend on more of a pod than its spec, labels, namespace, owner and requests"""
    releases: Callable[[Any, Cluster], Release | None] | None = None
    gate: Callable[[Pod, Cluster], str | None] | None = None
    order: Callable[[Pod], Any] | None = None


FILTERS = frozenset({"preFilter", "filter"})
FILTERS_AND_SCORES = FILTERS | {"preScore", "score"}
