"""Node selectors over rows: the column form of `NodeSelector.matches`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from stowplan.objects import NodeSelector, NodeTerm, Requirement
from stowplan.state.catalogue import NAME, label
from stowplan.state.cluster import Cluster
from stowplan.state.columns import Mask

NAME_FIELD = "metadata.name"


def meeting(requirements: Iterable[Requirement], cluster: Cluster) -> Mask:
    """Rows whose labels meet every requirement."""
    matching = np.ones(cluster.size, dtype=np.bool_)
    for requirement in requirements:
        matching &= cluster[label(requirement.key)].meets(requirement)
    return matching


def selected(selector: NodeSelector, cluster: Cluster) -> Mask:
    """Rows that match at least one term."""
    matching = np.zeros(cluster.size, dtype=np.bool_)
    for term in selector.terms:
        matching |= matching_term(term, cluster)
    return matching


def matching_term(term: NodeTerm, cluster: Cluster) -> Mask:
    """Rows that match a term; one that is empty or failed to parse matches nothing."""
    if term.error is not None or not (term.expressions or term.fields):
        return np.zeros(cluster.size, dtype=np.bool_)
    matching = meeting(term.expressions, cluster)
    for requirement in term.fields:
        if requirement.key == NAME_FIELD:
            matching &= cluster[NAME].meets(requirement)
        else:  # a node has no field but its name: any other reads as the empty string
            matching &= requirement.accepts("")
    return matching
