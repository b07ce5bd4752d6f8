"""`string.format(list)`: the verbs %s %d %f %e %b %x %X %o.

Two dialects: cel-spec's, and that of Kubernetes 1.37 (strings library version 2), which writes %f and %e for a locale:
thousands in groups, exponents as powers of ten, infinity as a sign.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from stowplan.cel.errors import CelError
from stowplan.cel.library.convert import bytes_to_string, show_double
from stowplan.cel.library.moments import show_duration, show_timestamp
from stowplan.cel.library.strings import bounded
from stowplan.cel.overloads import declare
from stowplan.cel.values import Duration, Timestamp, UInt, check_parts, from_key, kind_of

_CLAUSE = re.compile(r"%(?:(%)|(?:\.(\d+))?([a-zA-Z]))", re.ASCII)
_PRECISION = 6
_SUPERSCRIPT = str.maketrans("+-0123456789", "⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _wrong(verb: str, wanted: str, value: Any) -> CelError:
    return CelError(f"error during formatting: {verb} clause can only be used on {wanted}, was given {kind_of(value)}")


def clauses(text: str) -> Iterator[tuple[str, str, int]]:
    """(text before, verb, precision or -1) of every clause, the last with an empty verb; `%%` comes as text."""
    position, before = 0, ""
    while True:
        at = text.find("%", position)
        if at < 0:
            yield before + text[position:], "", -1
            return
        match = _CLAUSE.match(text, at)
        if match is None or (match[3] and match[3] not in "sdfebxXo"):
            rest = text[at + 1 : at + 2]
            raise CelError(
                f'could not parse formatting clause: unrecognized formatting clause "{match[3] if match else rest}"'
                if rest
                else "could not parse formatting clause: unexpected end of string"
            )
        before += text[position:at]
        position = match.end()
        if match[1]:
            before += "%"
            continue
        if match[2] and int(match[2][:9]) > 100:
            raise CelError("could not parse formatting clause: precision is larger than 100")
        yield before, match[3], int(match[2]) if match[2] else -1
        before = ""


def _formatter(dialect: _Dialect) -> Callable[[str, Sequence[Any]], str]:
    def kernel(text: str, args: Sequence[Any]) -> str:
        out: list[str] = []
        used = length = 0
        for before, verb, precision in clauses(text):
            out.append(before)
            if verb:
                if used >= len(args):
                    raise CelError(f"index {used} out of range")
                out.append(write(args[used], verb, precision, dialect))
                used += 1
            length += sum(map(len, out[-2:]))
            bounded(length)
        return "".join(out)

    return kernel


def write(value: Any, verb: str, precision: int, dialect: _Dialect) -> str:
    """One argument as its clause wants it; CelError if the clause does not take such values."""
    if verb == "s":
        check_parts(value)
        return dialect.text(value)
    if verb == "d":
        return _decimal(value, dialect)
    if verb in "fe":
        return _real(value, verb, precision, dialect)
    return _based(value, verb)


def _decimal(value: Any, dialect: _Dialect) -> str:
    if type(value) in (int, UInt):
        return str(int(value))
    if type(value) is float and not math.isfinite(value):
        return dialect.infinite(value, "d")
    raise CelError(f"error during formatting: decimal clause can only be used on integers, was given {kind_of(value)}")


def _real(value: Any, verb: str, precision: int, dialect: _Dialect) -> str:
    if value in ("NaN", "Infinity", "-Infinity"):
        value = float(value)
    if type(value) is not float and not (dialect.ints and type(value) in (int, UInt)):
        raise _wrong("fixed-point" if verb == "f" else "scientific", "doubles", value)
    number = float(value)
    digits = _PRECISION if precision < 0 else precision
    if not math.isfinite(number):
        return dialect.infinite(number, verb).rjust(0 if dialect.ints or verb == "f" else digits)
    return dialect.fixed(number, digits) if verb == "f" else dialect.scientific(number, digits)


def _based(value: Any, verb: str) -> str:
    kind = kind_of(value)
    if verb == "b":
        if kind not in ("int", "uint", "bool"):
            raise CelError(f"error during formatting: only integers and bools can be formatted as binary, was given {kind}")
        return f"{int(value):b}"
    if verb == "o":
        if kind not in ("int", "uint"):
            raise _wrong("octal", "integers", value)
        return f"{int(value):o}"
    if kind in ("int", "uint"):
        text = f"{int(value):x}"
    elif kind in ("string", "bytes"):
        text = (value if kind == "bytes" else value.encode("utf-8", "surrogatepass")).hex()
    else:
        what = "only integers, byte buffers, and strings can be formatted as hex"
        raise CelError(f"error during formatting: {what}, was given {kind}")
    return text.upper() if verb == "X" else text


_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def _quoted(text: str) -> str:
    """The text as Go's %q writes it."""

    def one(code: int) -> str:
        if code in _ESCAPES:
            return _ESCAPES[code]
        if chr(code).isprintable():
            return chr(code)
        return f"\\x{code:02x}" if code < 128 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

    return f'"{"".join(one(ord(character)) for character in text)}"'


class _Dialect:
    """How cel-spec writes values."""

    ints = True  # whether %f and %e take integers

    def infinite(self, value: float, _verb: str) -> str:
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"

    def fixed(self, value: float, digits: int) -> str:
        return f"{value:.{digits}f}"

    def scientific(self, value: float, digits: int) -> str:
        return f"{value:.{digits}e}"

    def double(self, value: float) -> str:
        return show_double(value) if math.isfinite(value) else self.infinite(value, "s")

    def text(self, value: Any) -> str:
        """%s: any value."""
        kind = kind_of(value)
        if kind == "string":
            return str(value)
        if kind == "bool":
            return "true" if value else "false"
        if kind in ("int", "uint"):
            return str(int(value))
        if kind == "double":
            return self.double(value)
        if kind == "null_type":
            return "null"
        return self.compound(value, kind)

    def compound(self, value: Any, kind: str) -> str:
        if kind == "bytes":
            return bytes_to_string(value)
        if isinstance(value, Timestamp):
            return show_timestamp(value)
        if isinstance(value, Duration):
            return show_duration(value)
        if kind == "type":
            return str(value.name)
        if kind == "list":
            return f"[{', '.join(map(self.text, value))}]"
        if kind == "map":
            entries = sorted((self.text(from_key(key)), self.text(item)) for key, item in value.items())
            return "{" + ", ".join(f"{key}: {item}" for key, item in entries) + "}"
        message = (
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
        )
        raise CelError(f"error during formatting: {message}, was given {kind}")


class _Kubernetes(_Dialect):
    ints = False

    def infinite(self, value: float, verb: str) -> str:
        if verb not in "fe":
            return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"

    def fixed(self, value: float, digits: int) -> str:
        return f"{value or 0.0:,.{digits}f}"  # no minus sign for zero

    def scientific(self, value: float, digits: int) -> str:
        """Upstream takes the precision for a width."""
        mantissa, _, power = f"{value or 0.0:.{_PRECISION}e}".partition("e")
        return f"{mantissa}×10{power.lstrip('+').translate(_SUPERSCRIPT)}".rjust(digits)

    def compound(self, value: Any, kind: str) -> str:
        """Lists and maps as CEL literals."""
        if kind == "list":
            return f"[{', '.join(map(self._literal, value))}]"
        if kind == "map":
            entries = sorted((self._key(from_key(key)), self._literal(item)) for key, item in value.items())
            return "{" + ", ".join(f"{key}:{item}" for key, item in entries) + "}"
        return super().compound(value, kind)

    def _key(self, key: Any) -> str:
        if kind_of(key) not in ("string", "bool", "int", "uint"):
            raise CelError(f"error during formatting: no formatting function for map key of type {kind_of(key)}")
        return self._literal(key)

    def _literal(self, value: Any) -> str:
        kind = kind_of(value)
        text = self.text(value)
        if kind in ("string", "bytes"):
            return ("b" if kind == "bytes" else "") + _quoted(text)
        if kind in ("timestamp", "duration"):
            return f"{kind}({_quoted(text)})"
        if kind == "double":
            return f"{value:.{_PRECISION}f}" if math.isfinite(value) else _quoted(text)
        return text


SPEC, KUBERNETES = _Dialect(), _Kubernetes()
_DOC = "the text with its clauses (%s, %d, %f, %e, %b, %x, %X, %o) replaced by the arguments"
FORMAT = (declare("string.format(list(dyn)) -> string", _formatter(SPEC), _DOC, grows=1),)
FORMAT_KUBERNETES = (declare("string.format(list(dyn)) -> string", _formatter(KUBERNETES), _DOC, grows=1),)
