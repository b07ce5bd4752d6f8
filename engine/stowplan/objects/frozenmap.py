"""Immutable string-keyed mappings that are interned by content: equal content is the same object.

Fifty thousand replicas share a few hundred label sets and resource lists, so sharing is what keeps a cluster small
in memory, and identity makes comparing them free. The table is weak: what no fact holds is forgotten.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping
from typing import Any, ClassVar, Generic, Self, TypeVar
from weakref import WeakValueDictionary

V = TypeVar("V")


class FrozenMap(Mapping[str, V], Generic[V]):
    """A hashable mapping, iterated in the order of its keys. Make one with `of`, never with the constructor."""

    __slots__ = ("__weakref__", "_content", "_hash")

    _known: ClassVar[WeakValueDictionary[frozenset[Any], Any]]
    _content: dict[str, V]
    _hash: int

    def __init_subclass__(cls) -> None:
        cls._known = WeakValueDictionary()

    @classmethod
    def of(cls, content: Mapping[str, V]) -> Self:
        """The one instance with this content."""
        items = frozenset(content.items())
        known: Self | None = cls._known.get(items)
        if known is None:
            known = cls()
            known._content = {name: content[name] for name in sorted(content)}
            known._hash = hash(items)
            cls._known[items] = known
        return known

    def get(self, key: str, default: Any = None) -> Any:
        return self._content.get(key, default)

    def items(self) -> ItemsView[str, V]:
        return self._content.items()

    def __getitem__(self, key: str) -> V:
        return self._content[key]

    def __contains__(self, key: object) -> bool:
        return key in self._content

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FrozenMap):
            return self is other or (type(self) is type(other) and self._content == other._content)
        return NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).of, (self._content,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._content!r})"
