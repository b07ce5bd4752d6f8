"""What the free-form members of a policy test must look like; the decoder leaves them as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stowplan.edge.versions import wrong_version
from stowplan.plugins import IN_TREE
from stowplan.profile import Items, Leaf, Table, Tree, plain, rules_of
from stowplan.profile.decode import fields_of
from stowplan.profile.rules import RULES
from stowplan.text import Code, Diagnostic, Severity, did_you_mean

if TYPE_CHECKING:
    from stowplan.edge.stowtest import Suite, Test
    from stowplan.policy.compile import Policy
    from stowplan.profile import Origin


def misshapen(suite: Suite) -> Iterator[Diagnostic]:
    """Everything that has the wrong shape."""
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


def pointless_parts(test: Test, policy: Policy) -> Iterator[Diagnostic]:
    """What makes a test pass for nothing: it expects nothing, or its args are for a plugin or rule that there is not."""
    if test.origin is None:
        return
    expect = test.expect
    known: set[str] = set()
    for profile in policy.configuration.versions:
        known |= {rule.name for rule in rules_of(profile)[0].rules} | {config.name for config in profile.plugin_config}
    known |= {plugin.name for plugin in IN_TREE} | {RULES}
    for name, _ in _fields(test.args):
        if name not in known:
            hint = did_you_mean(name, known)
            place = test.origin.under("args", name)
            message = f'there is no plugin or rule "{name}" in the policy'
            yield place.diagnostic(Code.UNKNOWN_NAME, message, Severity.ERROR, *((hint,) if hint else ()))
    wrong = wrong_version(policy, test.version)
    if wrong:
        yield test.origin.under("version").diagnostic(Code.UNSUPPORTED, wrong)
    free = any(_fields(tree) for tree in (expect.rejected, expect.score))
    named = expect.profile or expect.node or expect.message or expect.placements or expect.ranking
    if not (free or named or expect.unschedulable is not None or expect.feasible is not None):
        place = test.origin if expect.origin is None else test.origin.under("expect")
        kind: Any = type(expect)
        note = f"write under expect what must come out, or let `stowplan test --record` do it: {', '.join(fields_of(kind))}"
        yield place.diagnostic(Code.REQUIRED, "Required value: the test expects nothing", Severity.ERROR, note)


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
