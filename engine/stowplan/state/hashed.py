"""Questions that columns are asked by, which are keys of dictionaries at every decision: their hash is computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T", bound=type)


class HashedOnce:
    """Base of a frozen, slotted dataclass under `hashed_once`."""

    __slots__ = ("_hash",)


def hashed_once(cls: T) -> T:
    """Decorator above `dataclass(frozen=True, slots=True)` of a subclass of HashedOnce."""
    compute: Callable[[object], int] = cls.__hash__  # type: ignore[assignment]

    def __hash__(self: object) -> int:  # noqa: N807 - it becomes the method
        try:
            return self._hash  # type: ignore[attr-defined,no-any-return]
        except AttributeError:
            found: int = compute(self)
            object.__setattr__(self, "_hash", found)
            return found

    cls.__hash__ = __hash__  # type: ignore[assignment,method-assign]
    return cls
