"""Everything that plugins can read of a store, by node name instead of row, so that two stores can be compared."""

# ruff: noqa: ARG001 - each kind of view takes of the arguments what it needs

from __future__ import annotations

from collections import Counter
from functools import singledispatch
from typing import Any

import numpy as np

from stowplan.objects import Pod
from stowplan.state import (
    ALLOCATABLE,
    NONZERO_REQUESTED,
    PODS,
    REQUESTED,
    Amount,
    Areas,
    Claims,
    Cluster,
    Coded,
    CSIVolumes,
    Derived,
    Feasible,
    Held,
    Images,
    Ledger,
    Matching,
    Store,
    Terms,
)
from stowplan.state.crowd import Crowd
from stowplan.state.devices.column import Devices
from stowplan.state.ranks import Ranks
from stowplan.state.seats import Seats


class Every:
    """A question that all terms meet."""

    def meets(self, _: Held) -> bool:
        return True


EVERY = Every()


def assert_equal(store: Store, other: Store) -> None:
    """Both stores show the same in every column that the first has made; names what differs."""
    got, wanted = snapshot(store, store), snapshot(other, store)
    wrong = {key: (got[key], wanted[key]) for key in got if got[key] != wanted[key]}
    if wrong:
        raise AssertionError("\n".join(f"{key}: {pair[0]}\n  instead of {pair[1]}" for key, pair in wrong.items()))


def snapshot(store: Store, like: Store) -> dict[Any, Any]:
    """Every column that `like` has made, over the nodes of `store`, and where pods are."""
    names = [node.name for node in store.nodes]
    assert store.row_of == {name: row for row, name in enumerate(names)}
    cluster = Cluster(store)
    columns = {
        (column.family, column.key): contents(cluster[column], names, cluster, Cluster(like)[column]) for column in like._columns
    }
    ranks = store.name_ranks().tolist()
    assert ranks == [sorted(names).index(name) for name in names]
    return {
        **columns,
        "nodes": {node.name: node for node in store.nodes},
        "seats": {name: set(store.seats[row]) for row, name in enumerate(names)},
        "strays": {name: set(pods) for name, pods in store.strays.items()},
        "pending": set(store.pending),
        "nominated": {name: set(pods) for name, pods in store.nominated.items()},
        "places": dict(store._places),
        "facts": {kind: dict(facts) for kind, facts in store.facts.items() if facts},
    }


@singledispatch
def contents(view: Any, names: list[str], cluster: Cluster, like: Any) -> Any:
    """What a view shows; `like` says what a store that was asked more has been asked."""
    raise NotImplementedError(f"say here how to compare {type(view)}")


@contents.register
def _(view: Crowd, names: list[str], cluster: Cluster, like: Crowd) -> Any:
    """The kinds are those of the pods; which numbers they have means nothing."""
    kinds = [view.kinds.code(view.pod(index)) for index in range(len(view.codes))]
    assert kinds == view.codes.tolist()
    bounds = zip(view.offsets[:-1].tolist(), view.offsets[1:].tolist(), strict=True)
    return {name: {view.pod(i).key for i in range(*ends)} for name, ends in zip(names, bounds, strict=True)}


@contents.register
def _(view: Coded, names: list[str], cluster: Cluster, like: Coded) -> Any:
    assert len(view.codes) == len(names)
    return {name: view.values[code] for name, code in zip(names, view.codes.tolist(), strict=True)}


@contents.register
def _(view: Amount, names: list[str], cluster: Cluster, like: Amount) -> Any:
    return {resource: dict(zip(names, view[resource].tolist(), strict=True)) for resource in like.names}


@contents.register
def _(view: Ledger, names: list[str], cluster: Cluster, like: Ledger) -> Any:
    """The integers, where it answers at all: that hangs on what has been."""
    for name in like.names:
        requested = cluster[PODS if name == "pods" else REQUESTED][name]
        counted = cluster[NONZERO_REQUESTED][name] if name in cluster[NONZERO_REQUESTED].names else requested
        have, free = cluster[ALLOCATABLE][name], view.free((name,))
        assert free is None or free[0].tolist() == (have - requested).tolist()
        for nonzero, used in ((False, requested), (True, counted)):
            found = view.entries((name,), nonzero=nonzero)
            if found is not None:
                assert (found.allocatable[0].tolist(), found.used[0].tolist()) == (have.tolist(), used.tolist())
                assert found.left[0].tolist() == (have - used).tolist()
    return sorted(like.names)


@contents.register
def _(view: Derived, names: list[str], cluster: Cluster, like: Derived) -> Any:
    found = view.kept().tolist()
    assert found == view.computed().tolist()
    return len(found) == len(names)


@contents.register
def _(view: Images, names: list[str], cluster: Cluster, like: Images) -> Any:
    known = sorted(like._storage.sizes.keys() | view._storage.sizes.keys())
    return {image: (view.size(image), view.spread(image), chosen(names, view.held(image))) for image in known}


@contents.register
def _(view: Matching, names: list[str], cluster: Cluster, like: Matching) -> Any:
    counters = like._table._counters
    return {test: counter_contents(view.count(test), names, cluster, counter) for test, counter in counters.items()}


@contents.register
def _(view: Terms, names: list[str], cluster: Cluster, like: Terms) -> Any:
    counters = like._table.counters
    found = {held: counter_contents(count, names, cluster, counters.get(held)) for held, count in view.meeting(EVERY)}
    # a term whose last carrier has gone is still counted, as zero
    return {held: counted for held, counted in found.items() if any(counted["here"].values())}


@contents.register
def _(view: CSIVolumes, names: list[str], cluster: Cluster, like: CSIVolumes) -> Any:
    table = like._table
    faulty = [chosen(names, mask) for mask in view.faults().values()]
    return {
        "known": chosen(names, view.known()),
        "limited": chosen(names, view.limited()),
        "installed": {driver: chosen(names, view.installed(driver)) for driver in table.installed},
        "limit": {driver: dict(zip(names, view.limit(driver).tolist(), strict=True)) for driver in table.limits},
        "count": {driver: dict(zip(names, view.count(driver).tolist(), strict=True)) for driver in table.counts},
        "holds": {volume: chosen(names, view.holds(volume)) for volume in table.holders},
        "faults": frozenset().union(*faulty),
    }


@contents.register
def _(view: Claims, names: list[str], cluster: Cluster, like: Claims) -> Any:
    return {key: view._table.users(key).number for key in list(like._table._users)}


@contents.register
def _(view: Devices, names: list[str], cluster: Cluster, like: Devices) -> Any:
    taken = view.taken
    return {
        "classes": dict(view.classes),
        "extended": dict(view.extended),
        "whole": dict(taken._whole),
        "shares": dict(taken._shares),
        "consumed": {device: dict(used) for device, used in taken._consumed.items()},
    }


@contents.register
def _(view: Seats, names: list[str], cluster: Cluster, like: Seats) -> Any:
    """The numbers themselves mean nothing; no two rows with pods may share one."""
    given = [code for code in view.codes.tolist() if code]
    assert len(given) == len(set(given))
    assert all(code for place, code in enumerate(view.codes.tolist()) if cluster.pods_at(place))


@contents.register
def _(view: Areas, names: list[str], cluster: Cluster, like: Areas) -> Any:
    found = {}
    for key in like._storage._tables:
        area = view.by(key)
        for place, name in enumerate(names):
            requested = {resource: amount for resource, amount in area.requested(place).items() if amount}
            found[key, name] = (area.value(place), area.nodes(place), area.allocatable(place), requested)
    return found


@contents.register
def _(view: Ranks, names: list[str], cluster: Cluster, like: Ranks) -> Any:
    looks: dict[int, Any] = {}
    found = {}
    for row, name in enumerate(names):
        pods = view.pods[row]
        assert view.counts[row] == len(pods)
        assert view.priorities[row, : len(pods)].tolist() == sorted((pod.spec.priority for pod in pods), reverse=True)
        for pod, code in zip(pods, view.codes[row].tolist(), strict=False):
            assert looks.setdefault(code, look(pod)) == look(pod)
        # equally important pods stand in any order
        found[name] = Counter((pod.key, pod.spec.priority) for pod in pods)
    return found


def look(pod: Pod) -> Any:
    """What columns see of a pod."""
    return pod.spec, pod.labels, pod.namespace, pod.requested, pod.nonzero, pod.terminating


def counter_contents(count: Any, names: list[str], cluster: Cluster, like: Any) -> Any:
    tables = list(like._tables) if like is not None else []
    here = dict(zip(names, count.here().tolist(), strict=True))
    return {"here": here, "by": {table: domain_contents(count.by(*table), names, cluster) for table in tables}}


def domain_contents(domains: Any, names: list[str], cluster: Cluster) -> Any:
    table, size = domains._table, cluster.size
    own = None if table.own is None else dict(zip(names, table.own.tolist(), strict=True))
    return {
        "known": chosen(names, domains.known),
        "takes part": chosen(names, table.takes_part),
        "number": domains.number,
        "any": domains.any,
        "anywhere": chosen(names, domains.anywhere),
        "at": domains.at.tolist() and dict(zip(names, domains.at.tolist(), strict=True)),
        "least": dict(zip(names, domains.least.tolist(), strict=True)),
        "distinct": domains.distinct(Feasible(np.ones(size, dtype=np.int64)), np.zeros(size, dtype=np.bool_)),
        "own": own,
    }


def chosen(names: list[str], mask: Any) -> frozenset[str]:
    return frozenset(name for name, member in zip(names, mask.tolist(), strict=True) if member)
