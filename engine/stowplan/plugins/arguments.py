"""Args of the built-in plugins: frozen, hashable values with kube-scheduler's defaults and its validation.

Field names are Kubernetes' in snake case; annotations and defaults are all the decoder needs. `problems()` gives what
validation says, with paths inside the args and upstream's texts.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from stowplan.text import ZERO_MEANS_DEFAULT, Int32, Kind, Path, Problem, parse_path, unsupported, within

if TYPE_CHECKING:
    # imported where they are used: few files need them, and the room of objects takes longer to import than a file to check
    from stowplan.objects import wire
    from stowplan.objects.nodeselector import NodeSelector, PreferredTerm

Problems: TypeAlias = Iterator[Problem]

STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_PERCENT = 100
_HIGHEST_SHAPE_SCORE = 10
_ADDED: Path = ("addedAffinity",)
_REQUIRED, _PREFERRED = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))


class Args(Protocol):
    def problems(self) -> Problems: ...


@dataclass(frozen=True, slots=True)
class ResourceWeight:
    """A resource and how much it counts; a weight of 0 means 1."""

    name: str = ""
    weight: int = field(default=1, metadata=ZERO_MEANS_DEFAULT)


@dataclass(frozen=True, slots=True)
class ShapePoint:
    """A point of a broken-linear function: utilization 0 to 100, score 0 to 10."""

    utilization: Int32 = 0
    score: Int32 = 0


CPU_AND_MEMORY = (ResourceWeight("cpu", 1), ResourceWeight("memory", 1))


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    """How free or full a node should be. A strategy that is written must name its type."""

    type: str = ""
    resources: tuple[ResourceWeight, ...] = field(default=CPU_AND_MEMORY, metadata=ZERO_MEANS_DEFAULT)
    requested_to_capacity_ratio: tuple[ShapePoint, ...] | None = field(default=None, metadata=within("shape"))

    def problems(self) -> Problems:
        """Upstream: the second half of `ValidateNodeResourcesFitArgs`."""
        if self.type not in STRATEGIES:
            yield unsupported(("type",), self.type, STRATEGIES)
        for index, resource in enumerate(self.resources):
            if not 0 < resource.weight <= _PERCENT:
                detail = f"resource weight of {resource.name} not in valid range (0, 100]"
                yield _invalid(("resources", index, "weight"), resource.weight, detail)
        path: Path = ("requestedToCapacityRatio",)
        shape, by_shape = self.requested_to_capacity_ratio, self.type == "RequestedToCapacityRatio"
        if by_shape and shape is None:
            yield Problem(path, Kind.REQUIRED, "must be specified when type is RequestedToCapacityRatio")
        elif by_shape and shape is not None:
            for problem in _shape_problems(shape):
                yield problem.under(*path, "shape")
        elif shape is not None:
            remedy = ("remove it, or write type: RequestedToCapacityRatio",)
            yield Problem(path, Kind.FORBIDDEN, "must be nil when type is not RequestedToCapacityRatio", notes=remedy)


@dataclass(frozen=True, slots=True)
class NodeResourcesFitArgs:
    """Which resources need not fit, and how nodes are scored by their use."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy("LeastAllocated")

    def problems(self) -> Problems:
        """Upstream: `ValidateNodeResourcesFitArgs`."""
        for index, name in enumerate(self.ignored_resources):
            yield from _label_name_problems(("ignoredResources", index), name)
        for index, group in enumerate(self.ignored_resource_groups):
            path: Path = ("ignoredResourceGroups", index)
            if "/" in group:
                yield _invalid(path, group, "resource group name can't contain '/'")
            yield from _label_name_problems(path, group)
        for problem in self.scoring_strategy.problems():
            yield problem.under("scoringStrategy")


@dataclass(frozen=True, slots=True)
class NodeResourcesBalancedAllocationArgs:
    """The resources whose use should be in balance; they cannot be weighted."""

    resources: tuple[ResourceWeight, ...] = field(default=CPU_AND_MEMORY, metadata=ZERO_MEANS_DEFAULT)

    def problems(self) -> Problems:
        """Upstream: `ValidateNodeResourcesBalancedAllocationArgs`."""
        seen: set[str] = set()
        for index, resource in enumerate(self.resources):
            if resource.name in seen:
                yield Problem(("resources", index, "name"), Kind.DUPLICATE, value=resource.name)
            seen.add(resource.name)
            if resource.weight != 1:
                yield _invalid(("resources", index, "weight"), resource.weight, "must be 1")


@dataclass(frozen=True, slots=True)
class InterPodAffinityArgs:
    """What a required affinity of a running pod is worth to pods that it matches."""

    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def problems(self) -> Problems:
        """Upstream: `ValidateInterPodAffinityArgs`."""
        yield from _range(("hardPodAffinityWeight",), self.hard_pod_affinity_weight, _PERCENT)


@dataclass(frozen=True, slots=True)
class LabelExpression:
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A label selector as written; only the fact that there is one matters here."""

    match_labels: Mapping[str, str] | None = None
    match_expressions: tuple[LabelExpression, ...] = ()


@dataclass(frozen=True, slots=True)
class DefaultConstraint:
    """A topology spread constraint for pods that have none; its selector follows from the pod's Services and owner."""

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()

    def problems(self) -> Problems:
        """Upstream: the loop of `ValidatePodTopologySpreadArgs`."""
        if self.max_skew <= 0:
            yield _invalid(("maxSkew",), self.max_skew, "not in valid range (0, inf)")
        if not self.topology_key:
            yield Problem(("topologyKey",), Kind.REQUIRED, "can not be empty")
        else:
            yield from _label_name_problems(("topologyKey",), self.topology_key)
        if not self.when_unsatisfiable:
            yield Problem(("whenUnsatisfiable",), Kind.REQUIRED, "can not be empty")
        elif self.when_unsatisfiable not in ACTIONS:
            yield unsupported(("whenUnsatisfiable",), self.when_unsatisfiable, ACTIONS)
        if self.label_selector is not None:
            detail = "constraint must not define a selector, as they deduced for each pod"
            remedy = ("remove it: the selector follows from the Services, ReplicaSets and StatefulSets that a pod belongs to",)
            yield Problem(("labelSelector",), Kind.FORBIDDEN, detail, notes=remedy)


@dataclass(frozen=True, slots=True)
class PodTopologySpreadArgs:
    """Spread constraints of pods that have none: the built-in ones (`System`) or those listed (`List`)."""

    default_constraints: tuple[DefaultConstraint, ...] = ()
    defaulting_type: str = field(default="System", metadata=ZERO_MEANS_DEFAULT)

    def problems(self) -> Problems:
        """Upstream: `ValidatePodTopologySpreadArgs`."""
        if self.defaulting_type not in ("System", "List"):
            yield unsupported(("defaultingType",), self.defaulting_type, ("System", "List"))
        elif self.defaulting_type == "System" and self.default_constraints:
            detail, remedy = "when .defaultConstraints are not empty", ("write defaultingType: List",)
            yield Problem(("defaultingType",), Kind.INVALID, detail, self.defaulting_type, remedy, "List")
        seen: set[tuple[str, str]] = set()
        for index, constraint in enumerate(self.default_constraints):
            path: Path = ("defaultConstraints", index)
            for problem in constraint.problems():
                yield problem.under(*path)
            identity = constraint.topology_key, constraint.when_unsatisfiable
            if identity in seen:
                yield Problem(path, Kind.DUPLICATE, value=f"{{{identity[0]}, {identity[1]}}}")
            seen.add(identity)


@dataclass(frozen=True, slots=True)
class VolumeBindingArgs:
    """How long binding of volumes may take (seconds), and how nodes are scored by the storage used there (percent)."""

    bind_timeout_seconds: int = 600
    shape: tuple[ShapePoint, ...] = field(default=(ShapePoint(0, 10), ShapePoint(100, 0)), metadata=ZERO_MEANS_DEFAULT)

    def problems(self) -> Problems:
        """Upstream: `ValidateVolumeBindingArgs`."""
        if self.bind_timeout_seconds < 0:
            detail = "invalid BindTimeoutSeconds, should not be a negative value"
            yield _invalid(("bindTimeoutSeconds",), self.bind_timeout_seconds, detail)
        for problem in _shape_problems(self.shape):
            yield problem.under("shape")


@dataclass(frozen=True, slots=True)
class DefaultPreemptionArgs:
    """How many nodes a search for victims must consider at least: the larger of a share and a number."""

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100

    def problems(self) -> Problems:
        """Upstream: `ValidateDefaultPreemptionArgs`."""
        share, number = "minCandidateNodesPercentage", "minCandidateNodesAbsolute"
        yield from _range((share,), self.min_candidate_nodes_percentage, _PERCENT)
        if self.min_candidate_nodes_absolute < 0:
            yield _invalid((number,), self.min_candidate_nodes_absolute, "not in valid range [0, inf)")
        if self.min_candidate_nodes_percentage == self.min_candidate_nodes_absolute == 0:
            yield _invalid((share,), 0, f"cannot be zero at the same time as {number}")
            yield _invalid((number,), 0, f"cannot be zero at the same time as {share}")


@dataclass(frozen=True, slots=True)
class DynamicResourcesArgs:
    """How long the search for devices may take on one node (0: any time), and how long binding them may take."""

    filter_timeout: timedelta = timedelta(seconds=10)
    binding_timeout: timedelta = timedelta(seconds=600)

    def problems(self) -> Problems:
        """Upstream: `ValidateDynamicResourcesArgs`, its feature gates on."""
        if self.filter_timeout < timedelta():
            yield _invalid(("filterTimeout",), _seconds(self.filter_timeout), "must be zero or positive")
        if self.binding_timeout < timedelta(seconds=1):
            yield _invalid(("bindingTimeout",), _seconds(self.binding_timeout), "must be at least 1 second")


@dataclass(frozen=True, slots=True)
class NodeAffinityArgs:
    """Node affinity that is added to every pod; None where nothing is added."""

    required: NodeSelector | None = None
    preferred: tuple[PreferredTerm, ...] | None = None

    def problems(self) -> Problems:
        """Upstream: `ValidateNodeAffinityArgs`."""
        for index, term in enumerate(self.required.terms if self.required else ()):
            yield from _term_problems((*_ADDED, _REQUIRED, "nodeSelectorTerms", index), term.error)
        for index, preferred in enumerate(self.preferred or ()):
            yield from _term_problems((*_ADDED, _PREFERRED, index, "preference"), preferred.term.error)


# node affinity as it is written; `WrittenNodeAffinityArgs.args` makes of it what is evaluated
@dataclass(frozen=True, slots=True)
class WrittenTerm:
    match_expressions: tuple[LabelExpression, ...] = ()
    match_fields: tuple[LabelExpression, ...] = ()


@dataclass(frozen=True, slots=True)
class WrittenPreference:
    weight: Int32 = 0
    preference: WrittenTerm = WrittenTerm()


@dataclass(frozen=True, slots=True)
class WrittenSelector:
    node_selector_terms: tuple[WrittenTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class WrittenAffinity:
    required_during_scheduling_ignored_during_execution: WrittenSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[WrittenPreference, ...] = ()


@dataclass(frozen=True, slots=True)
class WrittenNodeAffinityArgs:
    added_affinity: WrittenAffinity | None = None

    def args(self) -> tuple[NodeAffinityArgs, list[Problem]]:
        """The args with their selectors compiled, and the operators that do not exist, in whose place others stand."""
        if self.added_affinity is None:
            return NodeAffinityArgs(), []
        from stowplan.objects import wire  # noqa: PLC0415
        from stowplan.objects.nodeselector import FIELD_OPERATORS, OPERATORS, node_selector, preferred_terms  # noqa: PLC0415

        found: list[Problem] = []

        def known(path: Path, entries: tuple[LabelExpression, ...], operators: tuple[str, ...]) -> Iterator[wire.Expression]:
            for index, entry in enumerate(entries):
                if entry.operator in operators:
                    yield wire.Expression(entry.key, entry.operator, entry.values)
                    continue
                found.append(unsupported((*path, index, "operator"), entry.operator, operators))
                yield wire.Expression(entry.key, "In", ("any",))

        def term(written: WrittenTerm, *path: str | int) -> wire.NodeTerm:
            expressions = known((*_ADDED, *path, "matchExpressions"), written.match_expressions, OPERATORS)
            return wire.NodeTerm(
                tuple(expressions), tuple(known((*_ADDED, *path, "matchFields"), written.match_fields, FIELD_OPERATORS))
            )

        required = self.added_affinity.required_during_scheduling_ignored_during_execution
        selector = required and wire.NodeSelector(
            tuple(term(entry, _REQUIRED, "nodeSelectorTerms", index) for index, entry in enumerate(required.node_selector_terms))
        )
        preferred = tuple(
            # upstream (`NewPreferredSchedulingTerms`) never looks at a term without weight
            wire.PreferredTerm(entry.weight, term(entry.preference, _PREFERRED, index, "preference") if entry.weight else None)
            for index, entry in enumerate(self.added_affinity.preferred_during_scheduling_ignored_during_execution)
        )
        args = NodeAffinityArgs(node_selector(selector, "") if selector else None, preferred_terms(preferred, "") or None)
        return args, found


ARGS: Mapping[str, type[Args]] = {
    "DefaultPreemption": DefaultPreemptionArgs,
    "DynamicResources": DynamicResourcesArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "NodeResourcesFit": NodeResourcesFitArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "VolumeBinding": VolumeBindingArgs,
}
"""The args of the plugins that take any, by plugin name."""


def written_form(args: type[Args]) -> type[Any]:
    """The dataclass that args are decoded into."""
    return WrittenNodeAffinityArgs if args is NodeAffinityArgs else args


def finish(written: Any) -> tuple[Args, list[Problem]]:
    """The args of a decoded written form, and what is wrong with them."""
    if not isinstance(written, WrittenNodeAffinityArgs):
        return written, list(written.problems())
    args, found = written.args()
    return args, found + list(args.problems())


def _invalid(path: Path, value: Any, detail: str) -> Problem:
    return Problem(path, Kind.INVALID, detail, value)


def _range(path: Path, value: int, highest: int) -> Problems:
    if not 0 <= value <= highest:
        yield _invalid(path, value, f"not in valid range [0, {highest}]")


def _label_name_problems(path: Path, name: str) -> Problems:
    from stowplan.objects.qualified import key_faults  # noqa: PLC0415

    for fault in key_faults(name):
        yield _invalid(path, name, fault)


def _shape_problems(shape: tuple[ShapePoint, ...]) -> Problems:
    """Upstream: `validateFunctionShape`, which tells only the first point out of order."""
    if not shape:
        yield Problem((), Kind.REQUIRED, "at least one point must be specified")
    for index, (left, right) in enumerate(itertools.pairwise(shape), 1):
        if left.utilization >= right.utilization:
            yield _invalid((index, "utilization"), right.utilization, "values must be sorted in increasing order")
    for index, point in enumerate(shape):
        yield from _range((index, "utilization"), point.utilization, _PERCENT)
        yield from _range((index, "score"), point.score, _HIGHEST_SHAPE_SCORE)


def _term_problems(path: Path, error: str | None) -> Problems:
    """The faults of a node selector term, one a line: `.matchExpressions[0].key: Invalid value: "": ...`."""
    for fault in error.split("\n") if error else ():
        place, _, rest = fault.partition(": Invalid value: ")
        value, end = json.JSONDecoder().raw_decode(rest)
        # the last part of `values[0][key]` is a label key, which is no place in the text
        inner = parse_path(re.sub(r"(?<=\])\[[^\]]*\]$", "", place))
        yield _invalid((*path, *inner), value, rest[end:].removeprefix(": "))


def _seconds(duration: timedelta) -> str:
    return f"{duration.total_seconds():g}s"
