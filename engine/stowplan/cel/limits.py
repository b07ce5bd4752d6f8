"""What an expression may ask for; every limit with the figure of its kind."""

from __future__ import annotations

from dataclasses import dataclass

SOURCE = 10 * 1024  # bytes of an expression, as for DRA selectors
DEPTH = 64  # nested parentheses, brackets, calls
CHAIN = 128  # height of the tree: chains of operators and selections count here
NODES = 2000
ITEMS = 1000  # of a list or map literal
PATTERN = 1024  # bytes of a regular expression
PATTERN_MEMORY = 1 << 20
STRING = 64 * 1024  # characters of a string made while evaluating
LIST = 100_000  # elements of a list made while evaluating
PARTS = 20_000  # of a nested value that is compared or printed: values can share parts and be exponentially large
LEVELS = 200  # of a nested value: walking it must not end in Python's own limit


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an expression is not accepted: the sentence and the characters it is about, a note with the remedy."""

    message: str
    start: int
    end: int
    field: bool = False  # an unknown field or variable rather than anything else
    note: str = ""


class RefusedError(Exception):
    """The parser's way out; carries the one refusal."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.refusal = Refusal(message, start, max(end, start + 1))
