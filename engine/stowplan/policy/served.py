"""Which fields and values an older kube-scheduler does not know."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.policy.releases import args_since, fields_since
from stowplan.profile import Items, Leaf, Origin, Table, Tree
from stowplan.profile.yaml_tree import at
from stowplan.text import Code, Diagnostic, Path


def not_served(tree: Table, minor: int, *, compat: bool = False) -> list[Diagnostic]:
    """An error for each field of a configuration that came after the release.

    With `compat` only for those that it refuses, not for those that it ignores.
    """
    found = []
    for pattern, since in fields_since().items():
        for path in _written(tree, pattern, ()) if since > minor else ():
            message = f"kube-scheduler 1.{minor} does not know this field: it came with 1.{since}"
            found.append(Origin(tree, path).diagnostic(Code.NOT_SERVED, message))
    for (plugin, name), since in args_since(minor, compat=compat).items():
        for path in _written(tree, ("profiles", "*", "pluginConfig", "*", "args", name), ()):
            written = at(tree, (*path[:-2], "name"))
            if isinstance(written, Leaf) and written.value == plugin:
                message = f"kube-scheduler 1.{minor} does not take this argument: 1.{since} is the first that does by default"
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
