"""What a YAML scalar means to Kubernetes, which turns YAML into JSON with the YAML 1.1 rules of go-yaml v2.

So `yes` and `on` are booleans, `010` is 8, `1_000` is 1000 and dates stay strings.
"""

from __future__ import annotations

import re
from typing import TypeAlias

Scalar: TypeAlias = bool | int | float | str | None

_STANDARD = "tag:yaml.org,2002:"
_WORDS: dict[str, Scalar] = {
    **{word: True for base in ("y", "yes", "true", "on") for word in (base, base.capitalize(), base.upper())},
    **{word: False for base in ("n", "no", "false", "off") for word in (base, base.capitalize(), base.upper())},
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **{sign + word: float("inf") for sign in ("", "+") for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
}
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_LOWEST, _HIGHEST = -(2**63), 2**64 - 1
_EXACT_JSON = 1e21


def resolve(text: str, tag: str | None, plain: bool) -> Scalar:
    """The value of a scalar. `plain` is false for quoted and block scalars; an unknown tag makes a string.

    Raises ValueError when a tag (`!!int`) contradicts the text.
    """
    if not tag:
        return _guess(text) if plain else text
    short = tag.removeprefix(_STANDARD)
    if short not in ("bool", "int", "float", "null"):
        return text
    value = _guess(text)
    if _kind(value) != short and not (short == "float" and _kind(value) == "int"):
        raise ValueError(f"cannot read {text!r} as !!{short}")
    return value


def key_text(value: Scalar) -> str:
    """The JSON name of a mapping key."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _guess(text: str) -> Scalar:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    digits = text if text[0] == "." else text.replace("_", "")
    integer = _integer(digits)
    if integer is not None:
        return integer
    if _FLOAT.match(digits) is None:
        return text
    return as_json(float(digits))


def as_json(number: float) -> int | float:
    """JSON has one kind of number and Go prints a whole float without a point: Kubernetes takes 16.0 for an integer."""
    return int(number) if number.is_integer() and abs(number) < _EXACT_JSON else number


def _integer(text: str) -> int | None:
    match = _INTEGER.match(text)
    if match is None:
        return None
    sign, hexadecimal, binary, octal, decimal = match.groups()
    base, digits = next((b, d) for b, d in ((16, hexadecimal), (2, binary), (8, octal), (10, decimal)) if d)
    value = int(sign + digits, base) if len(digits) <= _HIGHEST.bit_length() else _HIGHEST + 1
    return value if _LOWEST <= value <= _HIGHEST else None


def _kind(value: Scalar) -> str:
    if isinstance(value, bool):
        return "bool"
    return {type(None): "null", int: "int", float: "float"}.get(type(value), "str")
