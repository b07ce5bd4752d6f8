"""The budget of one evaluation, in Kubernetes' cost units."""

from __future__ import annotations

from stowplan.cel.errors import CelError


class Meter:
    """Counts down; at zero the evaluation ends with an error that nothing absorbs."""

    __slots__ = ("left", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = self.left = limit

    def spend(self, units: int) -> None:
        """Takes units off, or ends the evaluation."""
        self.left -= units
        if self.left < 0:
            raise exceeded()

    @property
    def spent(self) -> int:
        """Units used so far."""
        return self.limit - self.left


def exceeded() -> CelError:
    """The error of a used-up budget, in cel-go's words."""
    return CelError("operation cancelled: actual cost limit exceeded", absorbable=False)
