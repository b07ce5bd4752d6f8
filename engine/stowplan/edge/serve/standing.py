"""Whether this process schedules, and who does instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Standing:
    """`leader`: who holds the lease, by the identity that the lease names; "" where nobody is known to, or there is none."""

    leads: bool
    leader: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"leads": self.leads} | ({"leader": self.leader} if self.leader else {})


Stand = Callable[[], Standing]
