"""A configuration file becomes a `Configuration`, or a list of what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stowplan.profile.decode import decode, did_you_mean
from stowplan.profile.model import Configuration
from stowplan.profile.validate import PERCENT, problems
from stowplan.profile.yaml_tree import Items, Leaf, Origin, Table, Tree, from_plain, parse
from stowplan.text import Code, Diagnostic, Severity, Source, has_errors

KUBERNETES = ("kubescheduler.config.k8s.io/v1", "KubeSchedulerConfiguration")
STOWPLAN = ("stowplan.io/v1alpha1", "SchedulerPolicy")

_JITTER = 1.2  # client-go's JitterFactor, looked at when the elector is built
_LAST_SERVED = {
    "kubescheduler.config.k8s.io/v1beta2": "1.27",
    "kubescheduler.config.k8s.io/v1beta3": "1.28",
    "componentconfig/v1alpha1": "1.12",
}


def read(source: Source | Mapping[str, Any] | None) -> tuple[Configuration | None, list[Diagnostic]]:
    """The configuration with defaults set, and everything wrong with it; None if it is not one at all.

    A text is YAML or JSON; a mapping is an already parsed document and gives findings without positions; None is the
    default configuration. A configuration that comes with errors is for further checks only.
    """
    if source is None:
        return Configuration().with_defaults(), []
    tree: Tree | None
    if isinstance(source, Source):
        tree, diagnostics = parse(source)
    else:
        tree, diagnostics = from_plain(source), []
    if tree is None:
        return None, diagnostics
    diagnostics += _wrong_object(tree)
    if not isinstance(tree, Table) or any(d.code in (Code.NO_KIND, Code.UNKNOWN_KIND) for d in diagnostics):
        return None, diagnostics
    body, refused = _without_rules(tree)
    configuration, found = decode(Configuration, Origin(tree), body)
    configuration = configuration.with_defaults()
    diagnostics += refused + found
    if not has_errors(found):
        diagnostics += [Origin(tree).problem(problem) for problem in problems(configuration)]
        diagnostics += _hints(configuration, Origin(tree))
    return configuration, diagnostics


def _text_of(tree: Table, name: str) -> str:
    leaf = tree.fields.get(name)
    return leaf.value if isinstance(leaf, Leaf) and isinstance(leaf.value, str) else ""


def _wrong_object(tree: Tree) -> list[Diagnostic]:
    """Why the document is none of the kinds that are read here; nothing if it is."""
    origin = Origin(tree)
    if not isinstance(tree, Table):
        return [origin.diagnostic(Code.NOT_A_MAPPING, "expected a configuration, which is a mapping")]
    version, kind = _text_of(tree, "apiVersion"), _text_of(tree, "kind")
    missing = [name for name, text in (("apiVersion", version), ("kind", kind)) if not text]
    if missing:
        notes = [f'write "apiVersion: {KUBERNETES[0]}" and "kind: {KUBERNETES[1]}"']
        return [origin.diagnostic(Code.NO_KIND, f"{name} is missing", Severity.ERROR, *notes) for name in missing]
    if (version, kind) in (KUBERNETES, STOWPLAN):
        return []
    message = f'no kind "{kind}" is registered for version "{version}"'
    known_kind = kind in (KUBERNETES[1], STOWPLAN[1])
    return [
        origin.under("apiVersion" if known_kind else "kind").diagnostic(
            Code.UNKNOWN_KIND, message, Severity.ERROR, *_remedies(version, kind)
        )
    ]


def _remedies(version: str, kind: str) -> list[str]:
    if version in _LAST_SERVED:
        return [f"last served by kube-scheduler {_LAST_SERVED[version]}; convert the file to {KUBERNETES[0]}"]
    if kind == "Policy":
        return ["Policy files were read up to kube-scheduler 1.22"]
    if kind == KUBERNETES[1]:
        return [f"write {KUBERNETES[0]}"]
    if kind == STOWPLAN[1]:
        return [f"write {STOWPLAN[0]}"]
    guess = did_you_mean(kind, (KUBERNETES[1], STOWPLAN[1]))
    return [guess] if guess else [f"a configuration is a {KUBERNETES[1]} of {KUBERNETES[0]}"]


def _without_rules(tree: Table) -> tuple[Table, list[Diagnostic]]:
    """The fields that both kinds share, and an error for each rule list of a SchedulerPolicy."""
    body = tree.without("apiVersion", "kind")
    profiles = tree.fields.get("profiles")
    if _text_of(tree, "kind") != STOWPLAN[1] or not isinstance(profiles, Items):
        return body, []
    refused = []
    for index, profile in enumerate(profiles.items):
        for name in ("variables", "rules"):
            if isinstance(profile, Table) and name in profile.fields:
                place = Origin(tree, ("profiles", index, name))
                refused.append(place.diagnostic(Code.RULES, "rules are not supported yet in this version"))
    items = tuple(p.without("variables", "rules") if isinstance(p, Table) else p for p in profiles.items)
    fields = {**body.fields, "profiles": Items(items, profiles.span)}
    return Table(fields, body.keys, body.span), refused


def _hints(configuration: Configuration, origin: Origin) -> list[Diagnostic]:
    """What is accepted, and has no effect here or an unwelcome one in kube-scheduler."""
    percentages: list[tuple[Origin, int | None]] = [(origin, configuration.percentage_of_nodes_to_score)]
    percentages += [(p.origin, p.percentage_of_nodes_to_score) for p in configuration.profiles if p.origin]
    message = "has no effect: every node is looked at in every decision"
    hints = [
        place.under("percentageOfNodesToScore").diagnostic(Code.NO_EFFECT, message, Severity.INFO)
        for place, percentage in percentages
        if percentage and 0 < percentage < PERCENT
    ]
    election = configuration.leader_election
    if election.leader_elect and election.renew_deadline <= election.retry_period * _JITTER:
        message = f"kube-scheduler starts and stops: must be greater than {_JITTER} times retryPeriod"
        place = origin.under("leaderElection", "renewDeadline")
        hints.append(place.diagnostic(Code.INVALID, message, Severity.WARNING))
    return hints
