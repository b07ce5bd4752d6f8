"""What is accepted in the expressions of rules and hardly meant: seen in the expression, or on a cluster.

A finding on an expression has the characters it is about; the caller knows where they were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from stowplan.cel import Program
from stowplan.cel.tree import Call, Const, Node, Select, walk
from stowplan.plugins.cel_rule import errors, expressions_of
from stowplan.plugins.cel_rule.compiled import Ask, Expressions
from stowplan.plugins.plugin import Plugin
from stowplan.policy.compile import Policy, Profile
from stowplan.policy.guards import Place
from stowplan.state import LABELS, Cluster, Feasible, Store
from stowplan.text import Code, Diagnostic, Severity, some

MOST_PODS = 20
"""Pods for which rules are tried on a cluster."""
_MAPS = frozenset(
    ("labels", "annotations", "nodeSelector", "capacity", "allocatable", "limits", "requests", "overhead", "matchLabels")
)
"""members whose keys are free"""
_ORDER = frozenset(("_<_", "_<=_", "_>_", "_>=_"))


WELL_KNOWN = {
    "zone": "topology.kubernetes.io/zone",
    "region": "topology.kubernetes.io/region",
    "hostname": "kubernetes.io/hostname",
    "arch": "kubernetes.io/arch",
    "os": "kubernetes.io/os",
    "instance-type": "node.kubernetes.io/instance-type",
}
"""What people call labels that Kubernetes sets on nodes."""


@dataclass(frozen=True, slots=True)
class Lint:
    """A finding about some characters of an expression."""

    code: Code
    start: int
    end: int
    message: str
    note: str
    severity: Severity = Severity.WARNING


def lints(program: Program) -> Iterator[Lint]:
    """What is strange about an expression as such."""
    checked = program.checked
    for node in walk(checked.root):
        if isinstance(node, Call):
            kinds = [checked.types[part].name for part in node.args]
            if node.function == "_/_" and kinds == ["int", "int"]:
                message = "int divided by int is cut to a whole number"
                yield Lint(Code.WHOLE_DIVISION, node.start, node.end, message, "for a ratio write double(a) / double(b)")
            elif node.function in _ORDER and kinds == ["string", "string"]:
                message = 'texts are compared letter by letter: "10" is less than "9"'
                yield Lint(Code.TEXT_ORDER, node.start, node.end, message, "for numbers write int(...), for versions semver(...)")
            elif (key := domain_key(node)) in WELL_KNOWN:
                message = f'"{key}" is hardly the label that is meant: Kubernetes itself sets no label of this name'
                yield Lint(Code.UNKNOWN_LABEL, node.start, node.end, message, f'did you mean "{WELL_KNOWN[key]}"?')


def domain_key(node: Node) -> str | None:
    """The label in `node.domain("label")`."""
    named = isinstance(node, Call) and node.function == "domain" and node.target is not None and isinstance(node.args[0], Const)
    return str(node.args[0].value) if named else None  # type: ignore[attr-defined]


def meant(key: str, known: Iterable[str]) -> tuple[str, ...]:
    """The note with the label that was meant: one that ends like it behind a slash, or one that is written nearly so."""
    labels = sorted(known)
    well_known = WELL_KNOWN.get(key, "")
    behind = [well_known] if well_known in labels else [label for label in labels if "/" not in key and label.endswith(f"/{key}")]
    close = (behind or get_close_matches(key, labels, 1) or [well_known])[0]
    return (f'did you mean "{close}"?',) if close else ()


def missing(node: Node, place: Place, outcome: str) -> Lint:
    """A read of a key or member that may be missing, and what happens then."""
    base, key = ".".join(place[:-1]), place[-1]
    note = f'say what a missing key means, {base}[?"{key}"].orValue("..."), or ask first: when, has(), in'
    if place[-2] not in _MAPS and isinstance(node, Select):
        note = f"ask first: has({base}.{key}), in when or beside the read; or say what its absence means: {base}.?{key}"
    return Lint(Code.UNGUARDED, node.start, node.end, f'{base} may lack "{key}": {outcome}', note, Severity.INFO)


# On a cluster


def lints_on(policy: Policy, store: Store, *, verdicts: bool = True) -> Iterator[Diagnostic]:
    """What is strange about the rules of a policy on a cluster: labels that no node has, errors that nobody would see and,
    with `verdicts`, rules that make no difference between nodes; for the pending pods (the first few of them).
    """
    if not store.nodes:
        return
    for profile in policy.profiles.values():
        pods = [pod for pod in store.pending.values() if policy.profile_of(pod, store) == profile.scheduler_name][:MOST_PODS]
        for plugin in _rules(profile):
            expressions = expressions_of(plugin)
            if expressions is not None:
                yield from unknown_labels(expressions, store)
            asks = [plugin.asks(pod, None, Cluster(store)) for pod in pods]
            yield from _failing(plugin, store, dict(zip((pod.key for pod in pods), asks, strict=True)))
            if verdicts and pods:
                yield from _constant(plugin, store, asks)


def _rules(profile: Profile) -> Iterator[Plugin]:
    names = dict.fromkeys((*profile.points["filter"], *profile.points["score"]))
    yield from (profile.plugins[name] for name in names if expressions_of(profile.plugins[name]) is not None)
    yield from profile.audits


def unknown_labels(expressions: Expressions, store: Store) -> Iterator[Diagnostic]:
    """Labels that an expression reads, or whose domains it asks for, and no node carries."""
    known = {key for node in store.nodes for key in node.labels}
    read = [column.key for column in expressions.reading.coded if column.family == LABELS.family and isinstance(column.key, str)]
    for key in dict.fromkeys([*read, *_domain_keys(expressions)]):
        if key not in known:
            message = f'{expressions.name}: 0 of {len(store.nodes)} nodes have the label "{key}"'
            yield Diagnostic(Code.UNKNOWN_LABEL, Severity.WARNING, message, expressions.span, "", meant(key, known))


def _domain_keys(expressions: Expressions) -> Iterator[str]:
    programs = [expressions.value, expressions.when, expressions.message, *(one.program for one in expressions.variables.values())]
    for program in programs:
        for node in walk(program.checked.root) if program is not None else ():
            if key := domain_key(node):  # "" is the whole cluster
                yield key


def _failing(plugin: Plugin, store: Store, asks: Mapping[str, Any]) -> Iterator[Diagnostic]:
    """A rule whose errors leave no trace in a decision: a score that counts as 0, a filter that lets nodes pass."""
    expressions, cluster = expressions_of(plugin), Cluster(store)
    assert expressions is not None
    worst, text, failed = 0, "", []
    for key, ask in asks.items():
        found = errors(plugin, ask, cluster) if isinstance(ask, Ask) else {}
        if not found or (plugin.rejects is not None and any(mask.any() for mask in (plugin.rejects(ask, cluster) or {}).values())):
            continue  # whoever is rejected is told why
        failed.append(key)
        common = max(found, key=lambda error: found[error].sum())
        if (count := int(np.logical_or.reduce(list(found.values())).sum())) > worst:
            worst, text = count, common
    if failed:
        effect = "let pass" if plugin.scores is None else "counted as 0"
        message = f"rule {plugin.name} failed on {worst} of {len(store.nodes)} nodes ({effect}) for {some(failed, 2)}: {text}"
        yield Diagnostic(Code.FAILING, Severity.WARNING, message, expressions.span)


def _constant(plugin: Plugin, store: Store, asks: list[Any]) -> Iterator[Diagnostic]:
    expressions = expressions_of(plugin)
    assert expressions is not None
    applying = [ask for ask in asks if isinstance(ask, Ask)]
    where = f"on these {len(store.nodes)} nodes, for {len(applying)} of {len(asks)} pending pods looked at"
    if not applying:
        message = f"rule {plugin.name}: when is false for all {len(asks)} pending pods looked at"
        yield Diagnostic(Code.CONSTANT, Severity.INFO, message, expressions.span)
        return
    cluster = Cluster(store)
    everyone = Feasible(np.ones(cluster.size, dtype=np.int64))
    if plugin.scores is not None:
        raws = [plugin.scores(ask, cluster, everyone) for ask in applying]
        if all(raw is not None and (raw == raw[0]).all() for raw in raws):
            message = f"rule {plugin.name}: the score is the same for every node {where}"
            yield Diagnostic(Code.CONSTANT, Severity.INFO, message, expressions.span)
        return
    assert plugin.rejects is not None
    rejected = [np.logical_or.reduce([np.zeros(cluster.size), *(plugin.rejects(a, cluster) or {}).values()]) for a in applying]
    if not any(mask.any() for mask in rejected):
        message = f"rule {plugin.name}: the filter lets every node pass {where}"
    elif all(mask.all() for mask in rejected):
        message = f"rule {plugin.name}: the filter lets no node pass {where}"
    else:
        return
    yield Diagnostic(Code.CONSTANT, Severity.INFO, message, expressions.span)
