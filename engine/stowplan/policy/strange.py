"""What is strange about a configuration outside of its plugins: placeholders, empty keys, extenders that ask nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stowplan.profile import Configuration, Extender, Items, Leaf, Origin, Tree
from stowplan.profile.yaml_tree import at
from stowplan.text import Code, Diagnostic, Path, Severity

_PLACEHOLDER = re.compile(
    r"@[A-Z][A-Z0-9_]*@|\$\{[A-Za-z_]\w*\}|\$\([A-Z_]+\)|^<[A-Za-z][\w -]*>$|\{\{(?:(?!\{\{).)*\}\}|\{%(?:(?!\{%).)*%\}|^__\w+__$"
    r"|\b(?:REPLACE|CHANGE)_?(?:ME|WITH\w*|THIS)?\b|^(?:TODO|FIXME|XXX+)\b"
)
_LISTS = ("profiles", "extenders")
_MOST = 50


def strange(configuration: Configuration) -> Iterator[Diagnostic]:
    """Findings about a configuration that was read from a text."""
    origin = configuration.origin
    if origin is None:
        return
    for name in _LISTS:
        written = at(origin.tree, (name,))
        if isinstance(written, Leaf) and written.value is None and written.span is not None:
            message = f"empty: the same as no {name}"
            yield origin.under(name).diagnostic(Code.EMPTY, message, Severity.INFO)
    profiles = at(origin.tree, ("profiles",))
    only = profiles.items[0] if isinstance(profiles, Items) and len(profiles.items) == 1 else None
    if only is not None and at(only, ("schedulerName",)) is None and only.span != origin.tree.span:  # else nobody wrote it
        message = "no schedulerName on the only profile: default-scheduler is taken"
        yield origin.under("profiles", 0).diagnostic(Code.DEFAULT_NAME, message, Severity.INFO)
    yield from (finding for _, finding in zip(range(_MOST), _placeholders(origin.tree, origin.tree, ()), strict=False))
    for extender in configuration.extenders:
        if extender.origin is not None:
            yield from _extender(extender, extender.origin)


def _placeholders(root: Tree, tree: Tree, path: Path) -> Iterator[Diagnostic]:
    if isinstance(tree, Leaf):
        if isinstance(tree.value, str) and path not in (("apiVersion",), ("kind",)) and _PLACEHOLDER.search(tree.value):
            yield Origin(root, path).diagnostic(Code.PLACEHOLDER, "a placeholder was left", Severity.WARNING)
        return
    children = enumerate(tree.items) if isinstance(tree, Items) else tree.fields.items()
    for name, child in children:
        if name not in ("rules", "variables", "match"):  # expressions have braces of their own
            yield from _placeholders(root, child, (*path, name))


def _extender(extender: Extender, place: Origin) -> Iterator[Diagnostic]:
    verbs = (extender.filter_verb, extender.prioritize_verb, extender.bind_verb, extender.preempt_verb)
    secure = extender.url_prefix.startswith("https:")
    told: list[tuple[Path, str]] = []
    if not any(verbs):
        told.append(((), "no verb is given: the extender is never asked"))
    if extender.weight and not extender.prioritize_verb:
        told.append((("weight",), "without prioritizeVerb the extender gives no scores: the weight is ignored"))
    if extender.enable_https and not secure and extender.url_prefix:
        told.append((("enableHTTPS",), "the scheme is that of urlPrefix: this calls plain http"))
    if extender.tls_config and not secure and not extender.enable_https:
        told.append((("tlsConfig",), "urlPrefix is not https: certificates are not used"))
    for path, message in told:
        yield place.under(*path).diagnostic(Code.NO_EFFECT, message, Severity.WARNING)
