"""Old configurations whose values have the wrong types: migration leaves them where they are, for the decoder to report."""

import itertools
from copy import deepcopy

import pytest
import yaml

from stowplan.profile.migrate import migrate

GROUP = "kubescheduler.config.k8s.io"
VERSIONS = ("v1alpha1", "v1alpha2", "v1beta1", "v1beta2", "v1beta3")
WRONG = (5, "x", True, ["odd"], [5], [["odd"]], {"odd": 5}, 0, "", False)
PROFILES = (
    "plugins: WRONG",
    "plugins: {score: WRONG}",
    "plugins: {multiPoint: WRONG}",
    "plugins: {postFilter: WRONG}",
    "plugins: {multiPoint: {enabled: WRONG}}",
    "plugins: {postFilter: {disabled: WRONG}}",
    "plugins: {unreserve: WRONG}",
    "plugins: {score: {enabled: [{name: NodeResourcesMostAllocated, weight: WRONG}]}}",
    "pluginConfig: WRONG",
    "pluginConfig: [{name: NodeResourcesLeastAllocated, args: WRONG}]",
    "pluginConfig: [{name: NodeResourcesFit, args: WRONG}]",
    "pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: WRONG}}]",
    "pluginConfig: [{name: InterPodAffinity, args: WRONG}]",
)
TOP = {
    "disablePreemption": True,
    "hardPodAffinitySymmetricWeight": 5,
    "algorithmSource": {"provider": "ClusterAutoscalerProvider"},
}


def filled(value, wrong):
    if isinstance(value, dict):
        return {key: filled(inner, wrong) for key, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, wrong) for inner in value]
    return deepcopy(wrong) if value == "WRONG" else value


def holds(value, wanted):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (type(value) is type(wanted) and value == wanted) or any(holds(item, wanted) for item in inner)


def kept(wrong, data):
    """Whether a wrong value is still there; a mapping or list may have got more beside what it held."""
    return any(holds(data, part) for part in ("odd", 5)) if isinstance(wrong, dict | list) else holds(data, wrong)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("body", PROFILES)
def test_wrong_types_in_a_profile_stay(version, body):
    # the args of a plugin that became a strategy are taken apart, if they are a mapping
    wrongs = [wrong for wrong in WRONG if "LeastAllocated" not in body or not isinstance(wrong, dict)]
    for wrong, more in itertools.product(wrongs, ({}, TOP)):
        profile = filled(yaml.safe_load(body), wrong)
        data = profile if version == "v1alpha1" else {"profiles": [profile]}
        data = {"apiVersion": f"{GROUP}/{version}", "kind": "KubeSchedulerConfiguration", **data, **deepcopy(more)}
        migrate(data)
        assert data["apiVersion"] == f"{GROUP}/v1"
        assert kept(wrong, data["profiles"]), (wrong, data)


@pytest.mark.parametrize("wrong", [5, "x", True, {"odd": 5}, 0, "", False, {}])
@pytest.mark.parametrize("version", VERSIONS[1:])
def test_profiles_of_the_wrong_type_stay(version, wrong):
    data = {"apiVersion": f"{GROUP}/{version}", "disablePreemption": True, "profiles": deepcopy(wrong)}
    migrate(data)
    assert data["profiles"] == wrong
    assert type(data["profiles"]) is type(wrong)
