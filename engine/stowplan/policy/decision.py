"""What a decision says: statuses, and the text of the FailedScheduling event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stowplan.plugins.plugin import Code


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
