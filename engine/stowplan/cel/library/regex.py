"""Regular expressions, always RE2: linear in the text, bounded in memory."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2  # type: ignore[import-untyped]

from stowplan.cel import limits
from stowplan.cel.errors import CelError
from stowplan.cel.meter import KEPT_PATTERNS
from stowplan.cel.overloads import declare


def _options() -> Any:
    options = re2.Options()
    options.max_mem = limits.PATTERN_MEMORY
    options.log_errors = False
    return options


@lru_cache(maxsize=2 * KEPT_PATTERNS)
def compile_pattern(pattern: str) -> Any:
    """The compiled pattern; CelError for one that RE2 refuses."""
    if len(pattern.encode("utf-8", "surrogatepass")) > limits.PATTERN:
        raise CelError(f"a regular expression of more than {limits.PATTERN} bytes")
    try:
        return re2.compile(_whole(pattern), _options())
    except re2.error as error:
        text = error.args[0] if error.args else ""
        raise CelError(f"error parsing regexp: {text.decode() if isinstance(text, bytes) else text}") from None


def _whole(text: str) -> str:
    """The text as RE2 takes it: halves of surrogate pairs, which JSON may hold, are replaced."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _matches(text: str, pattern: str) -> bool:
    return compile_pattern(pattern).search(_whole(text)) is not None


def _find(text: str, pattern: str) -> str:
    match = compile_pattern(pattern).search(_whole(text))
    return "" if match is None else str(match.group())


def _find_all(text: str, pattern: str, count: int = -1) -> list[str]:
    found: list[str] = []
    last = -1
    for match in compile_pattern(pattern).finditer(_whole(text)):
        if 0 <= count <= len(found):
            break
        if match.end() == match.start() == last:
            continue  # an empty match right after another does not count
        last = match.end()
        found.append(match.group())
    return found


MATCHES = (
    declare("string.matches(string) -> bool", _matches, "whether the RE2 pattern is found in the text", grows=1),
    declare("matches(string, string) -> bool", _matches, "whether the RE2 pattern is found in the text", grows=1),
)
REGEX = (
    declare("string.find(string) -> string", _find, "the first match, empty if there is none", grows=1),
    declare("string.findAll(string) -> list(string)", _find_all, "all matches", grows=1),
    declare("string.findAll(string, int) -> list(string)", _find_all, "the first n matches, all if n is negative", grows=1),
)
