"""The cluster as self-maintaining columns."""

from stowplan.state.allocation import Share, quotient, shares
from stowplan.state.binding import Bound, Delayed, Plan, plan, used_by_class
from stowplan.state.catalogue import (
    ALLOCATABLE,
    CLAIMS,
    CSI_VOLUMES,
    FEATURES,
    HOST_PORTS,
    IMAGES,
    LABELS,
    MATCHING,
    MOUNTS,
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
from stowplan.state.pods import Held, Matching, PodTest, Question, Terms, held_terms
from stowplan.state.selection import matching_term, meeting, selected
from stowplan.state.shape import broken_linear
from stowplan.state.store import DuplicateNodeError, Store
from stowplan.state.volumes import UNLIMITED, Claims, CSIVolumes

__all__ = [
    "ALLOCATABLE",
    "CLAIMS",
    "CSI_VOLUMES",
    "FEATURES",
    "HOST_PORTS",
    "IGNORED",
    "IMAGES",
    "LABELS",
    "MATCHING",
    "MOUNTS",
    "NAME",
    "NONZERO_REQUESTED",
    "PODS",
    "REQUESTED",
    "TAINTS",
    "TERMS",
    "UNLIMITED",
    "UNSCHEDULABLE",
    "Among",
    "Amount",
    "Bound",
    "CSIVolumes",
    "Claims",
    "Cluster",
    "Coded",
    "Column",
    "Count",
    "Delayed",
    "Domains",
    "DuplicateNodeError",
    "Feasible",
    "Held",
    "Images",
    "Mask",
    "Matching",
    "Numbers",
    "Plan",
    "PodTest",
    "Question",
    "Reach",
    "Rows",
    "Share",
    "Store",
    "Supposition",
    "Terms",
    "Watch",
    "broken_linear",
    "held_terms",
    "label",
    "matching_term",
    "meeting",
    "plan",
    "quotient",
    "selected",
    "shares",
    "used_by_class",
]
