"""The budget of one evaluation, in Kubernetes' cost units."""

from __future__ import annotations

from collections.abc import Callable

from stowplan.cel.errors import CelError


class Meter:
    """Counts down; at zero the evaluation ends with an error that nothing absorbs."""

    __slots__ = ("interrupted", "left", "limit")

    def __init__(self, limit: int, interrupted: Callable[[], bool] | None = None) -> None:
        """`interrupted` is asked now and then whether to stop: the core has no clock of its own."""
        self.limit = self.left = limit
        self.interrupted = interrupted

    def spend(self, units: int) -> None:
        """Takes units off, or ends the evaluation."""
        self.left -= units
        if self.left < 0:
            raise exceeded()

    def pause(self) -> None:
        """Ends the evaluation if it was interrupted."""
        if self.interrupted is not None and self.interrupted():
            raise CelError("operation interrupted", absorbable=False)

    @property
    def spent(self) -> int:
        """Units used so far."""
        return self.limit - self.left


def exceeded() -> CelError:
    """The error of a used-up budget, in cel-go's words."""
    return CelError("operation cancelled: actual cost limit exceeded", absorbable=False)
