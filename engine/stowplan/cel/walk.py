"""What a macro walks: the elements of a list, the keys of a map, or both with their places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stowplan.cel.errors import CelError
from stowplan.cel.values import from_key, kind_of


def elements(source: Any, names: int) -> Iterator[tuple[Any, ...]]:
    """What a macro with that many names walks; CelError for what cannot be walked."""
    if isinstance(source, (list, tuple)):
        return iter(enumerate(source)) if names == 2 else ((value,) for value in source)
    if isinstance(source, Mapping):
        if names == 2:
            return ((from_key(key), value) for key, value in source.items())
        return ((from_key(key),) for key in source)
    raise CelError(f"no such overload: cannot walk a value of type '{kind_of(source)}'")
