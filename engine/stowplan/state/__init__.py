"""The cluster as self-maintaining columns."""

from stowplan.state.allocation import Asked, OddShares, Shares, quotient, scored, shares
from stowplan.state.amounts import Amount
from stowplan.state.areas import Area, Areas
from stowplan.state.binding import Bound, Delayed, Plan, plan, used_by_class
from stowplan.state.catalogue import (
    ALLOCATABLE,
    AREAS,
    CLAIMS,
    CROWD,
    CSI_VOLUMES,
    FEATURES,
    HOST_PORTS,
    IMAGE_LISTS,
    IMAGES,
    LABELS,
    LEDGER,
    MATCHING,
    MOUNTS,
    NAME,
    NONZERO_REQUESTED,
    PODS,
    RANKS,
    REQUESTED,
    SEATS,
    TAINTS,
    TERMS,
    UNSCHEDULABLE,
    domain_of,
    label,
)
from stowplan.state.changelog import ChangeLog
from stowplan.state.changes import Changes, Gone, Supposition
from stowplan.state.cluster import Census, Cluster, CodeSource, Watch
from stowplan.state.collector import collector_off
from stowplan.state.columns import Coded, Column, Mask, Numbers, Reach, Rows
from stowplan.state.counters import Among, Count, Domains
from stowplan.state.crowd import Crowd
from stowplan.state.derived import Derived, DerivedStorage
from stowplan.state.feasible import IGNORED, Feasible
from stowplan.state.images import Images
from stowplan.state.ledger import Entries, Ledger
from stowplan.state.objects import READY, raw_field
from stowplan.state.pods import Held, Matching, PodTest, Question, Terms, held_terms
from stowplan.state.ranks import Ranks, importance, started
from stowplan.state.selection import matching_term, meeting, selected
from stowplan.state.shape import broken_linear
from stowplan.state.store import DuplicateNodeError, Store
from stowplan.state.volumes import UNLIMITED, Claims, CSIVolumes

__all__ = [
    "ALLOCATABLE",
    "AREAS",
    "CLAIMS",
    "CROWD",
    "CSI_VOLUMES",
    "FEATURES",
    "HOST_PORTS",
    "IGNORED",
    "IMAGES",
    "IMAGE_LISTS",
    "LABELS",
    "LEDGER",
    "MATCHING",
    "MOUNTS",
    "NAME",
    "NONZERO_REQUESTED",
    "PODS",
    "RANKS",
    "READY",
    "REQUESTED",
    "SEATS",
    "TAINTS",
    "TERMS",
    "UNLIMITED",
    "UNSCHEDULABLE",
    "Among",
    "Amount",
    "Area",
    "Areas",
    "Asked",
    "Bound",
    "CSIVolumes",
    "Census",
    "ChangeLog",
    "Changes",
    "Claims",
    "Cluster",
    "CodeSource",
    "Coded",
    "Column",
    "Count",
    "Crowd",
    "Delayed",
    "Derived",
    "DerivedStorage",
    "Domains",
    "DuplicateNodeError",
    "Entries",
    "Feasible",
    "Gone",
    "Held",
    "Images",
    "Ledger",
    "Mask",
    "Matching",
    "Numbers",
    "OddShares",
    "Plan",
    "PodTest",
    "Question",
    "Ranks",
    "Reach",
    "Rows",
    "Shares",
    "Store",
    "Supposition",
    "Terms",
    "Watch",
    "broken_linear",
    "collector_off",
    "domain_of",
    "held_terms",
    "importance",
    "label",
    "matching_term",
    "meeting",
    "plan",
    "quotient",
    "raw_field",
    "scored",
    "selected",
    "shares",
    "started",
    "used_by_class",
]
