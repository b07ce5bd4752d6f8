"""One finding: a stable code, how bad it is, one sentence, and where; how it looks is the business of `render`."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from stowplan.text.source import Span


class Severity(enum.StrEnum):
    """`ERROR` refuses the text; the others do not."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Code(enum.StrEnum):
    """Every kind of finding. A number is never given to another kind: users filter by it."""

    # the text as such
    SYNTAX = "STW001"
    DUPLICATE_KEY = "STW002"
    BAD_ALIAS = "STW003"
    MORE_DOCUMENTS = "STW004"
    NOT_A_MAPPING = "STW005"
    # what kind of object it is
    NO_KIND = "STW010"
    UNKNOWN_KIND = "STW011"
    # structure
    UNKNOWN_FIELD = "STW101"
    WRONG_TYPE = "STW102"
    # values
    INVALID = "STW201"
    REQUIRED = "STW202"
    DUPLICATE = "STW203"
    UNSUPPORTED = "STW204"
    FORBIDDEN = "STW205"
    # plugins of a profile
    NO_SUCH_PLUGIN = "STW301"
    WRONG_POINT = "STW302"
    ENABLED_TWICE = "STW303"
    QUEUE_SORT = "STW304"
    NO_BIND = "STW305"
    PLACEMENT_GENERATE = "STW306"
    WEIGHT_OVERFLOW = "STW307"
    REMOVED_PLUGIN = "STW308"
    ARGS_KIND = "STW309"
    NO_FIT_ARGS = "STW310"
    # accepted, but worth knowing
    UNUSED_ARGS = "STW401"
    EXTENDER = "STW402"
    NO_EFFECT = "STW403"
    # not in this version
    RULES = "STW501"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. `path` is written as Kubernetes writes it (`profiles[0].schedulerName`), empty for the whole text."""

    code: Code
    severity: Severity
    message: str
    span: Span | None = None
    path: str = ""
    notes: tuple[str, ...] = ()

    @property
    def is_error(self) -> bool:
        """Whether the text must be refused because of it."""
        return self.severity is Severity.ERROR


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Whether any of the findings refuses the text."""
    return any(diagnostic.is_error for diagnostic in diagnostics)
