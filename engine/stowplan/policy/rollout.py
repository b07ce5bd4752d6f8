"""A profile with two versions: which of its pods are given to the candidate, and on which nodes that places them.

A pod goes by its workload (`Pod.workload`), so that a Deployment, whose ReplicaSets come and go, is not split: the workload has
a place between 0 and 100, and the candidate gets those below `percent`. Raising it only adds workloads. Nothing that changes by
itself while a pod waits decides, so a pod has the same version from its first attempt to its binding.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from stowplan.objects import Namespace, ObjectError, Pod, Requirement, label_selector
from stowplan.plugins.arguments import LabelSelector
from stowplan.plugins.cel_rule.compiled import Expressions
from stowplan.plugins.plugin import FILTERS, Plugin, Reason, Rejections
from stowplan.policy.rules import compile_match
from stowplan.profile import Origin, Profile, Table, decode, plain
from stowplan.profile import Rollout as Written
from stowplan.profile.model import candidate_name
from stowplan.profile.yaml_tree import at
from stowplan.state import LABELS, Cluster, Store, meeting
from stowplan.text import Code, Diagnostic, Severity, parse_path

NODES = "stowplan.io/Rollout"
"""Name of the plugin that keeps the candidate to some nodes."""
OUTSIDE = Reason("node(s) are not part of the rollout", final=True)
EVERYWHERE = "DaemonSet"
"""Kind of the workloads that belong on every node: where the candidate is kept to some nodes, it does not get them."""
_WITH_VALUES, _WITHOUT_VALUES = ("In", "NotIn"), ("Exists", "DoesNotExist")
_STEPS = 1 << 64


@dataclass(frozen=True, slots=True, eq=False)
class Rollout:
    """Which pods are given to the candidate of a profile.

    stable, candidate  names of the two in `Policy.profiles`
    percent            share of the workloads
    nodes              what labels of the only nodes for the candidate meet; None: any node will do
    texts              both versions as they were written, as plain data; equal ones decide alike
    """

    stable: str
    candidate: str
    percent: float
    match: Expressions | None = None
    nodes: tuple[Requirement, ...] | None = None
    texts: tuple[Any, Any] = (None, None)
    _known: WeakKeyDictionary[Pod, tuple[Namespace | None, bool]] = field(default_factory=WeakKeyDictionary, init=False, repr=False)
    """answers, which are asked for several times in an attempt"""

    def takes(self, pod: Pod, store: Store) -> bool:
        """Whether a pod of the profile is given to the candidate. One for which `match` has no value is not."""
        namespace = store.facts.get(Namespace, {}).get(pod.namespace)
        known = self._known.get(pod)
        if known is None or known[0] is not namespace:
            known = self._known[pod] = namespace, self._takes(pod, store)
        return known[1]

    def _takes(self, pod: Pod, store: Store) -> bool:
        if self.nodes is not None and pod.owner is not None and pod.owner.kind == EVERYWHERE:
            return False
        if place_of(self.stable, pod.workload) >= self.percent:
            return False
        if self.match is None:
            return True
        side = self.match.view(pod, Cluster(store))
        return self.match.value.evaluate(side.bindings) is True

    def covers(self, labels: Mapping[str, str]) -> bool:
        """Whether the candidate may place pods on a node with these labels."""
        return all(requirement.matches(labels) for requirement in self.nodes or ())

    @property
    def personal(self) -> bool:
        """Whether it goes by more of a pod than a running one keeps."""
        return self.match is not None and self.match.reading.personal


def place_of(profile: str, workload: str) -> float:
    """The place of a workload, from 0 up to but not including 100: the same in every process, another one for every profile."""
    digest = hashlib.blake2b(f"{profile}\0{workload}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") * 100 / _STEPS


@dataclass(frozen=True, slots=True)
class Compiled:
    """What became of a rollout as written; if some diagnostic is an error, it is for messages only."""

    rollout: Rollout
    nodes: Plugin | None
    diagnostics: tuple[Diagnostic, ...]


def compile_rollout(written: Written, stable: Profile | None) -> Compiled:
    """The rollout of a profile, and the filter that keeps its candidate to some nodes."""
    match, found = (None, ()) if written.match is None else compile_match(written.match, written.origin)
    requirements, wrong = _nodes(written)
    nodes = None if requirements is None else nodes_filter(requirements)
    percent = 100.0 if written.percent is None else written.percent
    texts = _text(stable), _text(written.candidate)
    rollout = Rollout(written.profile, candidate_name(written.profile), percent, match, requirements, texts)
    return Compiled(rollout, nodes, (*found, *wrong))


def _text(profile: Profile | None) -> Any:
    """A profile as it was written, under whatever name, as plain data."""
    origin = None if profile is None else profile.origin
    tree = None if origin is None else at(origin.tree, origin.path)
    return plain(tree.without("schedulerName")) if isinstance(tree, Table) else None


def nodes_filter(requirements: tuple[Requirement, ...]) -> Plugin:
    """A filter that refuses nodes whose labels do not meet all requirements."""
    return Plugin(NODES, FILTERS, default=False, reads=(LABELS,), asks=lambda *_: requirements, rejects=_rejects)


def _rejects(requirements: tuple[Requirement, ...], cluster: Cluster) -> Rejections:
    return {OUTSIDE: np.logical_not(meeting(requirements, cluster))}


def _nodes(written: Written) -> tuple[tuple[Requirement, ...] | None, list[Diagnostic]]:
    """What the labels of nodes must meet; None where every node will do."""
    if written.nodes is None:
        return None, []
    origin = _under(written, "nodes")
    selector, found = decode(LabelSelector, origin, written.nodes)
    if found:
        return (), found
    for path, detail in _faults(selector):
        found.append(origin.under(*path).diagnostic(Code.INVALID, f"Invalid value: {detail}"))
    try:
        requirements = label_selector(plain(written.nodes)).requirements
    except ObjectError as error:
        return (), [*found, origin.under(*parse_path(error.path)).diagnostic(Code.INVALID, f"Invalid value: {error.message}")]
    if not requirements:
        message = "an empty selector takes every node: the candidate is not kept to any"
        return None, [*found, origin.diagnostic(Code.NO_EFFECT, message, Severity.WARNING)]
    return requirements, found


def _faults(selector: LabelSelector) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """What `ValidateLabelSelectorRequirement` says of values."""
    for index, each in enumerate(selector.match_expressions):
        if each.operator in _WITH_VALUES and not each.values:
            yield ("matchExpressions", index, "values"), "must be specified when `operator` is 'In' or 'NotIn'"
        elif each.operator in _WITHOUT_VALUES and each.values:
            yield ("matchExpressions", index, "values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"


def _under(written: Written, name: str) -> Origin:
    assert written.nodes is not None
    return written.origin.under(name) if written.origin else Origin(written.nodes)
