"""What the rules of one profile may use together, whatever each of them may use alone: a decision must not last.

In units of cost, not in time, so that the same cluster always leads to the same decision. Rules are served as they are
evaluated, filters before scores; one that comes too late has no value, as one that uses up its own budget.
"""

from __future__ import annotations

from enum import Enum

from stowplan.cel.meter import TOGETHER, ExhaustedError, Total, most

LEAST = 2 * TOGETHER
"""Units for one decision, about 0.5 s; more where there are many nodes, so that one rule alone has all of its budget."""
START = 100
"""Units of an evaluation besides what its rows cost."""
AMPLE, AMPLE_EACH = 6_000_000, 3000
"""What rows have together for a rule that looks at the pods on them: so much each, for there may be many, up to so much in all."""
SIGHT, SEAT = 60, 12
"""Units of all rules for a row that one of them looks at by itself, and for each pod on it: objects must be made of them."""


class Purpose(Enum):
    """What work is done for; none of these takes anything away from another."""

    DECIDING = "deciding"
    SUPPOSING = "supposing"
    """what would be if pods were not where they are: dry runs of evictions"""
    TELLING = "telling"
    """messages: what is said of a decision must not change it"""

    __hash__ = object.__hash__  # members are one of a kind, and Enum's own hash is slow


class _Purse:
    """Units that are left for one purpose. Without a limit until a decision begins."""

    __slots__ = ("left", "limit", "starved")

    def __init__(self) -> None:
        self.refill(1 << 60)

    def refill(self, limit: int) -> None:
        """A decision begins: shares of earlier ones are paid from this as well, as what belongs to a pod outlives a decision."""
        self.limit = self.left = limit
        self.starved = False
        """whether some rule did not get what it needed"""


def ample(rows: int) -> int:
    """Units of a rule that looks at the pods on so many rows."""
    return max(min(AMPLE_EACH * rows, AMPLE), most(rows))


class Allowance:
    """Shared by all rules of a profile, and renewed for every decision."""

    __slots__ = ("purses",)

    def __init__(self) -> None:
        self.purses = {purpose: _Purse() for purpose in Purpose}

    def renew(self, nodes: int) -> None:
        """A decision begins, in a cluster of so many nodes."""
        whole = max(LEAST, ample(nodes))
        for purse in self.purses.values():
            purse.refill(whole)

    def share(self, rows: int, purpose: Purpose = Purpose.DECIDING, *, pods: bool = False) -> Total:
        """The budget of one rule for so many rows: its own, more if it looks at `pods`, and no more than is left for all."""
        return _Share(ample(rows) if pods else most(rows), self.purses[purpose])

    def charge(self, units: int, purpose: Purpose) -> None:
        """Take what a rule does not pay for, as it is not its fault: that things stand on rows and not in columns."""
        self.purses[purpose].left -= units

    @property
    def limit(self) -> int:
        """Units for the decision."""
        return self.purses[Purpose.DECIDING].limit

    @property
    def spent(self) -> int:
        """Units used in this decision so far."""
        purse = self.purses[Purpose.DECIDING]
        return purse.limit - purse.left

    @property
    def starved_supposing(self) -> bool:
        """Whether a rule had to do without an answer about what was only supposed."""
        return self.purses[Purpose.SUPPOSING].starved


class _Share(Total):
    """Spends its own units and those of all."""

    __slots__ = ("_purse",)

    def __init__(self, own: int, purse: _Purse) -> None:
        self._purse = purse
        super().__init__(min(own, max(purse.left, 0)))

    def spend(self, units: int) -> None:
        purse = self._purse
        purse.left -= units
        self.left -= units
        if self.left < 0 or purse.left < 0:
            raise self.exceeded()

    @property
    def exhausted(self) -> bool:
        return self.left < 0 or self._purse.left < 0

    def exceeded(self) -> ExhaustedError:
        purse = self._purse
        purse.starved = True
        if purse.left >= 0:
            return super().exceeded()
        return ExhaustedError(
            f"the rules of the profile together take more than {purse.limit:,} units of work for one decision: "
            "have fewer of them, or let them loop over less"
        )
