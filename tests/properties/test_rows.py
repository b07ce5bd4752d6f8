"""Row = column: what a plugin says of a node does not depend on which other nodes it is asked about."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.clusters import ODD_FRAGMENTS, clusters, configurations
from stowplan import load_cluster, load_policy
from stowplan.plugins import IN_TREE
from stowplan.plugins.plugin import ScoringError
from stowplan.state import Cluster, Feasible


class Unasked(Feasible):
    """A feasible set that must not be looked at."""

    def __init__(self):
        pass

    @property
    def weights(self):
        raise LookupError

    @property
    def watch(self):
        raise LookupError


def rejected_names(plugin, ask, cluster):
    """(reason, row) of every rejection, None where the plugin skips."""
    found = plugin.rejects(ask, cluster) if plugin.rejects else {}
    if found is None:
        return None
    rows = cluster.asked.tolist()
    for mask in found.values():
        assert mask.shape == (cluster.size,)
        assert mask.dtype == np.bool_
    final = plugin.final(ask, cluster) if plugin.final else np.zeros(cluster.size, dtype=np.bool_)
    return {(reason, rows[place], bool(final[place])) for reason, mask in found.items() for place in mask.nonzero()[0].tolist()}


def check_filters(plugin, ask, whole, parts):
    expected = rejected_names(plugin, ask, whole)
    for rows in parts:
        got = rejected_names(plugin, ask, whole.rows(rows))
        wanted = None if expected is None else {found for found in expected if found[1] in set(rows.tolist())}
        assert got == wanted, (plugin.name, rows)


def raw(plugin, ask, cluster, feasible):
    try:
        return plugin.scores(ask, cluster, feasible)
    except ScoringError as error:
        return str(error)


def check_scores(plugin, ask, whole, parts):
    size = whole.size
    expected = raw(plugin, ask, whole, Feasible(np.ones(size, dtype=np.int64)))
    for rows in parts:
        # the same feasible set, with rows asked about twice
        mixed = np.concatenate([rows, np.arange(size)])
        weights = np.concatenate([np.zeros(len(rows), dtype=np.int64), np.ones(size, dtype=np.int64)])
        same(plugin, raw(plugin, ask, whole.rows(mixed), Feasible(weights)), expected, mixed)
        try:
            alone = raw(plugin, ask, whole.rows(rows), Unasked())
        except LookupError:
            continue  # the score is one of the feasible set as a whole
        same(plugin, alone, expected, rows)


def same(plugin, got, expected, rows):
    if expected is None or isinstance(expected, str):
        assert got is None if expected is None else got == expected, plugin.name
    else:
        assert got is not None, plugin.name
        assert got.dtype == np.int64
        assert got.tolist() == expected[rows].tolist(), (plugin.name, rows)


def check(data):
    store = load_cluster(data.draw(clusters(odd=ODD_FRAGMENTS)))
    policy = load_policy(data.draw(configurations()))
    args = next(iter(policy.profiles.values())).args
    whole, size = Cluster(store), len(store.nodes)
    some = np.array(data.draw(st.lists(st.integers(0, size - 1), max_size=size)), dtype=np.intp)
    parts = [np.array([row], dtype=np.intp) for row in range(size)] + [some, some[:0]]
    for pod in store.pending.values():
        for plugin in IN_TREE:
            ask = plugin.asks(pod, args.get(plugin.name, plugin.args()), whole)
            assert ask == plugin.asks(pod, args.get(plugin.name, plugin.args()), whole)
            if ask is None:
                continue
            hash(ask)
            check_filters(plugin, ask, whole, parts)
            if plugin.scores is not None:
                check_scores(plugin, ask, whole, parts)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_a_row_is_a_column_of_one(data):
    check(data)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(st.data())
def test_a_row_is_a_column_of_one_in_many_clusters(data):
    check(data)
