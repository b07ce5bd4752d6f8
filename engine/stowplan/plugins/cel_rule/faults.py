"""What is no value of a rule, and the sentence that says so."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from stowplan.cel import CelError
from stowplan.cel.column import Column
from stowplan.state import Mask

MOST = 1_000_000.0
"""Largest score of a rule, and with the other sign the smallest."""
NUMBERS = ("int", "double")
NO_SCORE = "the score is no number in range"
NAN = "the score is NaN, as 0.0 / 0.0 is"
NO_BOOL = "the filter is neither true nor false"
LONGEST = 1024
"""Characters of a message that an expression makes."""


def printable(text: str) -> str:
    """A text made by an expression, cut and without characters that a terminal would act upon."""
    if text.isprintable() and len(text) <= LONGEST:
        return text.strip()
    return "".join(c if c.isprintable() else " " for c in text[:LONGEST]).strip()


# One row


def no_bool(value: Any) -> str | None:
    """Why a value is none of a filter; None if it is one."""
    if isinstance(value, bool):
        return None
    return printable(value.message) if isinstance(value, CelError) else NO_BOOL


def no_score(value: Any) -> str | None:
    """Why a value is none of a score; None if it is one."""
    if isinstance(value, CelError):
        return printable(value.message)
    if point(1, value) is not None:
        return None
    return NAN if isinstance(value, float) and math.isnan(value) else NO_SCORE


def point(unit: int, value: Any) -> int | None:
    """A score in steps of the unit; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or abs(value) > MOST:
        return None
    return int(value) if unit == 1 else round(value * unit)


# Columns of bools or numbers


def failed_rows(column: Column) -> Mask:
    """Rows without a value."""
    failed: Mask = ~(np.abs(column.data) <= MOST) if column.kind in NUMBERS else np.zeros(len(column), dtype=np.bool_)
    return failed if column.failures is None else failed | column.failures.mask


def why_failed(column: Column, place: int) -> str:
    """Why one of them has none."""
    if column.failures is not None and column.failures.codes[place]:
        return printable(column.failures.table[column.failures.codes[place] - 1].message)
    return NAN if np.isnan(column.data[place]) else NO_SCORE


def column_errors(column: Column) -> Mapping[str, Mask]:
    """Rows without a value, by the reason."""
    found: dict[str, Mask] = {}
    failed = np.zeros(len(column), dtype=np.bool_)
    if column.failures is not None:
        failed = column.failures.mask
        for number, error in enumerate(column.failures.table, 1):
            text, mask = printable(error.message), column.failures.codes == number
            found[text] = found[text] | mask if text in found else mask
    if column.kind in NUMBERS:
        found[NAN] = np.isnan(column.data) & ~failed
        found[NO_SCORE] = ~(np.abs(column.data) <= MOST) & ~failed & ~found[NAN]
    return {text: mask for text, mask in found.items() if mask.any()}
