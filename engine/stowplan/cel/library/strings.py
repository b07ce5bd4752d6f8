"""Strings: tests, search, cutting and joining. Indices count code points; out of range is an error."""

from __future__ import annotations

from typing import Any

from stowplan.cel import limits
from stowplan.cel.errors import CelError, no_overload
from stowplan.cel.overloads import declare
from stowplan.cel.values import kind_of

_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
# Go's unicode.IsSpace, which is what trim() removes
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"


def _out_of_range(index: int) -> CelError:
    return CelError(f"index out of range: {index}")


def bounded(length: int) -> None:
    """Refuses a string before it is made."""
    if length > limits.STRING:
        raise CelError(f"a string of more than {limits.STRING} characters", absorbable=False)


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if start < 0:
        raise _out_of_range(start)
    return text.find(part, start) if part else min(start, len(text))


def _index_of_strict(text: str, part: str, start: int) -> int:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text.find(part, start)


def _last_index_of(text: str, part: str) -> int:
    return text.rfind(part)


def _last_index_from(text: str, part: str, last: int) -> int:
    if last < 0:
        raise _out_of_range(last)
    if not part:
        return min(last, len(text))
    return -1 if last >= len(text) else text.rfind(part, 0, last + len(part))


def _last_index_strict(text: str, part: str, last: int) -> int:
    if not 0 <= last <= len(text):
        raise _out_of_range(last)
    return text.rfind(part, 0, last + len(part))


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    times = text.count(old) if count < 0 else min(count, text.count(old))
    bounded(len(text) + times * (len(new) - len(old)))
    return text.replace(old, new, count)


def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if separator:
        return text.split(separator, count - 1 if count > 0 else -1)
    if count < 0 or count >= len(text):
        return list(text)
    return [*text[: count - 1], text[count - 1 :]]


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        if not 0 <= start <= len(text):
            raise _out_of_range(start)
        return text[start:]
    if start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


def _join(items: Any, separator: str = "") -> str:
    for item in items:
        if type(item) is not str:
            raise no_overload("join", kind_of(item))
    bounded(sum(map(len, items)) + len(separator) * max(0, len(items) - 1))
    return separator.join(items)


_QUOTED = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\", '"': '\\"'}


def _quote(text: str) -> str:
    body = "".join(_QUOTED.get(c, c) if not 0xD800 <= ord(c) < 0xE000 else "\N{REPLACEMENT CHARACTER}" for c in text)
    return f'"{body}"'


CORE = (
    declare("string.contains(string) -> bool", lambda text, part: part in text, "whether the text holds the other"),
    declare("string.startsWith(string) -> bool", str.startswith, "whether the text starts with the other"),
    declare("string.endsWith(string) -> bool", str.endswith, "whether the text ends with the other"),
)
STRINGS = (
    declare("string.charAt(int) -> string", _char_at, "the character at an index, empty at the end"),
    declare("string.indexOf(string) -> int", _index_of, "where the other starts first, -1 if nowhere"),
    declare("string.lastIndexOf(string) -> int", _last_index_of, "where the other starts last, -1 if nowhere"),
    declare("string.lowerAscii() -> string", lambda text: text.translate(_LOWER), "A to Z made small"),
    declare("string.upperAscii() -> string", lambda text: text.translate(_UPPER), "a to z made large"),
    declare("string.trim() -> string", lambda text: text.strip(_SPACE), "without white space at both ends"),
    declare("string.replace(string, string) -> string", _replace, "every occurrence replaced", grows=1),
    declare("string.replace(string, string, int) -> string", _replace, "at most n occurrences replaced", grows=1),
    declare("string.split(string) -> list(string)", _split, "the parts between separators", grows=1),
    declare("string.split(string, int) -> list(string)", _split, "at most n parts, the last with the rest", grows=1),
    declare("string.substring(int) -> string", _substring, "from an index to the end"),
    declare("string.substring(int, int) -> string", _substring, "from an index to before another"),
    declare("list(string).join() -> string", _join, "all strings in a row", grows=1),
    declare("list(string).join(string) -> string", _join, "all strings with a separator between", grows=1),
    declare("strings.quote(string) -> string", _quote, "in double quotes, with escapes"),
)
LENIENT_INDEX = (  # Kubernetes' version: an offset past the end finds nothing
    declare("string.indexOf(string, int) -> int", _index_of, "where the other starts first at or after an index"),
    declare("string.lastIndexOf(string, int) -> int", _last_index_from, "where the other starts last at or before an index"),
)
STRICT_INDEX = (
    declare("string.indexOf(string, int) -> int", _index_of_strict, "where the other starts first at or after an index"),
    declare("string.lastIndexOf(string, int) -> int", _last_index_strict, "where the other starts last at or before an index"),
)
REVERSE = (declare("string.reverse() -> string", lambda text: text[::-1], "the characters from last to first"),)
