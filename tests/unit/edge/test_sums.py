"""Amounts that do not fit into the columns they are added up in."""

from stowplan.edge.load import load_cluster
from stowplan.objects import read
from stowplan.state import REQUESTED, Cluster


def pod(metadata, **spec):
    return {"kind": "Pod", "metadata": metadata, "spec": {"priority": 0, **spec}}


def test_a_sum_of_requests_beyond_int64_wraps_as_in_go():
    node = {"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4", "memory": "8E"}}}
    running = [
        pod({"name": f"p{n}"}, nodeName="n1", containers=[{"name": "c", "resources": {"requests": {"memory": "4E"}}}])
        for n in range(3)
    ]
    total = 3 * 4 * 10**18 - 2**64
    assert Cluster(load_cluster([node, *running]))[REQUESTED]["memory"].tolist() == [total]
    store = load_cluster([node])
    assert Cluster(store)[REQUESTED]["memory"].tolist() == [0]
    for item in running:
        store.add(read(item))
    assert Cluster(store)[REQUESTED]["memory"].tolist() == [total]
    store.remove_pod("default/p1")
    assert Cluster(store)[REQUESTED]["memory"].tolist() == [8 * 10**18]
