"""What an expression reads: the paths of variables it touches, from which a rule's columns and events follow."""

from __future__ import annotations

from collections.abc import Mapping

from stowplan.cel.check import Checked
from stowplan.cel.tree import Bind, Call, Const, Fold, Ident, Node, OptMap, Select

Path = tuple[str, ...]
ELEMENT = "[]"  # any element of a list or value of a map
LENGTH = "#"  # how many elements a list has, and nothing of them
_MEMBERSHIP = "@in"


def touches(checked: Checked) -> frozenset[Path]:
    """The paths, such as ("node", "labels", "zone") or ("node", "pods", "[]", "labels", "app").

    A key that is no literal stands as "[]". Whatever lies below a path is read as well.
    """
    finder = _Finder(checked)
    finder.consume(finder.visit(checked.root, {}))
    return frozenset(finder.found)


class _Finder:
    def __init__(self, checked: Checked) -> None:
        self.checked = checked
        self.found: set[Path] = set()

    def consume(self, path: Path | None) -> None:
        if path is not None:
            self.found.add(path)

    def visit(self, node: Node, scope: Mapping[str, Path | None]) -> Path | None:  # noqa: PLR0911 - a line a kind
        """The path the node stands for, None if it is computed; what is used on the way is noted."""
        name = self.checked.variables.get(node)
        if name is not None:
            return (name,)
        if isinstance(node, Ident):
            return scope.get(node.name)
        if isinstance(node, Select):
            return self.below(node.operand, node.field, scope)
        if isinstance(node, Call):
            return self.call(node, scope)
        if isinstance(node, Fold):
            return self.fold(node, scope)
        if isinstance(node, (Bind, OptMap)):
            source = node.value if isinstance(node, Bind) else node.source
            inner = {**scope, node.name: self.visit(source, scope)}
            if isinstance(node, OptMap):
                self.consume(inner[node.name])
            self.consume(self.visit(node.body, inner))
            return None
        for child in node.children():
            self.consume(self.visit(child, scope))
        return None

    def below(self, operand: Node, step: str, scope: Mapping[str, Path | None]) -> Path | None:
        path = self.visit(operand, scope)
        return None if path is None else (*path, step)

    def call(self, node: Call, scope: Mapping[str, Path | None]) -> Path | None:
        if node.function in ("_[_]", "_[?_]"):
            container, key = node.args
            return self.keyed(container, key, scope)
        if node.function == _MEMBERSHIP and self.checked.types[node.args[1]].name == "map":
            self.consume(self.keyed(node.args[1], node.args[0], scope))
            return None
        parts = node.args if node in self.checked.global_calls else node.children()
        for part in parts:
            path = self.visit(part, scope)
            if node.function == "size" and path is not None and self.checked.types[part].name == "list":
                path = (*path, LENGTH)
            self.consume(path)
        return None

    def keyed(self, container: Node, key: Node, scope: Mapping[str, Path | None]) -> Path | None:
        if isinstance(key, Const) and isinstance(key.value, str):
            return self.below(container, key.value, scope)
        self.consume(self.visit(key, scope))
        return self.below(container, ELEMENT, scope)

    def fold(self, node: Fold, scope: Mapping[str, Path | None]) -> Path | None:
        """Notes what a macro uses of the elements; gives the path of a list of some of them."""
        path, kind = self.visit(node.source, scope), self.checked.types[node.source].name
        element = None if path is None else (*path, ELEMENT)
        self.consume((*path, LENGTH) if path is not None and kind == "list" else element)
        inner = dict(scope) | dict.fromkeys(node.names)
        if len(node.names) == 2 or kind != "map":
            inner[node.names[-1]] = element
        for part in node.children()[1:]:
            self.consume(self.visit(part, inner))
        return path if kind == "list" and node.kind in ("filter", "sortBy") else None
