"""Volumes for the claims of one pod, on every row at once: which exist, which fit, which would have to be made.

The column form of upstream's `volumeBinder.FindPodVolumes`: nodes differ in what they can reach, never in what is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stowplan.objects import (
    CSIStorageCapacity,
    NodeSelector,
    PersistentVolume,
    PersistentVolumeClaim,
    Requirement,
    StorageClass,
    whole,
)
from stowplan.state.catalogue import NAME, label
from stowplan.state.cluster import Cluster
from stowplan.state.columns import Mask, Numbers, Rows
from stowplan.state.selection import meeting, selected

NOTHING = -1


@dataclass(frozen=True, slots=True)
class Bound:
    """What matters of a bound claim's volume; `gone` if there is none.

    On the nodes named in `migrated_on`, `migrated` takes the place of `affinity`, or `fault` tells that it cannot.
    """

    affinity: NodeSelector | None = None
    gone: bool = False
    migrated_on: frozenset[str] = frozenset()
    migrated: NodeSelector | None = None
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Delayed:
    """A claim that is bound once its pod has a node.

    reserved    volumes that are reserved for it
    candidates  volumes that suit it, smallest first
    capacities  what is left of its class for volumes of its size; None: nobody keeps account
    """

    claim: PersistentVolumeClaim
    storage_class: StorageClass
    reserved: tuple[PersistentVolume, ...] = ()
    candidates: tuple[PersistentVolume, ...] = ()
    capacities: tuple[CSIStorageCapacity, ...] | None = None


@dataclass(slots=True)
class Static:
    """The existing volumes that one claim would get: `chosen` is a number per row, NOTHING where none was found."""

    delayed: Delayed
    volumes: Sequence[PersistentVolume]
    chosen: Numbers


@dataclass(slots=True)
class Dynamic:
    """Where a volume would be made for one claim, and from which of its capacities (NOTHING: nobody keeps account)."""

    delayed: Delayed
    rows: Mask
    capacity: Numbers


@dataclass(slots=True)
class Plan:
    """What a pod would get on each row, and which rows cannot serve it, by cause."""

    unreachable: Mask
    """a bound volume cannot be reached"""
    unmatched: Mask
    """a claim finds no volume and none can be made"""
    full: Mask
    """too little storage is left for a volume that would have to be made"""
    gone: Mask
    """a bound volume is not there"""
    faults: dict[str, Mask] = field(default_factory=dict)
    statics: list[Static] = field(default_factory=list)
    dynamics: list[Dynamic] = field(default_factory=list)


def plan(bound: Sequence[Bound], delayed: Sequence[Delayed], cluster: Cluster) -> Plan:
    """The volumes of a pod on every row of the view."""
    no = np.zeros(cluster.size, dtype=np.bool_)
    made = Plan(no.copy(), no.copy(), no.copy(), no.copy())
    if not cluster.size:
        return made
    reach = _Reach(cluster)
    _check_bound(made, bound, reach)
    elsewhere = no.copy()
    chosen_before = [each for each in delayed if each.claim.selected_node is not None]
    for each in chosen_before:
        elsewhere |= ~cluster[NAME].is_in([each.claim.selected_node or ""])
    searching = sorted((each for each in delayed if each.claim.selected_node is None), key=lambda each: each.claim.requested or 0)
    made.statics = list(_match(searching, reach))
    made.unmatched |= elsewhere
    going = ~elsewhere
    for each in chosen_before:
        _provision(made, each, going.copy(), going, cluster)
    for static in made.statics:
        _provision(made, static.delayed, going & (static.chosen == NOTHING), going, cluster)
    for fault in made.faults.values():
        for mask in (made.unreachable, made.unmatched, made.full, made.gone):
            np.logical_and(mask, ~fault, out=mask)
    return made


def _check_bound(made: Plan, bound: Sequence[Bound], reach: _Reach) -> None:
    """Bound claims in order, each row up to its first failure (upstream: `checkBoundClaims`)."""
    alive = np.ones(reach.cluster.size, dtype=np.bool_)
    for each in bound:
        if each.gone:
            made.gone |= alive
            return
        reached = reach.mask(each.affinity)
        if each.migrated_on:
            there = reach.cluster[NAME].is_in(each.migrated_on)
            if each.fault is not None:
                faulty = alive & there
                made.faults[each.fault] = faulty | made.faults.get(each.fault, faulty)
                alive &= ~there
            reached = np.where(there, reach.mask(each.migrated), reached)
        made.unreachable |= alive & ~reached
        alive &= reached


def _match(searching: Sequence[Delayed], reach: _Reach) -> Iterator[Static]:
    """An existing volume for each claim in order, none twice on a row (upstream: `findMatchingVolumes`)."""
    numbers: dict[str, int] = {}
    volumes: list[PersistentVolume] = []
    taken: list[Numbers] = []
    for each in searching:
        for volume in (*each.reserved, *each.candidates):
            if volume.name not in numbers:
                numbers[volume.name] = len(volumes)
                volumes.append(volume)
        chosen = _first_fit([(numbers[volume.name], volume) for volume in each.candidates], taken, reach)
        everywhere = np.arange(reach.cluster.size, dtype=np.intp)
        for volume in reversed(each.reserved):  # taken where it can be reached, and nothing else will do where it cannot
            number = numbers[volume.name]
            rows = _free(everywhere, number, taken)
            chosen[rows] = np.where(reach.mask(volume.affinity)[rows], number, NOTHING)
        taken.append(chosen)
        yield Static(each, volumes, chosen)


def _first_fit(candidates: Sequence[tuple[int, PersistentVolume]], taken: Sequence[Numbers], reach: _Reach) -> Numbers:
    """The first candidate that each row can reach and no other claim has taken there.

    Of candidates that the same rows can reach, no more are looked at than there are claims: others cannot be chosen.
    """
    places: dict[tuple[str, str] | NodeSelector | None, list[int]] = {}
    for place, (_, volume) in enumerate(candidates):
        same = places.setdefault(volume.single or volume.affinity, [])
        if len(same) <= len(taken):
            same.append(place)
    known = np.array([number for number, _ in candidates] + [NOTHING], dtype=np.int64)
    best = np.full(reach.cluster.size, len(candidates), dtype=np.int64)
    singles: dict[str, dict[str, list[int]]] = {}
    for where, same in places.items():
        if isinstance(where, tuple):
            singles.setdefault(where[0], {})[where[1]] = same
        else:
            for place in same:
                rows = _free(reach.rows(where), int(known[place]), taken)
                best[rows] = np.minimum(best[rows], place)
    for key, by_value in singles.items():
        for depth in range(len(taken) + 1):
            there = reach.by_value(key, {v: same[depth] for v, same in by_value.items() if depth < len(same)}, len(candidates))
            for other in taken:
                there[known[there] == other] = len(candidates)
            np.minimum(best, there, out=best)
    return known[best]


def _free(rows: Rows, number: int, taken: Sequence[Numbers]) -> Rows:
    """Those of the rows where no other claim of the pod has taken the volume."""
    for chosen in taken:
        rows = rows[chosen[rows] != number]
    return rows


def _provision(made: Plan, each: Delayed, wanted: Mask, going: Mask, cluster: Cluster) -> None:
    """Could a volume be made for the claim on the wanted rows? Rows that fail leave `going` (`checkVolumeProvisions`)."""
    if not wanted.any():
        return
    possible = _topology(each.storage_class.topologies, cluster) if each.storage_class.provisions else np.zeros_like(wanted)
    made.unmatched |= wanted & ~possible
    capacity = np.full(cluster.size, NOTHING, dtype=np.int64)
    if each.capacities is not None:
        for number in reversed(range(len(each.capacities))):
            topology = each.capacities[number].topology
            if not topology.nothing:
                capacity[meeting(topology.requirements, cluster)] = number
        made.full |= wanted & possible & (capacity == NOTHING)
        possible &= capacity != NOTHING
    going &= possible | ~wanted
    made.dynamics.append(Dynamic(each, wanted & possible, capacity))


@dataclass(slots=True)
class Used:
    """Bytes of one storage class that are requested and that there are, as int64, on the rows where the class counts."""

    requested: Numbers
    capacity: Numbers
    counts: Mask


def used_by_class(made: Plan) -> list[Used]:
    """Storage by class: of existing volumes; where there are none, of the capacities from which volumes would be made."""
    size = len(made.gone)
    classes: dict[str, Used] = {}
    existing = np.zeros(size, dtype=np.bool_)
    for static in made.statics:
        found = static.chosen != NOTHING
        existing |= found
        capacities = np.array([whole(volume.capacity) for volume in static.volumes], dtype=np.int64)
        names = [volume.storage_class for volume in static.volumes]
        for name in dict.fromkeys(names):
            rows = found & np.array([other == name for other in names], dtype=np.bool_)[static.chosen]
            used = _class(classes, name, size)
            used.requested[rows] += whole(static.delayed.claim.requested or 0)
            used.capacity[rows] += capacities[static.chosen[rows]]
            used.counts |= rows
    for dynamic in made.dynamics:
        used = _class(classes, dynamic.delayed.claim.storage_class, size)
        rows = dynamic.rows & (dynamic.capacity != NOTHING) & ~existing
        used.requested[rows] += whole(dynamic.delayed.claim.requested or 0)
        amounts = np.array([found.capacity for found in dynamic.delayed.capacities or ()], dtype=np.int64)
        used.capacity[rows] = amounts[dynamic.capacity[rows]]  # the last claim decides, they share what there is
        used.counts |= rows
    return list(classes.values())


def _class(classes: dict[str, Used], name: str, size: int) -> Used:
    found = classes.get(name)
    if found is None:
        zeros = np.zeros((2, size), dtype=np.int64)
        found = classes[name] = Used(zeros[0], zeros[1], np.zeros(size, dtype=np.bool_))
    return found


def _topology(terms: Sequence[tuple[Requirement, ...]], cluster: Cluster) -> Mask:
    """Rows where a class may have volumes; no terms: everywhere, an empty term: nowhere (`MatchTopologySelectorTerms`)."""
    matching = np.full(cluster.size, not terms, dtype=np.bool_)
    for term in terms:
        if term:
            matching |= meeting(term, cluster)
    return matching


class _Reach:
    """From which rows volumes can be reached."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._everywhere: Rows = np.arange(cluster.size, dtype=np.intp)
        self._rows: dict[NodeSelector, Rows] = {}

    def mask(self, affinity: NodeSelector | None) -> Mask:
        mask = np.zeros(self.cluster.size, dtype=np.bool_)
        mask[self.rows(affinity)] = True
        return mask

    def rows(self, affinity: NodeSelector | None) -> Rows:
        """Numbers of the asked rows that meet a volume's node affinity."""
        if affinity is None:
            return self._everywhere
        found = self._rows.get(affinity)
        if found is None:
            found = self._rows[affinity] = np.flatnonzero(selected(affinity, self.cluster))
        return found

    def by_value(self, key: str, numbers: Mapping[str, int], absent: int) -> Numbers:
        """The number that belongs to each row's value of a label: local volumes name one node each, so that is looked up."""
        return self.cluster[label(key)].count(lambda value: absent if value is None else numbers.get(value, absent))
