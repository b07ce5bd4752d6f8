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
    """Every kind of finding. A number is never given to another kind: users filter by it.

    1xx structure, 2xx meaning, 3xx expressions, 4xx hints.
    """

    UNKNOWN_FIELD = "STW101"
    WRONG_TYPE = "STW102"
    SYNTAX = "STW103"
    DUPLICATE_KEY = "STW104"
    BAD_ALIAS = "STW105"
    MORE_DOCUMENTS = "STW106"
    NOT_A_MAPPING = "STW107"
    NO_KIND = "STW108"
    UNKNOWN_KIND = "STW109"
    OLD_VERSION = "STW110"
    TEMPLATE = "STW111"
    PLACEHOLDER = "STW112"
    OTHER_OBJECT = "STW113"
    WRAPPED = "STW114"
    EMPTY = "STW115"
    TOO_MANY = "STW116"
    UNREADABLE = "STW117"
    CONVERTED = "STW118"
    # values
    INVALID = "STW201"
    REQUIRED = "STW202"
    DUPLICATE = "STW203"
    UNSUPPORTED = "STW204"
    FORBIDDEN = "STW205"
    # plugins of a profile
    NO_SUCH_PLUGIN = "STW211"
    WRONG_POINT = "STW212"
    ENABLED_TWICE = "STW213"
    QUEUE_SORT = "STW214"
    NO_BIND = "STW215"
    PLACEMENT_GENERATE = "STW216"
    WEIGHT_OVERFLOW = "STW217"
    REMOVED_PLUGIN = "STW218"
    ARGS_KIND = "STW219"
    NO_FIT_ARGS = "STW220"
    FOREIGN_PLUGIN = "STW221"
    MISSPELT = "STW222"
    # accepted by kube-scheduler, and hardly meant
    UNUSED_ARGS = "STW231"
    EXTENDER = "STW232"
    NO_EFFECT = "STW233"
    ZERO_WEIGHT = "STW234"
    POINTLESS_WEIGHT = "STW235"
    NEGATIVE_WEIGHT = "STW236"
    CORDONED = "STW237"
    UNENFORCED = "STW238"
    INERT = "STW239"
    WEIGHT_RESET = "STW240"
    NOT_SERVED = "STW241"
    NAME_REMOVED = "STW242"
    # expressions of rules
    RULES = "STW301"
    EXPRESSION = "STW302"
    UNKNOWN_NAME = "STW303"
    WHOLE_DIVISION = "STW311"
    TEXT_ORDER = "STW312"
    IGNORES_NODE = "STW313"
    UNGUARDED = "STW314"
    CONSTANT = "STW315"
    UNKNOWN_LABEL = "STW316"
    FAILING = "STW317"
    # worth knowing
    SMALL_SHARE = "STW401"
    OPPOSED = "STW402"
    DEFAULT_NAME = "STW403"
    MISSING_NODE = "STW404"
    SHARES = "STW405"
    INCOMPLETE = "STW406"
    UNKNOWN_EFFECT = "STW407"

    EXPECTATION = "STW501"


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of the text that mends a finding: `span` is replaced by `text`."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. `path` is written as Kubernetes writes it (`profiles[0].schedulerName`), empty for the whole text."""

    code: Code
    severity: Severity
    message: str
    span: Span | None = None
    path: str = ""
    notes: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()
    """changes that mend it without a doubt, if there are such"""

    @property
    def is_error(self) -> bool:
        """Whether the text must be refused because of it."""
        return self.severity is Severity.ERROR


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Whether any of the findings refuses the text."""
    return any(diagnostic.is_error for diagnostic in diagnostics)
