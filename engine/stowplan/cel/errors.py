"""The one error of evaluation. It is a value of the language: `&&` and `||` absorb it, `evaluate` returns it."""

from __future__ import annotations

from stowplan.text import Span


class CelError(Exception):
    """Why an expression has no value.

    `absorbable` is false for what ends the whole evaluation (a budget is used up): `||` does not hide it. `place` is
    the offset range in the expression, `span` the same as a place in a text, once the program has added them.
    """

    def __init__(self, message: str, *, absorbable: bool = True) -> None:
        super().__init__(message)
        self.message = message
        self.absorbable = absorbable
        self.place: tuple[int, int] | None = None
        self.span: Span | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CelError) and other.message == self.message

    def __hash__(self) -> int:
        return hash(self.message)


def no_overload(name: str, *kinds: str) -> CelError:
    """No implementation of the function takes values of these types."""
    return CelError(f"no such overload: {name}({', '.join(kinds)})")


def no_key(key: object) -> CelError:
    """A map or object without the key that was asked for."""
    return CelError(f"no such key: {key}")


def overflow(kind: str = "integer") -> CelError:
    """A result that does not fit its type."""
    return CelError(f"{kind} overflow")
