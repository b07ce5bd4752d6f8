"""What the free-form members of a policy test must look like; the decoder leaves them as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stowplan.profile import Items, Leaf, Table, Tree, plain
from stowplan.text import Code, Diagnostic

if TYPE_CHECKING:
    from stowplan.edge.stowtest import Suite
    from stowplan.profile import Origin


def misshapen(suite: Suite) -> Iterator[Diagnostic]:
    """Everything that has the wrong shape, and tests that expect nothing."""
    yield from _objects(suite.objects, suite.origin)
    yield from _table(suite.profile, "profile", suite.origin)
    for test in suite.tests:
        yield from _objects(test.objects, test.origin)
        yield from _tables(test.args, "args", "plugin or rule", test.origin)
        yield from _table(test.expect.rejected, "expect.rejected", test.origin)
        yield from _tables(test.expect.score, "expect.score", "plugin or rule", test.origin)
        for plugin, nodes in _fields(test.expect.score):
            for node, number in _fields(nodes):
                if not isinstance(number, Leaf) or type(plain(number)) not in (int, float):
                    yield from _wrong(test.origin, f"expect.score.{plugin}.{node}", "a number")


def _fields(tree: Tree | None) -> list[tuple[str, Tree]]:
    return list(tree.fields.items()) if isinstance(tree, Table) else []


def _table(tree: Tree | None, name: str, origin: Origin | None) -> Iterator[Diagnostic]:
    if tree is not None and not isinstance(tree, Table):
        yield from _wrong(origin, name, "a map")


def _tables(tree: Tree | None, name: str, keys: str, origin: Origin | None) -> Iterator[Diagnostic]:
    yield from _table(tree, name, origin)
    for key, value in _fields(tree):
        if not isinstance(value, Table):
            yield from _wrong(origin, f"{name}.{key}", f"a map (by {keys})")


def _objects(tree: Tree | None, origin: Origin | None) -> Iterator[Diagnostic]:
    if tree is not None and not isinstance(tree, Items):
        yield from _wrong(origin, "objects", "a list of Kubernetes objects")


def _wrong(origin: Origin | None, name: str, wanted: str) -> Iterator[Diagnostic]:
    if origin is not None:
        parts = name.split(".")
        yield origin.under(*parts).diagnostic(Code.WRONG_TYPE, f"must be {wanted}")
