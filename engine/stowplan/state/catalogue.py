"""The list of all columns that plugins can read."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

from stowplan.objects import Amounts, HostPort, Labels, Mount, Pod, Taint, mounts
from stowplan.state.amounts import Amount, AmountStorage, SumStorage
from stowplan.state.areas import Areas, AreaStorage
from stowplan.state.columns import Coded, CodedStorage, Column, Reach, SetStorage
from stowplan.state.crowd import Crowd, CrowdStorage
from stowplan.state.images import Images, ImageStorage
from stowplan.state.ledger import Ledger, LedgerStorage
from stowplan.state.pods import Matching, PodTable, Terms, TermTable
from stowplan.state.ranks import Ranks, RankStorage
from stowplan.state.seats import Seats, SeatStorage
from stowplan.state.volumes import Claims, ClaimTable, CSIVolumes, VolumeTable

if TYPE_CHECKING:
    from stowplan.state.store import Store

ONE_POD = Amounts.of({"pods": 1})


def _nonzero(pod: Pod) -> Amounts:
    return _cpu_and_memory(*pod.nonzero)


@lru_cache(maxsize=65536)
def _cpu_and_memory(cpu: int, memory: int) -> Amounts:
    return Amounts.of({"cpu": cpu, "memory": memory})


NAME: Column[Coded[str]] = Column("name", Reach.NODE, lambda store: CodedStorage(store, lambda node: node.name))
UNSCHEDULABLE: Column[Coded[bool]] = Column(
    "unschedulable", Reach.NODE, lambda store: CodedStorage(store, lambda node: node.unschedulable)
)
TAINTS: Column[Coded[tuple[Taint, ...]]] = Column("taints", Reach.NODE, lambda store: CodedStorage(store, lambda node: node.taints))
LABELS: Column[Coded[Labels]] = Column("labels", Reach.NODE, lambda store: CodedStorage(store, lambda node: node.labels))
FEATURES: Column[Coded[frozenset[str]]] = Column(
    "declared features", Reach.NODE, lambda store: CodedStorage(store, lambda node: node.features)
)
ALLOCATABLE: Column[Amount] = Column("allocatable", Reach.NODE, lambda store: AmountStorage(store, lambda node: node.allocatable))
IMAGES: Column[Images] = Column("images", Reach.NODE, ImageStorage)
IMAGE_LISTS: Column[Coded[tuple[tuple[tuple[str, ...], int], ...]]] = Column(
    "image lists", Reach.NODE, lambda store: CodedStorage(store, lambda node: node.images)
)
EVERYWHERE: Column[Coded[str | None]] = Column("everywhere", Reach.NODE, lambda store: CodedStorage(store, lambda _: ""))
"""A label that all nodes share."""
REQUESTED: Column[Amount] = Column("requested", Reach.ROW, lambda store: SumStorage(store, lambda pod: pod.requested))
NONZERO_REQUESTED: Column[Amount] = Column("non-zero requested", Reach.ROW, lambda store: SumStorage(store, _nonzero))
PODS: Column[Amount] = Column("pod count", Reach.ROW, lambda store: SumStorage(store, lambda _: ONE_POD))


def _ledger(store: Store) -> LedgerStorage:
    allocatable = store.storage(ALLOCATABLE)
    requested, nonzero, pods = map(store.storage, (REQUESTED, NONZERO_REQUESTED, PODS))
    assert isinstance(allocatable, AmountStorage)
    assert isinstance(requested, SumStorage)
    assert isinstance(nonzero, SumStorage)
    assert isinstance(pods, SumStorage)
    return LedgerStorage(allocatable, requested, nonzero, pods)


LEDGER: Column[Ledger] = Column("ledger", Reach.ROW, _ledger)
"""The four above in float64, as filters and scores compare them."""
HOST_PORTS: Column[Coded[frozenset[HostPort]]] = Column(
    "host ports", Reach.ROW, lambda store: SetStorage(store, lambda pod: pod.spec.host_ports)
)
MOUNTS: Column[Coded[frozenset[Mount]]] = Column("mounted disks", Reach.ROW, lambda store: SetStorage(store, mounts))
CSI_VOLUMES: Column[CSIVolumes] = Column("CSI volumes", Reach.ROW, VolumeTable)
CROWD: Column[Crowd] = Column("kinds of pods", Reach.ROW, CrowdStorage)
SEATS: Column[Seats] = Column("seats", Reach.ROW, SeatStorage)

AREAS: Column[Areas] = Column("amounts by domain", Reach.DOMAIN, AreaStorage)
CLAIMS: Column[Claims] = Column("claims in use", Reach.DOMAIN, ClaimTable)
MATCHING: Column[Matching] = Column("matching pods", Reach.DOMAIN, PodTable)
RANKS: Column[Ranks] = Column("pods by importance", Reach.ROW, RankStorage)
TERMS: Column[Terms] = Column("affinity terms of pods", Reach.DOMAIN, TermTable)


@cache
def label(key: str) -> Column[Coded[str | None]]:
    """Value of one label, None where a node lacks it; a member of the family of LABELS."""
    return Column(LABELS.family, Reach.NODE, lambda store: CodedStorage(store, lambda node: node.labels.get(key)), key)


def domain_of(key: str) -> Column[Coded[str | None]]:
    """The column whose values are the domains of a label; "" stands for the whole cluster."""
    return label(key) if key else EVERYWHERE
