from datetime import timedelta

import pytest

from stowplan.objects import Labels
from stowplan.plugins.arguments import (
    CPU_AND_MEMORY,
    DefaultConstraint,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ResourceWeight,
    ScoringStrategy,
    ShapePoint,
    VolumeBindingArgs,
)
from stowplan.policy.compile import PolicyError, load
from stowplan.text import Source

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def of(name, written):
    return load(Source("f.yaml", f"{HEAD}profiles:\n- pluginConfig:\n  - name: {name}\n    args: {written}\n"))


def args(name, written):
    """The args of a plugin written as one line of YAML."""
    return of(name, written).profiles["default-scheduler"].args[name]


def args_errors(name, written):
    """Errors of args written as one line of YAML, as `path: message` with paths inside the args."""
    with pytest.raises(PolicyError) as raised:
        of(name, written)
    assert {d.span.line for d in raised.value.diagnostics} == {6}
    return [f"{d.path}: {d.message}".replace("profiles[0].pluginConfig[0].args.", "") for d in raised.value.diagnostics]


CPU = (ResourceWeight("cpu", 1),)
GOOD_ARGS = [
    ("NodeResourcesFit", "~", NodeResourcesFitArgs()),
    ("NodeResourcesFit", "{}", NodeResourcesFitArgs(scoring_strategy=ScoringStrategy("LeastAllocated", CPU_AND_MEMORY))),
    (
        "NodeResourcesFit",
        "{ignoredResources: [a.com/x], ignoredResourceGroups: [b.com], scoringStrategy: {type: MostAllocated}}",
        NodeResourcesFitArgs(("a.com/x",), ("b.com",), ScoringStrategy("MostAllocated", CPU_AND_MEMORY)),
    ),
    (
        "NodeResourcesFit",
        (
            "{scoringStrategy: {type: RequestedToCapacityRatio, resources: [{name: cpu, weight: 0}], "
            "requestedToCapacityRatio: {shape: [{utilization: 0}, {utilization: 100, score: 10}]}}}"
        ),
        NodeResourcesFitArgs(
            scoring_strategy=ScoringStrategy("RequestedToCapacityRatio", CPU, (ShapePoint(0, 0), ShapePoint(100, 10)))
        ),
    ),
    ("NodeResourcesBalancedAllocation", "{resources: []}", NodeResourcesBalancedAllocationArgs(CPU_AND_MEMORY)),
    ("NodeResourcesBalancedAllocation", "{resources: [{name: cpu}]}", NodeResourcesBalancedAllocationArgs(CPU)),
    ("InterPodAffinity", "{hardPodAffinityWeight: 0}", InterPodAffinityArgs(0, ignore_preferred_terms_of_existing_pods=False)),
    ("InterPodAffinity", "{ignorePreferredTermsOfExistingPods: true}", InterPodAffinityArgs(1, True)),
    ("PodTopologySpread", "{defaultingType: ''}", PodTopologySpreadArgs((), "System")),
    (
        "PodTopologySpread",
        "{defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}",
        PodTopologySpreadArgs((DefaultConstraint(1, "zone", "DoNotSchedule"),), "List"),
    ),
    ("VolumeBinding", "{bindTimeoutSeconds: 0, shape: []}", VolumeBindingArgs(0, (ShapePoint(0, 10), ShapePoint(100, 0)))),
    ("VolumeBinding", "{shape: [{utilization: 3, score: 4}]}", VolumeBindingArgs(600, (ShapePoint(3, 4),))),
    ("DefaultPreemption", "{minCandidateNodesPercentage: 0}", DefaultPreemptionArgs(0, 100)),
    ("DynamicResources", "{filterTimeout: 0s}", DynamicResourcesArgs(timedelta(), timedelta(seconds=600))),
    (
        "DynamicResources",
        "{filterTimeout: ~, bindingTimeout: 1m}",
        DynamicResourcesArgs(timedelta(seconds=10), timedelta(minutes=1)),
    ),
    ("NodeAffinity", "{addedAffinity: {}}", NodeAffinityArgs()),
    ("NodeAffinity", "{apiVersion: kubescheduler.config.k8s.io/v1, kind: NodeAffinityArgs}", NodeAffinityArgs()),
]


@pytest.mark.parametrize(("name", "written", "expected"), GOOD_ARGS)
def test_args_are_read_with_their_defaults(name, written, expected):
    assert args(name, written) == expected


ADDED = (
    "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: "
    "[{key: disk, operator: In, values: [ssd]}]}]}, preferredDuringSchedulingIgnoredDuringExecution: "
    "[{weight: 7, preference: {matchFields: [{key: metadata.name, operator: In, values: [one]}]}}]}}"
)


def test_added_affinity_is_compiled():
    added = args("NodeAffinity", ADDED)
    assert added.required.matches("any", Labels.of({"disk": "ssd"}))
    assert not added.required.matches("any", Labels.of({"disk": "hdd"}))
    (preferred,) = added.preferred
    assert preferred.weight == 7
    assert [preferred.term.matches(name, Labels.of({})) for name in ("one", "two")] == [True, False]
    assert hash(added) == hash(args("NodeAffinity", ADDED))


TERM = "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [%s]}]}}}"
TERM_PATH = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]"
UNSORTED = "[{utilization: 50, score: 11}, {utilization: 20}, {utilization: 10}, {utilization: 101}]"
BAD_ARGS = [
    (
        "InterPodAffinity",
        "{hardPodAffinityWeight: 101}",
        ["hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"],
    ),
    (
        "DefaultPreemption",
        "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}",
        [
            "minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute",
            "minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as minCandidateNodesPercentage",
        ],
    ),
    (
        "DefaultPreemption",
        "{minCandidateNodesPercentage: 101, minCandidateNodesAbsolute: -1}",
        [
            "minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]",
            "minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
        ],
    ),
    (
        "NodeResourcesBalancedAllocation",
        "{resources: [{name: cpu, weight: 3}, {name: cpu}]}",
        ["resources[0].weight: Invalid value: 3: must be 1", 'resources[1].name: Duplicate value: "cpu"'],
    ),
    (
        "NodeResourcesFit",
        "{scoringStrategy: {resources: [{name: cpu, weight: 101}]}}",
        [
            (
                'scoringStrategy.type: Unsupported value: "": supported values: '
                '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
            ),
            "scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range (0, 100]",
        ],
    ),
    (
        "NodeResourcesFit",
        "{scoringStrategy: {type: RequestedToCapacityRatio}}",
        [
            "scoringStrategy.requestedToCapacityRatio: Required value: must be specified when type is RequestedToCapacityRatio",
        ],
    ),
    (
        "NodeResourcesFit",
        "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {}}}",
        ["scoringStrategy.requestedToCapacityRatio.shape: Required value: at least one point must be specified"],
    ),
    (
        "NodeResourcesFit",
        "{scoringStrategy: {type: MostAllocated, requestedToCapacityRatio: {}}}",
        ["scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when type is not RequestedToCapacityRatio"],
    ),
    (
        "NodeResourcesFit",
        "{scoringStrategy: {type: MostAllocated, kind: x}}",
        [': unknown field "scoringStrategy.kind"'],
    ),
    (
        "VolumeBinding",
        f"{{bindTimeoutSeconds: -1, shape: {UNSORTED}}}",
        [
            "bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value",
            "shape[0].score: Invalid value: 11: not in valid range [0, 10]",
            "shape[1].utilization: Invalid value: 20: values must be sorted in increasing order",
            "shape[2].utilization: Invalid value: 10: values must be sorted in increasing order",
            "shape[3].utilization: Invalid value: 101: not in valid range [0, 100]",
        ],
    ),
    (
        "PodTopologySpread",
        "{defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}",
        ['defaultingType: Invalid value: "System": when .defaultConstraints are not empty'],
    ),
    (
        "PodTopologySpread",
        "{defaultingType: List, defaultConstraints: [{maxSkew: 0, topologyKey: '', whenUnsatisfiable: Maybe, labelSelector: {}}]}",
        [
            "defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
            "defaultConstraints[0].topologyKey: Required value: can not be empty",
            (
                'defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Maybe": '
                'supported values: "DoNotSchedule", "ScheduleAnyway"'
            ),
            "defaultConstraints[0].labelSelector: Forbidden: constraint must not define a selector, as they deduced for each pod",
        ],
    ),
    (
        "PodTopologySpread",
        "{defaultingType: List, defaultConstraints: [&c {maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}, *c]}",
        ['defaultConstraints[1]: Duplicate value: "{a, DoNotSchedule}"'],
    ),
    (
        "DynamicResources",
        "{filterTimeout: -1s, bindingTimeout: 999ms}",
        [
            'filterTimeout: Invalid value: "-1s": must be zero or positive',
            'bindingTimeout: Invalid value: "0.999s": must be at least 1 second',
        ],
    ),
    (
        "NodeAffinity",
        TERM % "{key: disk, operator: In}",
        [f"{TERM_PATH}.values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"],
    ),
    (
        "NodeAffinity",
        TERM % "{key: disk, operator: Gt, values: [x]}",
        [f"{TERM_PATH}.values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer"],
    ),
    ("NodeAffinity", "{addedAffinty: {}}", [': unknown field "addedAffinty"']),
    (
        "NodeAffinity",
        "{kind: InterPodAffinityArgs}",
        [
            (
                "kind: args for plugin NodeAffinity were not of type NodeAffinityArgs.kubescheduler.config.k8s.io, "
                "got InterPodAffinityArgs.kubescheduler.config.k8s.io"
            )
        ],
    ),
    (
        "NodeAffinity",
        "{apiVersion: kubescheduler.config.k8s.io/v1beta3}",
        ['apiVersion: no kind "NodeAffinityArgs" is registered for version "kubescheduler.config.k8s.io/v1beta3"'],
    ),
    ("VolumeBinding", "{shape: {}}", ["shape: expected a list, got a mapping"]),
]


@pytest.mark.parametrize(("name", "written", "expected"), BAD_ARGS)
def test_bad_args_are_refused_with_upstreams_words(name, written, expected):
    found = [
        error.replace('unknown field "profiles[0].pluginConfig[0].args.', 'unknown field "') for error in args_errors(name, written)
    ]
    assert sorted(found) == sorted(expected)


def test_an_operator_that_does_not_exist():
    (error,) = args_errors("NodeAffinity", TERM % "{key: disk, operator: Is, values: [x]}")
    assert error.startswith(f"{TERM_PATH}.operator: Unsupported value")
