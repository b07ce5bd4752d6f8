from dataclasses import dataclass

import pytest

from stowplan.plugins import IN_TREE
from stowplan.policy.expand import expand
from stowplan.profile import POINTS, read
from stowplan.text import Code, Source

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- plugins:\n"


@dataclass(frozen=True)
class Extra:
    """A plugin that is not in the default set."""

    name: str
    points: frozenset[str]
    weight: int = 0
    default: bool = False


EXTRAS = (
    Extra("MySort", frozenset({"queueSort"})),
    Extra("MyFilter", frozenset({"filter"})),
    Extra("MyScore", frozenset({"preScore", "score"})),
    Extra("MyPlaces", frozenset({"placementGenerate"})),
    Extra("MyOtherPlaces", frozenset({"placementGenerate"})),
)
DEFAULT_SCORES = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "VolumeBinding": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
FILTERS = [
    "NodeName", "NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit", "VolumeRestrictions",
    "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity", "DynamicResources",
    "NodeDeclaredFeatures",
]  # fmt: skip


def of(body):
    """Expand a profile; `body` is one line per extension point."""
    configuration, diagnostics = read(Source("f.yaml", HEAD + "".join(f"    {line}\n" for line in body.splitlines())))
    assert diagnostics == []
    return expand(configuration.profiles[0], (*IN_TREE, *EXTRAS))


def scores(body):
    effective, diagnostics = of(body)
    assert diagnostics == []
    return [(name, effective.weights[name]) for name in effective.points["score"]]


def points(body, point):
    effective, diagnostics = of(body)
    assert diagnostics == []
    return list(effective.points[point])


def errors(body):
    """Diagnostics as `line: message`, lines counted within `body`."""
    return [f"{d.span.line - 4}: {d.message}" for d in of(body)[1]]


def test_the_default_profile():
    profile = read(None)[0].profiles[0]
    effective, diagnostics = expand(profile, IN_TREE)
    assert diagnostics == []
    assert set(effective.points) == set(POINTS)
    assert list(effective.points["filter"]) == list(effective.points["preFilter"]) == FILTERS
    assert list(effective.points["score"]) == list(DEFAULT_SCORES)
    assert effective.weights == DEFAULT_SCORES
    assert effective.placement_weights == {"NodeResourcesFit": 1}
    assert effective.points["queueSort"] == ("PrioritySort",)
    assert effective.points["bind"] == ("DefaultBinder",)
    assert effective.points["postFilter"] == ("DynamicResources", "DefaultPreemption")
    assert effective.points["permit"] == effective.points["postBind"] == ()


def test_a_weight_at_multi_point_keeps_the_place():
    body = "multiPoint: {enabled: [{name: NodeAffinity, weight: 9}]}"
    assert scores(body) == list((DEFAULT_SCORES | {"NodeAffinity": 9}).items())


def test_a_weight_at_the_point_moves_to_the_front():
    rest = [(name, weight) for name, weight in DEFAULT_SCORES.items() if name != "ImageLocality"]
    assert scores("score: {enabled: [{name: ImageLocality, weight: 9}]}") == [("ImageLocality", 9), *rest]


def test_listing_without_a_weight_makes_it_one():
    assert dict(scores("score: {enabled: [{name: TaintToleration}]}"))["TaintToleration"] == 1
    assert dict(scores("multiPoint: {enabled: [{name: TaintToleration}]}"))["TaintToleration"] == 1
    both = "multiPoint: {enabled: [{name: TaintToleration, weight: 5}]}\nscore: {enabled: [{name: TaintToleration, weight: 7}]}"
    assert scores(both)[0] == ("TaintToleration", 7)


def test_disabling_at_one_point_leaves_the_others():
    body = "score: {disabled: [{name: PodTopologySpread}]}"
    assert "PodTopologySpread" not in dict(scores(body))
    assert all("PodTopologySpread" in points(body, point) for point in ("preScore", "preFilter", "filter"))


def test_a_star_closes_a_point_to_multi_point():
    body = "score: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit, weight: 5}]}"
    assert scores(body) == [("NodeResourcesFit", 5)]
    assert "ImageLocality" not in points(body, "preScore")
    assert "TaintToleration" in points(body, "preScore")


def test_disabling_and_enabling_at_a_point_moves_to_the_end():
    body = "score: {disabled: [{name: PodTopologySpread}], enabled: [{name: PodTopologySpread, weight: 500}]}"
    assert scores(body)[-1] == ("PodTopologySpread", 500)


def test_disabling_and_enabling_at_multi_point_moves_to_the_end():
    body = "multiPoint: {disabled: [{name: NodeName}], enabled: [{name: NodeName}]}"
    assert points(body, "filter") == [*FILTERS[1:], "NodeName"]


def test_a_profile_of_three():
    body = "multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: NodeResourcesFit}]}"
    effective, diagnostics = of(body)
    assert diagnostics == []
    assert {point: list(names) for point, names in effective.points.items() if names} == {
        "queueSort": ["PrioritySort"],
        "bind": ["DefaultBinder"],
        **{point: ["NodeResourcesFit"] for point in ("preFilter", "filter", "preScore", "score", "placementScore")},
    }


def test_default_plugins_go_first_and_others_last():
    body = "filter: {enabled: [{name: MyFilter}, {name: NodePorts}]}"
    assert points(body, "filter") == ["NodePorts", *(name for name in FILTERS if name != "NodePorts"), "MyFilter"]
    assert points("multiPoint: {enabled: [{name: MyFilter}]}", "filter") == [*FILTERS, "MyFilter"]


def test_another_queue_sort():
    body = "queueSort: {disabled: [{name: '*'}], enabled: [{name: MySort}]}"
    assert points(body, "queueSort") == ["MySort"]


def test_disabling_what_does_not_exist_is_fine():
    assert points("filter: {disabled: [{name: Nobody}]}", "filter") == FILTERS


def test_negative_weights_behind_others_are_accepted():
    assert dict(scores("multiPoint: {enabled: [{name: NodeResourcesFit, weight: -1}]}"))["NodeResourcesFit"] == -1


OVERFLOW = "score plugins: total score of Score plugins could overflow"
WRONG = [
    ("score: {enabled: [{name: NodeResourceFit}]}", ['1: ScorePlugin "NodeResourceFit" does not exist']),
    ("score: {enabled: [{name: '*'}]}", ['1: ScorePlugin "*" does not exist']),
    ("multiPoint: {enabled: [{name: Nobody}]}", ['1: PreFilterPlugin "Nobody" does not exist']),
    ("score: {enabled: [{name: NodeName}]}", ['1: plugin "NodeName" does not extend ScorePlugin plugin']),
    (
        "score:\n  enabled:\n  - name: NodeAffinity\n  - name: NodeAffinity",
        ['4: plugin "NodeAffinity" already registered as "ScorePlugin"'],
    ),
    (
        "multiPoint:\n  enabled:\n  - name: NodeAffinity\n  - name: NodeAffinity",
        ['3: plugin "NodeAffinity" already registered as "PreFilterPlugin"'],
    ),
    (
        "multiPoint: {disabled: [{name: '*'}]}",
        [
            '0: only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 0',
            '0: at least one bind plugin is needed for profile with scheduler name "default-scheduler"',
        ],
    ),
    (
        "queueSort: {enabled: [{name: MySort}]}",
        ['1: only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 2'],
    ),
    (
        "bind: {disabled: [{name: DefaultBinder}]}",
        ['1: at least one bind plugin is needed for profile with scheduler name "default-scheduler"'],
    ),
    (
        "placementGenerate: {enabled: [{name: MyPlaces}, {name: MyOtherPlaces}]}",
        ['1: at most one placement generate plugin is allowed for profile with scheduler name "default-scheduler"'],
    ),
    (
        "filter: {enabled: [{name: EBSLimits}]}",
        [
            (
                '1: Invalid value: "EBSLimits": was invalid in version "kubescheduler.config.k8s.io/v1" '
                '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'
            )
        ],
    ),
    ("multiPoint: {enabled: [{name: EBSLimits}]}", ['1: PreFilterPlugin "EBSLimits" does not exist']),
    # upstream's check for an overflow wraps once the sum is negative
    ("score: {enabled: [{name: NodeAffinity, weight: -1}]}", [f"0: {OVERFLOW}"]),
]


@pytest.mark.parametrize(("body", "expected"), WRONG)
def test_what_kube_scheduler_refuses_is_refused_with_its_words(body, expected):
    assert errors(body) == expected


def test_a_repeated_default_is_found_whether_or_not_it_runs_somewhere():
    closed = "".join(f"{point}: {{disabled: [{{name: NodeName}}]}}\n" for point in ("filter", "preFilter"))
    assert errors(f"{closed}multiPoint: {{enabled: [{{name: NodeName}}, {{name: NodeName}}]}}") == []


def test_a_misspelt_name_comes_with_a_suggestion():
    _, diagnostics = of("score: {enabled: [{name: NodeResourceFit}, {name: NodeResourceTopologyMatch}]}")
    assert [(d.code, d.notes) for d in diagnostics] == [
        (Code.NO_SUCH_PLUGIN, ('did you mean "NodeResourcesFit"?',)),
        (Code.NO_SUCH_PLUGIN, ("it belongs to scheduler-plugins (kubernetes-sigs)",)),
    ]


def test_the_remaining_plugins_are_expanded_all_the_same():
    effective, _ = of("score: {enabled: [{name: Nobody}, {name: NodeName}, {name: ImageLocality, weight: 4}]}")
    assert effective.points["score"][0] == "ImageLocality"
    assert effective.weights == DEFAULT_SCORES | {"ImageLocality": 4}
