"""The cluster as self-maintaining columns."""

from stowplan.state.allocation import Share, quotient, shares
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
from stowplan.state.counters import Among, Count, Domains
from stowplan.state.feasible import IGNORED, Feasible
from stowplan.state.images import Images
from stowplan.state.pods import Held, Matching, PodTest, Terms, held_terms
from stowplan.state.selection import matching_term, meeting, selected
from stowplan.state.store import DuplicateNodeError, Store

__all__ = [
    "ALLOCATABLE",
    "FEATURES",
    "HOST_PORTS",
    "IGNORED",
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
    "Among",
    "Amount",
    "Cluster",
    "Coded",
    "Column",
    "Count",
    "Domains",
    "DuplicateNodeError",
    "Feasible",
    "Held",
    "Images",
    "Mask",
    "Matching",
    "Numbers",
    "PodTest",
    "Reach",
    "Rows",
    "Share",
    "Store",
    "Supposition",
    "Terms",
    "Watch",
    "held_terms",
    "label",
    "matching_term",
    "meeting",
    "quotient",
    "selected",
    "shares",
]
