"""Semantic versions (semver 2), as Kubernetes' library reads and orders them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from stowplan.cel import kinds
from stowplan.cel.errors import CelError
from stowplan.cel.kinds import Type
from stowplan.cel.overloads import declare
from stowplan.cel.values import UINT_MAX

_PART = re.compile(r"[0-9A-Za-z-]+", re.ASCII)


@dataclass(frozen=True, slots=True, eq=False)
class Semver:
    """A version; `pre` holds numbers and texts. Build metadata takes no part in equality and order."""

    cel_type: ClassVar[Type] = kinds.SEMVER
    numbers: tuple[int, int, int]
    pre: tuple[int | str, ...] = ()
    build: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and (self.numbers, self.pre) == (other.numbers, other.pre)

    def __hash__(self) -> int:
        return hash((self.numbers, self.pre))

    def __str__(self) -> str:
        pre = "-" + ".".join(map(str, self.pre)) if self.pre else ""
        return ".".join(map(str, self.numbers)) + pre + ("+" + ".".join(self.build) if self.build else "")


def _number(text: str, name: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise CelError(f'Invalid character(s) found in {name} number "{text[:60]}"')
    if len(text) > 1 and text[0] == "0":
        raise CelError(f'{name.capitalize()} number must not contain leading zeroes "{text[:60]}"')
    if len(text) > 20 or int(text) > UINT_MAX:
        raise CelError(f'{name} number "{text[:60]}" is out of range')
    return int(text)


def _identifier(text: str) -> int | str:
    if text.isascii() and text.isdigit():
        return _number(text, "prerelease")
    if not text:
        raise CelError("Prerelease is empty")
    if not _PART.fullmatch(text):
        raise CelError(f'Invalid character(s) found in prerelease "{text[:60]}"')
    return text


def parse_semver(text: str, normalize: bool = False) -> Semver:
    """The version; with `normalize` a leading v, missing parts and leading zeros are accepted."""
    if normalize:
        text = _normalized(text)
    if not text:
        raise CelError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise CelError("No Major.Minor.Patch elements found")
    rest, plus, build = parts[2].partition("+")
    patch, dash, pre = rest.partition("-")
    numbers = (_number(parts[0], "major"), _number(parts[1], "minor"), _number(patch, "patch"))
    builds = tuple(build.split(".")) if plus else ()
    for part in builds:
        if not part:
            raise CelError("Build meta data is empty")
        if not _PART.fullmatch(part):
            raise CelError(f'Invalid character(s) found in build meta data "{part[:60]}"')
    return Semver(numbers, tuple(_identifier(part) for part in pre.split(".")) if dash else (), builds)


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped[:1].isascii() and stripped[:1].isdigit() else f"0{stripped}"
    if len(parts) < 3 and any(sign in parts[-1] for sign in "+-"):
        raise CelError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][: max(3, len(parts))])


def _compare(left: Semver, right: Semver) -> int:
    if left.numbers != right.numbers:
        return 1 if left.numbers > right.numbers else -1
    if not left.pre or not right.pre:
        return bool(right.pre) - bool(left.pre)
    for a, b in zip(left.pre, right.pre, strict=False):
        if a != b:
            if isinstance(a, int) and isinstance(b, int):
                return 1 if a > b else -1
            if isinstance(a, int) or isinstance(b, int):
                return -1 if isinstance(a, int) else 1  # numbers come before texts
            return 1 if a > b else -1
    return (len(left.pre) > len(right.pre)) - (len(left.pre) < len(right.pre))


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        parse_semver(text, normalize)
    except CelError:
        return False
    return True


def _signed(value: int) -> int:
    """Upstream turns the unsigned part into a signed one without a look."""
    return value - 2**64 if value >= 2**63 else value


_S = "kubernetes.Semver"
SEMVER = (
    declare(f"semver(string) -> {_S}", parse_semver, "the version"),
    declare(f"semver(string, bool) -> {_S}", parse_semver, "the version; true accepts a leading v, missing parts, leading zeros"),
    declare("isSemver(string) -> bool", _is_semver, "whether semver() accepts the text"),
    declare("isSemver(string, bool) -> bool", _is_semver, "whether semver() accepts the text"),
    declare(f"{_S}.major() -> int", lambda v: _signed(v.numbers[0]), "the first number"),
    declare(f"{_S}.minor() -> int", lambda v: _signed(v.numbers[1]), "the second number"),
    declare(f"{_S}.patch() -> int", lambda v: _signed(v.numbers[2]), "the third number"),
    declare(f"{_S}.isGreaterThan({_S}) -> bool", lambda a, b: _compare(a, b) > 0, "whether it comes later"),
    declare(f"{_S}.isLessThan({_S}) -> bool", lambda a, b: _compare(a, b) < 0, "whether it comes earlier"),
    declare(f"{_S}.compareTo({_S}) -> int", _compare, "-1, 0 or 1"),
)
