"""Structured values of many rows for the expression language: members that are columns, the rest computed row by row."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np

from stowplan.cel.column import Column, Dictionary, Elements, Rows, View
from stowplan.cel.lift import each
from stowplan.cel.segments import walked
from stowplan.plugins.cel_rule.nodeview import Scene

Derive: TypeAlias = Callable[[Any], Any]


class Plain(View):
    """A column as a view."""

    __slots__ = ("_column",)

    def __init__(self, column: Column) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def derive(self, tag: Hashable, function: Derive) -> View:
        return Plain(each(self._column, tag, function))

    def column(self) -> Column:
        return self._column

    def elements(self, names: int) -> Elements | None:
        return walked(self._column, names)

    def row(self, index: int) -> Any:
        return self._column.row(index)


class Members(View):
    """Structured values of the asked rows; what is not known in columns is computed row by row."""

    __slots__ = ("_rows", "scene")
    opaque = True

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._rows: Rows | None = None

    def __len__(self) -> int:
        return self.scene.cluster.size

    def value(self, place: int) -> Any:
        """The value of one row."""
        raise NotImplementedError

    def known(self, kind: str, key: Any) -> View | None:
        """What a step leads to, if there is a column for it; `kind` is field, has, in, look or an index operator."""
        raise NotImplementedError

    def derive(self, tag: Hashable, function: Derive) -> View:
        if isinstance(tag, tuple) and len(tag) > 1 and isinstance(tag[-1], str):
            found = self.known(tag[0], tag[-1])
            if found is not None:
                return found
        return self.every().derive(tag, function)

    def every(self) -> View:
        """The values of all rows."""
        if self._rows is None:
            self._rows = Rows([self.value(place) for place in range(len(self))])
        return self._rows

    def column(self) -> Column:
        # most who ask only look at the kind, so the values come when they are asked for
        return Column("coded", np.arange(len(self)), Dictionary(_OnDemand(self), {"texts": False}))

    def elements(self, names: int) -> Elements | None:
        return self.every().elements(names)

    def row(self, index: int) -> Any:
        return self.value(index)


class _OnDemand(Sequence[Any]):
    """The values of all rows."""

    def __init__(self, members: Members) -> None:
        self._members = members

    def __len__(self) -> int:
        return len(self._members)

    def __getitem__(self, index: Any) -> Any:
        return self._members.value(index)
