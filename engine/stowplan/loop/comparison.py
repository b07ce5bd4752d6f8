"""What a change of policy does, as values and as JSON: pods that fare differently, and how full nodes and zones get."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stowplan.loop.fates import Case, Change, Fate
from stowplan.loop.simulate import Simulation, Use
from stowplan.objects import show
from stowplan.objects.migration import ZONE
from stowplan.policy.explain import API_VERSION, profiles_json
from stowplan.policy.extenders import left_out_json
from stowplan.state import Numbers, Store
from stowplan.text import counted


@dataclass(frozen=True, slots=True)
class Workload:
    """Running pods of one controller, each scheduled anew for itself, and one that fares differently as an example."""

    name: str
    pods: int
    changes: Mapping[Change, int]
    examples: tuple[Case, ...] = ()

    @property
    def differing(self) -> int:
        return sum(count for change, count in self.changes.items() if change is not Change.SAME)

    def to_json(self) -> dict[str, Any]:
        counts = {change.value: self.changes.get(change, 0) for change in RERUN}
        return {"workload": self.name, "pods": self.pods, **counts, "examples": [case.to_json() for case in self.examples]}


RERUN = (Change.NEWLY_PENDING, Change.MOVED, Change.NEWLY_PLACED, Change.SAME)
"""What can be said of a pod that runs: nobody sees the event that it would get."""


@dataclass(frozen=True, slots=True)
class Running:
    """Running pods, each scheduled anew with itself removed: `judged` of `pods`, those that the policies try."""

    pods: int
    judged: int
    workloads: tuple[Workload, ...]
    """by name, those with a difference only"""

    @property
    def changes(self) -> Counter[Change]:
        """Pods by what would become of them."""
        found: Counter[Change] = Counter()
        for workload in self.workloads:
            found.update({change: count for change, count in workload.changes.items() if change is not Change.SAME})
        found[Change.SAME] = self.judged - sum(found.values())
        return found

    def to_json(self) -> dict[str, Any]:
        changes = self.changes
        counts = {change.value: changes[change] for change in RERUN}
        workloads = [workload.to_json() for workload in self.workloads]
        return {"pods": self.pods, "judged": self.judged, **counts, "workloads": workloads}


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """Two policies on one cluster. `cases` are the pending pods in the old policy's queue order."""

    old: Simulation
    new: Simulation
    cases: tuple[Case, ...]
    zones: tuple[str, ...]
    """zone of each node, empty where it has none"""
    running: Running | None = None
    notes: tuple[str, ...] = ()
    titles: tuple[str, str] = ("old", "new")

    def __repr__(self) -> str:
        counts = [f"{number} {change.value}" for change, number in self.changes.items()]
        return f"<Comparison of {counted(len(self.cases), 'pending pod')}: {', '.join(counts) or 'none'}>"

    @property
    def rows(self) -> list[int]:
        """Rows of the store in the order of their nodes' names."""
        names = self.old.nodes
        return sorted(range(len(names)), key=names.__getitem__)

    @property
    def changes(self) -> Counter[Change]:
        """Pending pods by what becomes of them."""
        return Counter(case.change for case in self.cases)

    @property
    def differs(self) -> bool:
        """Whether any pod, pending or running, fares differently; scores alone are no difference."""
        moving = self.running is not None and any(workload.differing for workload in self.running.workloads)
        return moving or any(case.change is not Change.SAME for case in self.cases)

    @property
    def use(self) -> Use:
        """Amounts as the old policy (`before`) and the new one (`after`) leave them, over the nodes."""
        return Use(self.old.use.allocatable, self.old.use.after, self.new.use.after)

    def by_zone(self, use: Use) -> tuple[list[str], Use]:
        """Zones by name, and amounts summed over their nodes; no zones where no node has one."""
        names = sorted({zone for zone in self.zones if zone})
        if not names:
            return [], use
        names += [""] if "" in self.zones else []
        members = [np.array([zone == name for zone in self.zones]) for name in names]

        def summed(column: dict[str, Numbers]) -> dict[str, Numbers]:
            return {name: np.array([sum(numbers[mask].tolist()) for mask in members]) for name, numbers in column.items()}

        return names, Use(summed(use.allocatable), summed(use.before), summed(use.after))

    def to_json(self) -> dict[str, Any]:
        """A `stowplan.io/v1alpha1 PolicyDiff`.

        `old` and `new` have `policy`, `summary` (as a Simulation) and `profiles`; `summary` counts pending pods by change;
        `pods` are the cases that differ, `unchanged` the others in short, `running` those that differ of the pods that run;
        `requested` has `total`, `zones` and `nodes`, by resource the quantities `now`, `old`, `new` and `allocatable`; `notes`
        say what was left out.
        """
        changes = self.changes
        sides = {
            word: {"policy": title, "summary": side.summary}
            | left_out_json(side.policy, side.tried)
            | {"profiles": profiles_json(side.policy)}
            for word, title, side in zip(("old", "new"), self.titles, (self.old, self.new), strict=True)
        }
        answer: dict[str, Any] = {"apiVersion": API_VERSION, "kind": "PolicyDiff", "differs": self.differs}
        answer["summary"] = {"pending": len(self.cases)} | {change.value: changes[change] for change in Change}
        answer |= sides
        answer["pods"] = [case.to_json() for case in self.cases if case.change is not Change.SAME]
        answer["unchanged"] = [{"pod": case.pod.key} | _short(case.new) for case in self.cases if case.change is Change.SAME]
        answer |= {"running": self.running.to_json()} if self.running is not None else {}
        answer["requested"] = self._requested()
        return answer | {"notes": list(self.notes)}

    def _requested(self) -> dict[str, Any]:
        now, use = self.old.use.before, self.use
        zones, by_zone = self.by_zone(use)
        _, now_by_zone = self.by_zone(Use(use.allocatable, now, now))
        nodes = {self.old.nodes[row]: _amounts(use, now, slice(row, row + 1)) for row in self.rows}
        answer = {"total": _amounts(use, now, slice(None))}
        answer["zones"] = {zone: _amounts(by_zone, now_by_zone.before, slice(i, i + 1)) for i, zone in enumerate(zones)}
        return answer | {"nodes": nodes}


def _short(fate: Fate) -> dict[str, str]:
    """`node`, or why there is none: `skipped` or `message`."""
    members = {"node": fate.node, "skipped": fate.skipped, "message": None if fate.node else fate.message}
    return {name: text for name, text in members.items() if text is not None}


def _amounts(use: Use, now: Mapping[str, Numbers], rows: slice) -> dict[str, Any]:
    columns = {"now": now, "old": use.before, "new": use.after, "allocatable": use.allocatable}
    sums = {name: {word: sum(column[name][rows].tolist()) for word, column in columns.items()} for name in use.after}
    return {name: {word: show(name, n) for word, n in found.items()} for name, found in sums.items() if any(found.values())}


def zones_of(store: Store) -> tuple[str, ...]:
    """The zone of each node by its label, empty where it has none."""
    return tuple(node.labels.get(ZONE, "") for node in store.nodes)
