"""Expression text into tokens. Refuses what is no token: unknown characters, unfinished strings, bad escapes."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from stowplan.cel.limits import RefusedError
from stowplan.cel.values import INT_MAX, UINT_MAX, UInt


class Token(NamedTuple):
    """`kind` is the operator itself, or name, quoted (a name in backquotes), int, value, end."""

    kind: str
    text: str
    start: int
    end: int
    value: Any = None


_TOKEN = re.compile(
    r"""(?P<space>[ \t\n\f\r]+|//[^\n]*)
    |(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<number>(?:0x[0-9a-fA-F]+|[0-9]+)[uU]?)
    |(?P<string>(?P<prefix>[bB][rR]?|[rR][bB]?)?(?P<quote>\"{3}|'{3}|"|'))
    |(?P<name>[_a-zA-Z][_a-zA-Z0-9]*)
    |`(?P<quoted>[a-zA-Z0-9_.\-/ ]+)`
    |(?P<operator>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}])
    """,
    re.VERBOSE | re.ASCII,
)
_BODY = {  # what may stand between the quotes: (raw, triple) -> text for a quote character
    (False, False): r"(?:[^\\\r\n{0}]|\\.)*",
    (True, False): r"[^\r\n{0}]*",
    (False, True): r"(?:[^\\]|\\.)*?",
    (True, True): r".*?",
}
_BODIES = {
    (raw, quote): re.compile(f"({_BODY[raw, len(quote) == 3].format(quote)}){quote}", re.DOTALL)
    for raw in (False, True)
    for quote in ("'", '"', "'''", '"""')
}
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\?\"'`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|)", re.ASCII
)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_WORDS = {"true": True, "false": False, "null": None}


def tokens(text: str) -> list[Token]:
    """The tokens of the text, the last of kind `end`; RefusedError at the first that is none."""
    found: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise RefusedError(f"unexpected character {text[position]!r}", position, position + 1)
        kind = match.lastgroup or ""
        position = match.end()
        if kind == "space":
            continue
        token = _token(text, match, kind)
        position = token.end
        found.append(token)
    found.append(Token("end", "", len(text), len(text)))
    return found


def _token(text: str, match: re.Match[str], kind: str) -> Token:  # noqa: PLR0911 - a line a kind
    start, end, written = match.start(), match.end(), match.group()
    if kind == "string":
        return _string(text, match)
    if kind == "operator":
        return Token(written, written, start, end)
    if kind == "quoted":
        return Token("quoted", match["quoted"], start, end)
    if kind == "float":
        value = float(written)
        if value == float("inf"):
            raise RefusedError("invalid double literal: it is too large", start, end)
        return Token("float", written, start, end, value)
    if kind == "number":
        return _number(written, start, end)
    if written in _WORDS:
        return Token("value", written, start, end, _WORDS[written])
    return Token("in" if written == "in" else "name", written, start, end)


def _number(written: str, start: int, end: int) -> Token:
    unsigned = written[-1] in "uU"
    digits = written[:-1] if unsigned else written
    most = UINT_MAX if unsigned else INT_MAX + 1  # one more, for a minus sign in front
    value = int(digits, 16) if digits[:2] == "0x" else int(digits[-400:])
    if len(digits) > 300 or value > most:
        raise RefusedError(f"invalid {'uint' if unsigned else 'int'} literal: it does not fit 64 bits", start, end)
    return Token("uint" if unsigned else "int", written, start, end, UInt(value) if unsigned else value)


def _string(text: str, match: re.Match[str]) -> Token:
    prefix = (match["prefix"] or "").lower()
    if prefix == "rb":  # only `br` is a prefix; `rb"x"` reads as a name and a string
        return Token("name", match["prefix"], match.start(), match.start() + 2)
    body = _BODIES["r" in prefix, match["quote"]].match(text, match.end())
    if body is None:
        raise RefusedError("a string that does not end", match.start(), len(text))
    inner = body[1]
    if "b" in prefix:
        value: str | bytes = inner.encode() if "r" in prefix else _unescape_bytes(inner, match.end())
    else:
        inner = inner.replace("\r\n", "\n").replace("\r", "\n")
        value = inner if "r" in prefix or "\\" not in inner else _unescape(inner, match.end())
    return Token("value", text[match.start() : body.end()], match.start(), body.end(), value)


def _unescape(body: str, offset: int) -> str:
    def one(match: re.Match[str]) -> str:
        simple, byte, four, eight, octal = match.groups()
        if simple is not None:
            return _SIMPLE.get(simple, simple)
        code = int(byte or four or eight or "-1", 16) if octal is None else int(octal, 8)
        if code < 0:
            raise RefusedError("an escape that does not exist", offset + match.start(), offset + match.end() + 1)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise RefusedError("invalid unicode code point", offset + match.start(), offset + match.end())
        return chr(code)

    return _ESCAPE.sub(one, body)


def _unescape_bytes(body: str, offset: int) -> bytes:
    out, position = bytearray(), 0
    for match in _ESCAPE.finditer(body):
        simple, byte, four, eight, octal = match.groups()
        out += body[position : match.start()].encode()
        position = match.end()
        if simple is not None:
            out += _SIMPLE.get(simple, simple).encode()
        elif byte is not None or octal is not None:
            out.append(int(byte, 16) if byte else int(octal, 8))
        else:
            what = "bytes take no \\u and \\U" if four or eight else "an escape that does not exist"
            raise RefusedError(what, offset + match.start(), offset + match.end() + 1)
    return bytes(out + body[position:].encode())
