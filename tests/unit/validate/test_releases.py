import pytest

from stowplan.plugins import IN_TREE
from stowplan.policy.names import misspelt, project_of, replacement
from stowplan.policy.releases import plugins_of

KNOWN = [plugin.name for plugin in IN_TREE]


def test_the_newest_outlines_are_those_of_the_plugins():
    found = [(p.name, p.points, p.weight, p.default, p.args()) for p in plugins_of(37)]
    expected = [(p.name, p.points, p.weight, p.default, p.args() if type(p.args()).__name__ != "NoArgs" else None) for p in IN_TREE]
    assert found == expected


def test_older_releases_have_other_plugins():
    def names(minor):
        return {plugin.name for plugin in plugins_of(minor)}

    assert {"EBSLimits", "GCEPDLimits", "AzureDiskLimits", "CinderLimits"} <= names(30)
    assert "EBSLimits" not in names(31)
    assert "SchedulingGates" not in names(26)
    assert "DynamicResources" not in names(33)
    assert all(plugin.points for plugin in plugins_of(25))
    assert not any("preEnqueue" in plugin.points for plugin in plugins_of(25))


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
