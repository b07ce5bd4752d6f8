"""Unit tests of policies: clusters in the short notation or as objects, and what a policy must make of them.

A file `*.stowtest.yaml` names a policy and holds tests. What stands beside `tests` is there for all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from stowplan.edge.configurations import sources
from stowplan.edge.load import load_cluster, load_policy
from stowplan.edge.notation import NotationError, read_notation
from stowplan.edge.stowshapes import misshapen, pointless_parts
from stowplan.edge.versions import giving
from stowplan.loop.simulate import simulate
from stowplan.policy.attempt import attempt
from stowplan.policy.compile import Policy, PolicyError
from stowplan.policy.evaluate import points
from stowplan.policy.nominated import Attempt
from stowplan.profile import Items, Leaf, Origin, Table, Tree, decode, parse, plain
from stowplan.state import Store
from stowplan.text import Code, Diagnostic, Severity, Source, did_you_mean, has_errors, some

SUFFIX = ".stowtest.yaml"
SHOWN = 8
"""Nodes that are named where one is not known."""
DEFAULT = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


@dataclass(frozen=True, slots=True)
class Expectation:
    """What must come out; what is left out may be anything."""

    profile: str = ""
    """name of the profile that decides; that of a candidate ends with (candidate)"""
    node: str = ""
    """the chosen node, the first by name of those with the highest total"""
    unschedulable: bool | None = None
    """whether no node fits"""
    feasible: tuple[str, ...] | None = None
    """exactly the nodes that pass every filter"""
    ranking: tuple[str, ...] | None = None
    """the best nodes in order of their totals; further ones may follow"""
    rejected: Tree | None = None
    """by node: the plugin, or a part of a reason, or a list of such"""
    score: Tree | None = None
    """by plugin and node: the normalised score"""
    message: str = ""
    """a part of the event's text"""
    placements: Mapping[str, str] = field(default_factory=dict)
    """by pod: its node after all pending pods are placed one after the other; "" for none"""
    origin: Origin | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Test:
    """One cluster and what must become of one pod in it."""

    name: str = ""
    cluster: str = ""
    objects: Tree | None = None
    pod: str = ""
    now: str = ""
    version: str = ""
    """`stable` or `candidate`: the version that a rollout gives all pods to in this test"""
    args: Tree | None = None
    """by plugin name: args that replace those of the policy, field by field"""
    expect: Expectation = Expectation()
    origin: Origin | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Suite:
    """A file of tests."""

    policy: str = ""
    profile: Tree | None = None
    """a policy in place, instead of a file"""
    cluster: str = ""
    objects: Tree | None = None
    now: str = ""
    tests: tuple[Test, ...] = ()
    origin: Origin | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True)
class Result:
    """What became of one test; no failures: it passed."""

    name: str
    failures: list[Diagnostic] = field(default_factory=list)
    fired: set[str] = field(default_factory=set)
    """rules that rejected a node or gave a score other than 0"""


@dataclass(slots=True)
class Report:
    """The results of a file; `broken` says why it could not be run."""

    path: str
    results: list[Result] = field(default_factory=list)
    broken: list[Diagnostic] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    inputs: list[Path] = field(default_factory=list)
    """files that the results follow from"""

    @property
    def failed(self) -> int:
        """Number of tests that did not pass."""
        return sum(bool(result.failures) for result in self.results)

    @property
    def unfired(self) -> list[str]:
        """Rules that no test made a difference with."""
        fired: set[str] = set().union(*(result.fired for result in self.results)) if self.results else set()
        return [rule for rule in self.rules if rule not in fired]


def files(paths: tuple[str, ...]) -> Iterator[Path]:
    """The test files that are named or lie below the folders that are named."""
    for path in map(Path, paths):
        yield from sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else (path,)


def run_file(path: Path) -> Report:
    """Run the tests of a file."""
    report = Report(str(path), inputs=[path])
    (source,) = sources([str(path)])
    if isinstance(source, Diagnostic):
        report.broken.append(source)
        return report
    tree, found = parse(source)
    if isinstance(tree, Table) and "tests" not in tree.fields and tree.fields.keys() & {"kind", "profiles"}:
        report.broken.append(_no_suite(tree))
        return report
    suite, wrong = decode(Suite, Origin(tree or Leaf(None, None)), tree)
    report.broken += [diagnostic for diagnostic in (*found, *wrong) if diagnostic.is_error]
    if not report.broken:
        report.broken += misshapen(suite)
    if not report.broken and not suite.tests:
        report.broken.append(_at(suite.origin, "no tests: write a list under tests"))
    if report.broken:
        return report
    named = _policy_of(suite, path.parent)
    report.inputs += [named] if isinstance(named, Path) else []
    try:
        policy = load_policy(named, strict=False)
    except PolicyError as error:
        report.broken += [diagnostic for diagnostic in error.diagnostics if diagnostic.is_error]
        return report
    report.rules = list(dict.fromkeys(rule for profile in policy.profiles.values() for rule in _rules(profile)))
    for index, test in enumerate(suite.tests):
        pointless = list(pointless_parts(test, policy))
        try:
            used = load_policy(_with_args(policy, test.args), strict=False) if test.args is not None and not pointless else policy
        except PolicyError as error:
            pointless += [found for found in error.diagnostics if found.is_error]
        result = Result(_name(test, index), pointless)
        report.results.append(result if pointless else _run(used, suite, test, index))
    return report


def _no_suite(tree: Table) -> Diagnostic:
    """Says what a file is that holds no tests."""
    kind = plain(tree.fields["kind"]) if "kind" in tree.fields else "configuration"
    place = Origin(tree, ("kind",) if "kind" in tree.fields else ("profiles",))
    notes = (f"write a file NAME{SUFFIX} with policy: and tests:", "`stowplan validate` checks a policy itself")
    return place.diagnostic(Code.OTHER_OBJECT, f"this is a {kind}, not a file of tests", Severity.ERROR, *notes)


def record(path: Path) -> int:
    """Write into a file what comes out of its tests that expect nothing; returns how many those were."""
    text = path.read_text(encoding="utf-8-sig")
    tree, found = parse(Source(str(path), text))
    suite, wrong = decode(Suite, Origin(tree or Leaf(None, None)), tree)
    if has_errors([*found, *wrong]):
        return 0  # running it tells what is wrong
    written = 0
    for test in reversed(suite.tests):
        span = test.origin.span if test.origin else None
        if span is None or test.expect.origin is not None:
            continue
        policy = load_policy(_policy_of(suite, path.parent), strict=False)
        used = policy if test.args is None else load_policy(_with_args(policy, test.args), strict=False)
        expected = json.dumps(_outcome(giving(used, test.version), _store(suite, test), test), ensure_ascii=False)
        body = span.text.rstrip()
        if body.startswith("{"):
            at, line = span.start + len(body) - 1, f", expect: {expected}"
        else:
            at, line = span.start + len(body), f"\n{' ' * (span.column - 1)}expect: {expected}"
        text = text[:at] + line + text[at:]
        written += 1
    if written:
        path.write_text(text, encoding="utf-8")
    return written


def _outcome(policy: Policy, store: Store, test: Test) -> dict[str, Any]:
    """What a test would have to expect."""
    if not test.pod and len(store.pending) != 1:
        return {"placements": {one.pod.key: one.node or "" for one in simulate(policy, store).placements}}
    judged = attempt(policy, store, store.pending[_pod(store, test) or ""])
    names = [node.name for node in store.nodes]
    chosen = {"node": names[int(judged.best[0])]} if len(judged.best) else {"unschedulable": True}
    rejected = {names[row]: list(status.reasons) for row, status in judged.infeasible.items()}
    return {**chosen, "feasible": [names[row] for row in judged.feasible.tolist()], "rejected": rejected}


def _policy_of(suite: Suite, folder: Path) -> Mapping[str, Any] | Path | None:
    if suite.profile is not None:
        found: Mapping[str, Any] = plain(suite.profile)
        return found
    return folder / suite.policy if suite.policy else None


def _with_args(policy: Policy, args: Tree) -> Mapping[str, Any]:
    """The policy's document with some args changed in every profile."""
    origin, given = policy.configuration.origin, plain(args)
    document: dict[str, Any] = dict(DEFAULT if origin is None else plain(origin.tree))
    document["profiles"] = [_changed(profile, given) for profile in document.get("profiles") or [{}]]
    if document.get("rollout"):
        document["rollout"] = {**document["rollout"], "candidate": _changed(document["rollout"]["candidate"], given)}
    return document


def _changed(profile: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    entries = {entry["name"]: entry for entry in profile.get("pluginConfig") or ()}
    for name, args in given.items():
        entries[name] = {"name": name, "args": {**(entries.get(name, {}).get("args") or {}), **args}}
    return {**profile, "pluginConfig": list(entries.values())}


def _name(test: Test, index: int) -> str:
    return test.name or f"test {index + 1}"


def _rules(profile: Any) -> list[str]:
    from stowplan.plugins.cel_rule import expressions_of

    names = [name for point in ("filter", "score") for name in profile.points[point]]
    return [name for name in dict.fromkeys(names) if expressions_of(profile.plugins[name])]


def _run(policy: Policy, suite: Suite, test: Test, index: int) -> Result:
    result, policy = Result(_name(test, index)), giving(policy, test.version)
    unmet = partial(_at, test.expect.origin, code=Code.EXPECTATION)
    try:
        store = _store(suite, test)
        pod = _pod(store, test)
    except (NotationError, ValueError) as error:
        found = getattr(error, "diagnostics", ())
        result.failures += found or [_at(test.origin, str(error))]
        return result
    if pod is not None:
        judged = attempt(policy, store, store.pending[pod])
        result.fired = _fired(judged)
        result.failures += [unmet(text, *where) for where, text in _compare(test.expect, judged, store)]
    if test.expect.placements:
        for each in store.pending.values() if pod is None else ():
            result.fired |= _fired(attempt(policy, store, each))
        result.failures += [unmet(text, *where) for where, text in _placed(policy, store, test.expect)]
    return result


def _store(suite: Suite, test: Test) -> Store:
    objects: list[Mapping[str, Any]] = []
    for holder in (suite, test):
        span = holder.origin.under("cluster").span if holder.origin and holder.cluster else None
        name = f"{span.source.name}:{span.line} (cluster)" if span else "cluster"
        objects += read_notation(Source(name, holder.cluster))
        objects += plain(holder.objects) if isinstance(holder.objects, Items) else ()
    store = load_cluster(objects)
    moment = test.now or suite.now
    if moment:
        store.set_now(datetime.fromisoformat(moment).timestamp())
    return store


def _pod(store: Store, test: Test) -> str | None:
    """Key of the pod that is asked about; None where only placements matter."""
    if test.pod:
        key = test.pod if "/" in test.pod else f"default/{test.pod}"
        if key not in store.pending:
            raise ValueError(f"there is no pending pod {test.pod}")
        return key
    if len(store.pending) == 1:
        return next(iter(store.pending))
    if test.expect.placements and replace(test.expect, placements={}) == Expectation():
        return None
    raise ValueError(f"{len(store.pending)} pods are pending: say which is meant with pod")


def _fired(judged: Attempt) -> set[str]:
    fired = {name for name, mask in (judged.filtering.rejected if judged.filtering else {}).items() if mask.any()}
    return fired | {name for name, scored in (judged.scoring.scores if judged.scoring else {}).items() if scored.raw.any()}


Failure = tuple[tuple[str, ...], str]


def _compare(expect: Expectation, judged: Attempt, store: Store) -> Iterator[Failure]:
    unknown = list(_unknown(expect, store))
    yield from unknown
    expect = replace(expect, **{where[0]: getattr(Expectation(), where[0]) for where, _ in unknown})
    names = [node.name for node in store.nodes]
    best = names[int(judged.best[0])] if len(judged.best) else None
    if expect.profile and judged.profile != expect.profile:
        yield ("profile",), f"expected profile {expect.profile}, got {judged.profile}"
    if expect.node and best != expect.node:
        yield ("node",), f"expected node {expect.node}, got {best or f'none: {judged.message or judged.skipped}'}"
    if expect.unschedulable is not None and expect.unschedulable != (best is None):
        wanted = "no" if expect.unschedulable else "some"
        yield ("unschedulable",), f"expected {wanted} node, got {best or f'none: {judged.message or judged.skipped}'}"
    feasible = [names[row] for row in judged.feasible.tolist()]
    if expect.feasible is not None and sorted(expect.feasible) != sorted(feasible):
        yield ("feasible",), f"expected {', '.join(sorted(expect.feasible)) or 'none'}, got {', '.join(feasible) or 'none'}"
    if expect.ranking is not None:
        yield from _ranking(expect.ranking, judged, feasible)
    if expect.message and expect.message not in (judged.message or ""):
        yield ("message",), f"expected {expect.message!r} in the message, got {judged.message!r}"
    yield from _rejected(plain(expect.rejected) if expect.rejected else {}, judged, store)
    yield from _scores(plain(expect.score) if expect.score else {}, judged, feasible, store)


def _unknown(expect: Expectation, store: Store) -> Iterator[Failure]:
    """Expected nodes that the cluster does not have."""
    for member, nodes in (("node", (expect.node,)), ("feasible", expect.feasible), ("ranking", expect.ranking)):
        missing = [node for node in nodes or () if node and node not in store.row_of]
        if missing:
            yield (member,), _no_node(missing[0], store)


def _no_node(name: str, store: Store) -> str:
    hint = did_you_mean(name, store.row_of) or f"nodes are {some(sorted(store.row_of), SHOWN)}"
    return f"there is no node {name} in the cluster of the test; {hint}"


def _ranking(wanted: tuple[str, ...], judged: Attempt, feasible: list[str]) -> Iterator[Failure]:
    totals = dict(zip(feasible, judged.scoring.totals.tolist() if judged.scoring else [], strict=False))
    order = sorted(totals, key=lambda node: (-totals[node], node))
    if tuple(order[: len(wanted)]) != wanted:
        scale = judged.scoring.scale if judged.scoring else 1
        got = ", ".join(f"{node} ({points(totals[node], scale)})" for node in order)
        yield ("ranking",), f"expected {', '.join(wanted)}, got {got or 'none'}"


def _rejected(wanted: Mapping[str, Any], judged: Attempt, store: Store) -> Iterator[Failure]:
    for node, texts in wanted.items():
        row = store.row_of.get(node)
        if row is None:
            yield ("rejected", node), _no_node(node, store)
            continue
        status = judged.infeasible.get(row)
        said = [] if status is None else [status.plugin, *status.reasons]
        for text in texts if isinstance(texts, list) else [texts]:
            if not any(str(text) in part for part in said):
                yield ("rejected", node), f"expected {node} to be rejected with {text!r}, got {said or 'no rejection'}"


def _scores(wanted: Mapping[str, Any], judged: Attempt, feasible: list[str], store: Store) -> Iterator[Failure]:
    scores = judged.scoring.scores if judged.scoring else {}
    for plugin, nodes in wanted.items():
        scored = scores.get(plugin)
        if scored is None:
            yield ("score", plugin), f"{plugin} gave no scores"
            continue
        for node, number in nodes.items():
            if node not in store.row_of:
                yield ("score", plugin, node), _no_node(node, store)
                continue
            got = points(int(scored.normalised[feasible.index(node)]), scored.unit) if node in feasible else None
            if got is None or abs(got - number) > 1e-6:
                yield ("score", plugin, node), f"expected {number}, got {'a node that does not fit' if got is None else got}"


def _placed(policy: Policy, store: Store, expect: Expectation) -> Iterator[Failure]:
    found = {placement.pod.key: placement for placement in simulate(policy, store).placements}
    for name, node in expect.placements.items():
        placement = found.get(name if "/" in name else f"default/{name}")
        got = None if placement is None else placement.node or ""
        if got != node:
            if node and node not in store.row_of:
                yield ("placements", name), _no_node(node, store)
                continue
            why = "it is not pending" if placement is None else got or f"no node: {placement.message or placement.skipped}"
            yield ("placements", name), f"expected {node or 'no node'}, got {why}"


def _at(origin: Origin | None, message: str, *path: str, code: Code = Code.INVALID) -> Diagnostic:
    return origin.under(*path).diagnostic(code, message) if origin else Diagnostic(code, Severity.ERROR, message)
