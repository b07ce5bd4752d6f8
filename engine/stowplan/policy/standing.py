"""One attempt read as a table of nodes and plugins: where a node stands with a pod, and what sets two nodes apart.

Read off an `Attempt`, whose arrays are kept as they are; nothing is evaluated anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from stowplan.policy.decision import Refusals, Status
from stowplan.policy.evaluate import Scored, Scoring, points
from stowplan.policy.flip import margin
from stowplan.policy.nominated import Attempt
from stowplan.state import Rows


class Share(NamedTuple):
    """What one plugin gives a node: its own number, that number from 0 to 100, and its part of the total."""

    raw: float
    normalised: float
    weighted: float

    def to_json(self) -> dict[str, float]:
        """`raw`, `normalized` and `weighted`."""
        return {"raw": self.raw, "normalized": self.normalised, "weighted": self.weighted}


@dataclass(frozen=True, slots=True)
class Standing:
    """One node, judged for one pod: scored, refused, or neither where it was not looked at."""

    total: float | None
    shares: Mapping[str, Share]
    refused: Status | None

    def to_json(self) -> dict[str, Any]:
        """`total` and `scores` by plugin, or `refused` with plugin and reasons; empty if the node was not looked at."""
        if self.refused is not None:
            return {"refused": {"plugin": self.refused.plugin, "reasons": list(self.refused.reasons)}}
        if self.total is None:
            return {}
        return {"total": self.total, "scores": {name: share.to_json() for name, share in self.shares.items()}}


@dataclass(frozen=True, slots=True)
class Sheet:
    """Nodes times plugins: all that one policy says of one pod, rejected nodes included. Rows are those of the store."""

    feasible: Rows
    scoring: Scoring | None
    refusals: Refusals
    narrowing: str
    """plugins that leave nodes out before any filter is asked about them"""
    ahead: tuple[float, int] | None
    """by how much the best node is ahead, and the row of the next one"""

    def standing(self, row: int) -> Standing:
        """One node of the sheet."""
        status = self.refusals.get(row)
        if status is not None:
            return Standing(None, {}, status if status.plugin else Status(status.code, status.reasons, self.narrowing))
        places = (self.feasible == row).nonzero()[0]
        if self._scored is None or not len(places):
            return Standing(None, {}, None)
        place = int(places[0])
        shares = {name: _share(scored, place, self._scored.scale) for name, scored in self._scored.scores.items()}
        return Standing(points(int(self._scored.totals[place]), self._scored.scale), shares, None)

    @property
    def weights(self) -> dict[str, float]:
        """Weights of the plugins that scored, in their order."""
        return {} if self._scored is None else {name: scored.weight for name, scored in self._scored.scores.items()}

    @property
    def _scored(self) -> Scoring | None:
        return None if self.scoring is None or self.scoring.error is not None else self.scoring

    def to_json(self, rows: Sequence[int]) -> dict[str, Any]:
        """The nodes of these rows, in their order, column by column; null where a node has no score.

        `plugins` have `name`, `weight`, `raw` and `normalized`; `totals`; `skipped` names plugins with nothing to say;
        `refused` has for each node a place in `refusals` (`plugin`, `reasons`) or -1.
        """
        place_of = {int(row): place for place, row in enumerate(self.feasible.tolist())}
        places = [place_of.get(row) for row in rows]
        scored = self._scored
        answer: dict[str, Any] = {"plugins": [], "skipped": [], "totals": [None] * len(rows)}
        if scored is not None:
            answer["skipped"] = [name for name, skipped in scored.skipped.items() if skipped and name not in scored.scores]
            answer["plugins"] = [
                {
                    "name": name,
                    "weight": found.weight,
                    "raw": _picked(found.raw.tolist(), places, found.unit),
                    "normalized": _picked(found.normalised.tolist(), places, found.unit),
                }
                for name, found in scored.scores.items()
            ]
            answer["totals"] = _picked(scored.totals.tolist(), places, scored.scale)
        codes = self.refusals.codes.tolist()
        answer["refused"] = [codes[row] if row < len(codes) else -1 for row in rows]
        statuses = self.refusals.statuses
        answer["refusals"] = [{"plugin": s.plugin or self.narrowing, "reasons": list(s.reasons)} for s in statuses]
        return answer


def sheet(found: Attempt) -> Sheet:
    """The table behind an attempt."""
    narrowing = ", ".join(found.opening.narrowing) if found.opening is not None else ""
    ahead = margin(found)
    gap = None if ahead is None else (ahead.points, ahead.runner_up)
    return Sheet(found.feasible, found.scoring, found.infeasible, narrowing, gap)


def _share(scored: Scored, place: int, scale: int) -> Share:
    raw, normalised = (points(int(steps[place]), scored.unit) for steps in (scored.raw, scored.normalised))
    return Share(raw, normalised, points(int(scored.weighted[place]), scale))


def _picked(steps: list[int], places: Sequence[int | None], unit: int) -> list[float | None]:
    return [None if place is None else points(steps[place], unit) for place in places]


@dataclass(frozen=True, slots=True)
class Swing:
    """How one plugin weighs two nodes, under one policy and under another: positive speaks for the second node."""

    plugin: str
    old: float | None
    """weighted difference; None: the plugin scores nothing there"""
    new: float | None
    weights: tuple[float | None, float | None]

    @property
    def change(self) -> float:
        """What the change of policy gives the second node over the first."""
        return (self.new or 0) - (self.old or 0)


def swings(old: tuple[Standing, Standing], new: tuple[Standing, Standing], weights: tuple[Mapping[str, float], ...]) -> list[Swing]:
    """Plugins whose view of two nodes differs between two policies, the largest change first.

    Empty unless both nodes have scores under both policies: elsewhere a refusal decides, not a score.
    """
    if any(standing.total is None for standing in (*old, *new)):
        return []
    before, after = _leads(old), _leads(new)
    names = dict.fromkeys([*before, *after])
    found = [
        Swing(name, before.get(name), after.get(name), (weights[0].get(name), weights[1].get(name)))
        for name in names
        if (before.get(name) or 0) != (after.get(name) or 0)
    ]
    return sorted(found, key=lambda swing: -abs(swing.change))


def _leads(pair: tuple[Standing, Standing]) -> dict[str, float]:
    """By how much each plugin prefers the second node."""
    first, second = pair
    return {name: round(share.weighted - first.shares[name].weighted, 6) for name, share in second.shares.items()}
