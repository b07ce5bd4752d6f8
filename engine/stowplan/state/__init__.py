"""The cluster as self-maintaining columns."""

from stowplan.state.catalogue import (
    ALLOCATABLE,
    FEATURES,
    HOST_PORTS,
    IMAGES,
    LABELS,
    MATCHING,
    NAME,
    NONZERO_REQUESTED,
    PODS,
    REQUESTED,
    TAINTS,
    TERMS,
    UNSCHEDULABLE,
    label,
)
from stowplan.state.cluster import Cluster, Supposition, Watch
from stowplan.state.columns import Amount, Coded, Column, Mask, Numbers, Reach, Rows
from stowplan.state.images import Images
from stowplan.state.counters import Among, Count, Domains
from stowplan.state.pods import Held, Matching, PodTest, Terms, held_terms
from stowplan.state.selection import matching_term, meeting, selected
from stowplan.state.store import DuplicateNodeError, Store

__all__ = [
    "Among", "Count", "Domains", "Held", "Matching", "PodTest", "Terms", "held_terms", "matching_term", "meeting", "selected",
    "ALLOCATABLE",
    "FEATURES",
    "HOST_PORTS",
    "IMAGES",
    "LABELS",
    "MATCHING",
    "NAME",
    "NONZERO_REQUESTED",
    "PODS",
    "REQUESTED",
    "TAINTS",
    "TERMS",
    "UNSCHEDULABLE",
    "Amount",
    "Cluster",
    "Coded",
    "Column",
    "DuplicateNodeError",
    "Images",
    "Mask",
    "Numbers",
    "Reach",
    "Rows",
    "Store",
    "Supposition",
    "Watch",
    "label",
]
