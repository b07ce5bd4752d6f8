"""Which fields and values an older kube-scheduler does not know."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.policy.releases import fields_since
from stowplan.profile import Items, Origin, Table, Tree
from stowplan.text import Code, Diagnostic, Path


def not_served(tree: Table, minor: int) -> list[Diagnostic]:
    """An error for each field of a configuration that came after the release."""
    found = []
    for pattern, since in fields_since().items():
        for path in _written(tree, pattern, ()) if since > minor else ():
            message = f"kube-scheduler 1.{minor} does not know this field: it came with 1.{since}"
            found.append(Origin(tree, path).diagnostic(Code.NOT_SERVED, message))
    return found


def _written(tree: Tree, pattern: tuple[str, ...], path: Path) -> Iterator[Path]:
    if not pattern:
        yield path
    elif pattern[0] == "*" and isinstance(tree, Items):
        for index, item in enumerate(tree.items):
            yield from _written(item, pattern[1:], (*path, index))
    elif isinstance(tree, Table) and pattern[0] in tree.fields:
        yield from _written(tree.fields[pattern[0]], pattern[1:], (*path, pattern[0]))
