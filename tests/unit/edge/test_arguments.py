"""Odd arguments of the Python API give one clear error of its own kind."""

import pytest

import stowplan


def endless():
    found = {"kind": "List", "items": []}
    found["items"].append(found)
    return found


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (endless(), "holds itself"),
        ({"kind": "PodList", "items": 5}, "items is no list"),
        ([b"{"], "no JSON"),
        ([5], "not 5"),
    ],
)
def test_odd_clusters(source, text):
    with pytest.raises(stowplan.ClusterError, match=text):
        stowplan.load_cluster(source)


@pytest.mark.parametrize("source", [5, [], True, b"x"])
def test_odd_policies(source):
    with pytest.raises(stowplan.PolicyError, match="a policy is a path, a dict or None"):
        stowplan.load_policy(source)
