import pytest

from stowplan.plugins import IN_TREE
from stowplan.policy.names import misspelt, project_of, replacement
from stowplan.policy.releases import gate_of, plugins_of
from stowplan.profile.versions import is_served

KNOWN = [plugin.name for plugin in IN_TREE]


def test_the_newest_outlines_are_those_of_the_plugins():
    found = [(p.name, p.points, p.weight, p.default, p.args()) for p in plugins_of(37) if not gate_of(p.name)]
    expected = [(p.name, p.points, p.weight, p.default, p.args() if type(p.args()).__name__ != "NoArgs" else None) for p in IN_TREE]
    assert found == expected


def defaults(minor):
    return [plugin.name for plugin in plugins_of(minor) if plugin.default]


def at(minor, point):
    return [plugin.name for plugin in plugins_of(minor) if plugin.default and point in plugin.points]


COMMON = (
    "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions {} VolumeBinding "
    "VolumeZone PodTopologySpread InterPodAffinity {} NodeResourcesBalancedAllocation ImageLocality DefaultBinder"
)
CLOUDS = "EBSLimits GCEPDLimits NodeVolumeLimits AzureDiskLimits"


@pytest.mark.parametrize(
    ("minors", "names"),
    [
        ((25, 26), "PrioritySort " + COMMON.format(CLOUDS, "DefaultPreemption")),
        ((27, 28, 29), "PrioritySort " + COMMON.format(CLOUDS, "DefaultPreemption") + " SchedulingGates"),
        ((30,), "SchedulingGates PrioritySort " + COMMON.format(CLOUDS, "DefaultPreemption")),
        ((31, 32, 33), "SchedulingGates PrioritySort " + COMMON.format("NodeVolumeLimits", "DefaultPreemption")),
        ((34, 35), "SchedulingGates PrioritySort " + COMMON.format("NodeVolumeLimits", "DynamicResources DefaultPreemption")),
        (
            (36,),
            "SchedulingGates PrioritySort "
            + COMMON.format("NodeVolumeLimits", "DynamicResources DefaultPreemption")
            + " NodeDeclaredFeatures",
        ),
    ],
)
def test_the_default_plugins_of_older_releases(minors, names):
    for minor in minors:
        assert defaults(minor) == names.split()


FIRST = ["NodeAffinity", "NodePorts", "NodeResourcesFit", "VolumeRestrictions"]
LAST = ["PodTopologySpread", "InterPodAffinity"]


def test_points_that_came_later():
    assert at(26, "preFilter") == [*FIRST, "VolumeBinding", *LAST]
    assert at(27, "preFilter") == [*FIRST, "VolumeBinding", "VolumeZone", *LAST]
    assert at(28, "preFilter") == [*FIRST, *CLOUDS.split(), "VolumeBinding", "VolumeZone", *LAST]
    assert at(26, "preScore") == ["TaintToleration", "NodeAffinity", *LAST]
    assert at(28, "preScore") == [
        *("TaintToleration", "NodeAffinity", "NodeResourcesFit"),
        *LAST,
        "NodeResourcesBalancedAllocation",
    ]
    assert at(30, "preScore")[2:4] == ["NodeResourcesFit", "VolumeBinding"]
    assert at(36, "preEnqueue") == ["SchedulingGates", "DynamicResources", "DefaultPreemption"]
    assert at(31, "preEnqueue") == ["SchedulingGates"]
    assert at(36, "placementScore") == ["NodeResourcesFit"]
    assert at(36, "podGroupPostFilter") == at(35, "placementScore") == at(25, "preEnqueue") == []
    assert "NodeName" not in at(36, "preFilter")
    assert "DynamicResources" not in at(34, "score")


def test_plugins_that_a_release_has_without_running_them():
    def off(minor):
        return {plugin.name for plugin in plugins_of(minor)} - set(defaults(minor))

    assert off(25) == {"CinderLimits"}
    assert off(26) == {"CinderLimits", "SchedulingGates", "DynamicResources"}
    assert off(31) == {"CinderLimits", "EBSLimits", "GCEPDLimits", "AzureDiskLimits", "DynamicResources"}
    assert off(32) == {"DynamicResources"}
    assert off(35) == {"NodeDeclaredFeatures", "GangScheduling"}
    assert off(37) == {"DeferredPodScheduling", "GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"}
    assert all(plugin.points for minor in range(25, 38) for plugin in plugins_of(minor))


@pytest.mark.parametrize(
    ("version", "first", "last"), [("v1beta1", 19, 22), ("v1beta2", 22, 27), ("v1beta3", 23, 28), ("v1", 25, 37)]
)
def test_versions_are_served(version, first, last):
    served = [minor for minor in range(18, 38) if is_served(f"kubescheduler.config.k8s.io/{version}", minor)]
    assert served == list(range(first, last + 1))


@pytest.mark.parametrize("minor", [24, 38])
def test_other_releases_are_not_known(minor):
    with pytest.raises(ValueError, match=r"1\.25 to 1\.37"):
        plugins_of(minor)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("NodeResourceFit", "NodeResourcesFit"),
        ("noderesourcesfit", "NodeResourcesFit"),
        ("ImageLocallity", "ImageLocality"),
        ("NodePort", "NodePorts"),
        ("TaintTolerations", "TaintToleration"),
        ("MyNodeAffinity", None),
        ("NodeResourcesFitV2", None),
        ("NodeResourcesFitPlus", None),
        ("NodeAffinity2", None),
        ("SelectorSpread", None),
        ("Coscheduling", None),
        ("OurScore", None),
        ("", None),
    ],
)
def test_only_what_can_hardly_be_a_plugin_of_its_own_is_misspelt(name, meant):
    assert misspelt(name, KNOWN) == meant


def test_projects_and_replacements():
    assert project_of("NodeResourceTopologyMatch") == "scheduler-plugins (kubernetes-sigs)"
    assert project_of("LoadAwareScheduling") == "Koordinator"
    assert project_of("NodeResourcesFit") is None
    assert "NodeVolumeLimits" in replacement("EBSLimits")
    assert replacement("NodeResourcesFit") is None
    assert not [name for name in KNOWN if project_of(name) or replacement(name)]
