"""The budget of one evaluation, in Kubernetes' cost units, and that of all rows of one evaluation together."""

from __future__ import annotations

from collections.abc import Callable

from stowplan.cel.errors import CelError

TOGETHER = 1_500_000
"""Units for all rows of one evaluation, about 0.1 s; many rows have PER_ROW each instead."""
PER_ROW = 300
BY_ITSELF = 2
"""How many times a unit of a row that is evaluated by itself counts: such a unit takes longer than one of a column."""
KEPT_PATTERNS = 256
"""Patterns that are no literals and compiled only once."""


class Meter:
    """Counts down; at zero the evaluation ends with an error that nothing absorbs."""

    __slots__ = ("interrupted", "left", "limit", "patterns")

    def __init__(self, limit: int, interrupted: Callable[[], bool] | None = None) -> None:
        """`interrupted` is asked now and then whether to stop: the core has no clock of its own."""
        self.limit = self.left = limit
        self.interrupted = interrupted
        self.patterns: dict[str, int] = {}

    def spend(self, units: int) -> None:
        """Takes units off, or ends the evaluation."""
        self.left -= units
        if self.left < 0:
            raise exceeded()

    def compiling(self, pattern: str, units: int) -> None:
        """Pays for a pattern, the first time: compiled ones are kept, up to a number."""
        if pattern not in self.patterns:
            if len(self.patterns) < KEPT_PATTERNS:
                self.patterns[pattern] = units
            self.spend(units)

    def pause(self) -> None:
        """Ends the evaluation if it was interrupted."""
        if self.interrupted is not None and self.interrupted():
            raise CelError("operation interrupted", absorbable=False)

    @property
    def spent(self) -> int:
        """Units used so far."""
        return self.limit - self.left


class ExhaustedError(Exception):
    """All rows together need more than they may: none of them has a value. Not an error of one row, so not a CelError."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.error = CelError(self.args[0], absorbable=False)


class Total(Meter):
    """The budget of all rows of one evaluation. What a row is worth does not depend on its place: if one fails, all do."""

    __slots__ = ()

    def spend(self, units: int) -> None:
        self.left -= units
        if self.left < 0:
            raise self.exceeded()

    def exceeded(self) -> ExhaustedError:
        """What is raised where rows need more than there is."""
        return ExhaustedError(f"it takes more than {self.limit:,} units of work over all nodes: loop over less, or shorter texts")

    def part(self, limit: int) -> Meter:
        """The meter of one row; `settle` it afterwards."""
        return Meter(min(limit, max(0, self.left // BY_ITSELF)), self.interrupted)

    def settle(self, row: Meter, units: int = 0) -> None:
        """Takes off what a row used by itself, and `units` more; rows share the patterns that they compile."""
        known = 0
        for pattern, price in row.patterns.items():
            if pattern in self.patterns:
                known += price
            elif len(self.patterns) < KEPT_PATTERNS:
                self.patterns[pattern] = price
        starved = row.left < 0 and row.limit == self.left // BY_ITSELF
        self.spend(BY_ITSELF * (row.spent - (0 if starved else known)) + units)

    @property
    def exhausted(self) -> bool:
        """Whether somebody needed more."""
        return self.left < 0


def most(rows: int) -> int:
    """Units of one evaluation over so many rows."""
    return max(TOGETHER, PER_ROW * rows)


def together(rows: int, interrupted: Callable[[], bool] | None = None) -> Total:
    """The budget of so many rows."""
    return Total(most(rows), interrupted)


def exceeded() -> CelError:
    """The error of a used-up budget, in cel-go's words."""
    return CelError("operation cancelled: actual cost limit exceeded", absorbable=False)
