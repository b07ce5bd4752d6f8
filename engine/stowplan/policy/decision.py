"""What a decision says: statuses, and the text of the FailedScheduling event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stowplan.plugins.plugin import Code
from stowplan.state import Mask, Numbers, Rows


@dataclass(frozen=True, slots=True)
class Status:
    """Answer of a plugin about a pod or about one node; `reasons` are sorted."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    nodes: tuple[str, ...] | None = None
    """sorted names of the only candidates, where a plugin narrows the search"""

    def to_json(self) -> dict[str, Any]:
        """In the shape of the goldens: empty members are left out."""
        found: dict[str, Any] = {"code": self.code.value}
        if self.reasons:
            found["reasons"] = list(self.reasons)
        if self.plugin:
            found["plugin"] = self.plugin
        if self.nodes is not None:
            found["nodes"] = list(self.nodes)
        return found


class Refusals(Mapping[int, Status]):
    """Statuses of the refused rows among `size` rows, each distinct status kept once."""

    def __init__(self, size: int) -> None:
        self.codes: Numbers = np.full(size, -1, dtype=np.int64)
        """for each row the place of its status in `statuses`, -1 where it is not refused"""
        self.statuses: list[Status] = []

    def put(self, rows: Rows | Mask | int, status: Status) -> None:
        """Give rows a status."""
        if status not in self.statuses:
            self.statuses.append(status)
        self.codes[rows] = self.statuses.index(status)

    def lift(self, rows: Rows | Mask) -> None:
        """Rows are not refused after all."""
        self.codes[rows] = -1

    def rows(self, code: Code) -> Rows:
        """Rows whose status has this code."""
        wanted = [place for place, status in enumerate(self.statuses) if status.code is code]
        return np.isin(self.codes, wanted).nonzero()[0]

    def reasons(self) -> list[tuple[str, int]]:
        """Each reason with the number of rows of each status that gives it."""
        counts = np.bincount(self.codes + 1, minlength=len(self.statuses) + 1)[1:].tolist()
        return [(reason, count) for status, count in zip(self.statuses, counts, strict=True) for reason in status.reasons]

    def __getitem__(self, row: int) -> Status:
        code = int(self.codes[row]) if 0 <= row < len(self.codes) else -1
        if code < 0:
            raise KeyError(row)
        return self.statuses[code]

    def __iter__(self) -> Iterator[int]:
        return iter((self.codes >= 0).nonzero()[0].tolist())

    def __len__(self) -> int:
        return int((self.codes >= 0).sum())


SUCCESS = Status(Code.SUCCESS)
SKIP = Status(Code.SKIP)
NO_NODES = "no nodes available to schedule pods"


def fit_error(nodes: int, reasons: Iterable[tuple[str, int]], pod_wide: str | None = None) -> str:
    """Text of framework.FitError: how many nodes each reason rejects, sorted as strings, or the pod-wide refusal."""
    if pod_wide is not None:
        return f"0/{nodes} nodes are available: {pod_wide}."
    counts: Counter[str] = Counter()
    for reason, count in reasons:
        counts[reason] += count
    parts = sorted(f"{count} {reason}" for reason, count in counts.items() if count)
    return f"0/{nodes} nodes are available: {', '.join(parts)}." if parts else f"0/{nodes} nodes are available:"
