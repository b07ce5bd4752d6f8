"""Topology domains and the cluster as columns: the same members as `DomainView`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from stowplan.cel import CelError
from stowplan.cel.column import Column, Rows, View
from stowplan.cel.kinds import Type
from stowplan.plugins.cel_rule.amounts import MILLI
from stowplan.plugins.cel_rule.members import Derive, Members, Plain
from stowplan.plugins.cel_rule.nodeview import DomainView, Scene


class NodeProbe:
    """Stands for a node to learn which domain a call asks for."""

    cel_type = Type("Node")

    def domain(self, key: str) -> str:
        """The label that names the domain."""
        return key


class _DomainProbe:
    """Stands for a domain to learn which pods a call counts."""

    cel_type = Type("Domain")

    def pods(self, labels: Any, namespaces: Any) -> tuple[Any, Any]:
        """What the call was given."""
        return labels, namespaces


def calls(tag: Hashable, name: str) -> bool:
    """Whether a step is a call of this function with known arguments."""
    return isinstance(tag, tuple) and tag[0] == "call" and getattr(tag[1], "name", "") == name


class DomainColumns(Members):
    """`node.domain(key)`, or the cluster as the domain of all nodes."""

    __slots__ = ("_key",)

    def __init__(self, scene: Scene, key: str) -> None:
        super().__init__(scene)
        self._key = key

    def value(self, place: int) -> DomainView:
        return DomainView(self.scene, place, self._key)

    def derive(self, tag: Hashable, function: Derive) -> View:
        if not calls(tag, "pods"):
            return super().derive(tag, function)
        try:
            test = self.scene.test(*function(_DomainProbe()))
        except CelError as error:
            return Rows([error] * len(self))
        return Plain(Column("int", self.scene.count(self._key, test)))

    def known(self, kind: str, key: Any) -> View | None:
        if kind != "field":
            return None
        if key == "nodes":
            return Plain(Column("int", self.scene.area(self._key).numbers("nodes")))
        return AreaColumns(self.scene, self._key, key) if key in ("allocatable", "requested", "free") else None


class AreaColumns(Members):
    """Amounts of a domain, in base units."""

    __slots__ = ("_key", "_which")

    def __init__(self, scene: Scene, key: str, which: str) -> None:
        super().__init__(scene)
        self._key, self._which = key, which

    def value(self, place: int) -> Any:
        return DomainView(self.scene, place, self._key)[self._which]

    def known(self, kind: str, key: Any) -> View | None:
        if kind not in ("field", "_[_]"):
            return None
        area, unit = self.scene.area(self._key), MILLI if key == "cpu" else 1.0
        if self._which == "free":
            return Plain(Column("double", (area.numbers("allocatable", key) - area.numbers("requested", key)) / unit))
        return Plain(Column("double", area.numbers(self._which, key) / unit))
