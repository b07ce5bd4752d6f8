"""A configuration file becomes a `Configuration`, or a list of what is wrong with it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

from stowplan.profile.decode import decode
from stowplan.profile.model import Configuration
from stowplan.profile.rules import RULES
from stowplan.profile.validate import PERCENT, problems
from stowplan.profile.versions import KUBERNETES, LAST_POLICY, NEWEST, POLICY, STOWPLAN, is_old, is_served, last_served
from stowplan.profile.yaml_tree import Items, Leaf, Origin, Table, Tree, from_plain
from stowplan.text import Code, Diagnostic, Severity, Source, closest, did_you_mean, has_errors

_MOST_PROBLEMS = 2000
_JITTER = 1.2  # client-go's JitterFactor, looked at when the elector is built
_PLACEHOLDER = re.compile(r"@\w+@|\$\{?\w+\}?|<[\w-]+>|\{\{.*\}\}|REPLACE|CHANGE_?ME|TODO")


def read(
    source: Source | Table | Mapping[str, Any] | None, *, compat: bool = True, minor: int = NEWEST
) -> tuple[Configuration | None, list[Diagnostic]]:
    """The configuration with defaults set, and everything wrong with it; None if it is not one at all.

    A text is YAML or JSON; a tree is one that was read; a mapping is an already parsed document and gives findings without
    positions; None is the default configuration. A configuration that comes with errors is for further checks only. With
    `compat` an apiVersion that kube-scheduler 1.`minor` does not read is refused; without, older ones are read, with a warning.
    """
    if source is None:
        return Configuration().with_defaults(), []
    tree: Tree | None
    diagnostics: list[Diagnostic]
    if isinstance(source, Source):
        from stowplan.profile.yaml_reader import parse  # noqa: PLC0415 - the default configuration needs no YAML

        tree, diagnostics = parse(source)
    elif isinstance(source, Table):
        tree, diagnostics = source, []
    else:
        tree, diagnostics = from_plain(source), []
    if tree is None:
        return None, diagnostics
    wrong = _wrong_object(tree, compat, minor)
    diagnostics += wrong
    if not isinstance(tree, Table) or (wrong and (compat or not _known_kind(tree))):
        return None, diagnostics
    if is_old(_text_of(tree, "apiVersion"), _text_of(tree, "kind")):
        tree, found = _migrated(tree)
        diagnostics += found
    body, refused = _without_rules(tree)
    configuration, found = decode(Configuration, Origin(tree), body)
    configuration = configuration.with_defaults()
    diagnostics += refused + [_explained(finding) for finding in found]
    # what could not be read was replaced by a default, which is not to blame for what is wrong with it
    unread = {finding.span for finding in found if finding.code is Code.WRONG_TYPE and finding.span}
    invalid = [Origin(tree).problem(problem) for problem in islice(problems(configuration), _MOST_PROBLEMS)]
    diagnostics += [finding for finding in invalid if finding.span not in unread]
    if not has_errors(found):
        diagnostics += _hints(configuration, Origin(tree))
    return configuration, diagnostics


def _explained(finding: Diagnostic) -> Diagnostic:
    """The finding, and where a field comes from that belongs into every other object of Kubernetes."""
    if finding.message != 'unknown field "metadata"':
        return finding
    return dataclasses.replace(finding, notes=("kustomize wants it, kube-scheduler refuses it: name the file instead",))


def _text_of(tree: Table, name: str) -> str:
    leaf = tree.fields.get(name)
    return leaf.value if isinstance(leaf, Leaf) and isinstance(leaf.value, str) else ""


def _known_kind(tree: Table) -> bool:
    """Whether the object is meant to be a configuration, whatever else is wrong with it."""
    return _text_of(tree, "kind") in ("", KUBERNETES[1], STOWPLAN[1], POLICY[1])


def _wrong_object(tree: Tree, compat: bool, minor: int) -> list[Diagnostic]:
    """Why the document is none of the kinds that are read here; nothing if it is."""
    origin = Origin(tree)
    if not isinstance(tree, Table):
        return [origin.diagnostic(Code.NOT_A_MAPPING, "expected a configuration, which is a mapping")]
    version, kind = _text_of(tree, "apiVersion"), _text_of(tree, "kind")
    missing = [name for name, text in (("apiVersion", version), ("kind", kind)) if not text]
    if missing:
        notes = [f'write "apiVersion: {KUBERNETES[0]}" and "kind: {KUBERNETES[1]}"']
        return [origin.diagnostic(Code.NO_KIND, f"{name} is missing", Severity.ERROR, *notes) for name in missing]
    if (version, kind) in (KUBERNETES, STOWPLAN) or (is_old(version, kind) and (not compat or is_served(version, minor))):
        return []
    message = f'no kind "{kind}" is registered for version "{version}"'
    known_kind = kind in (KUBERNETES[1], STOWPLAN[1])
    place = origin.under("apiVersion" if known_kind else "kind")
    finding = place.diagnostic(Code.UNKNOWN_KIND, message, Severity.ERROR, *_remedies(version, kind))
    meant = None if known_kind or kind == POLICY[1] else closest(kind, (KUBERNETES[1], STOWPLAN[1]))
    return [dataclasses.replace(finding, edits=place.writing(meant)) if meant else finding]


def _remedies(version: str, kind: str) -> list[str]:
    if kind == POLICY[1]:
        return [f"Policy files were read up to kube-scheduler 1.{LAST_POLICY}; convert the file to {KUBERNETES[0]}"]
    if is_old(version, kind):
        last = f"last served by kube-scheduler 1.{last_served(version, kind)}"
        return [f"{last}; convert the file to {KUBERNETES[0]}"]
    if kind in (KUBERNETES[1], STOWPLAN[1]):
        right = KUBERNETES[0] if kind == KUBERNETES[1] else STOWPLAN[0]
        left = "a placeholder was left: " if _PLACEHOLDER.search(version) else ""
        return [f"{left}write {right}"]
    guess = did_you_mean(kind, (KUBERNETES[1], STOWPLAN[1]))
    return [guess] if guess else [f"a configuration is a {KUBERNETES[1]} of {KUBERNETES[0]}"]


def _migrated(tree: Table) -> tuple[Table, list[Diagnostic]]:
    """An older object as the newest version, with a warning that lists what differs."""
    # few files are old, and these take longer to import than a file to check
    from stowplan.profile.migrate import migrate  # noqa: PLC0415
    from stowplan.profile.thaw import Memory, freeze, thaw  # noqa: PLC0415

    version, kind = _text_of(tree, "apiVersion"), _text_of(tree, "kind")
    memory: Memory = {}
    data = thaw(tree, memory)
    changes = migrate(data)
    last = last_served(version, kind)
    subject = f"kind {kind}" if kind == POLICY[1] else f'version "{version}"'
    message = f"{subject} was last read by kube-scheduler 1.{last}: `stowplan convert` makes {KUBERNETES[0]} of this"
    place = Origin(tree).under("kind" if kind == POLICY[1] else "apiVersion")
    found = [place.diagnostic(Code.OLD_VERSION, message, Severity.WARNING)]
    found += [Origin(tree).under(*change.path).diagnostic(Code.CONVERTED, change.text, Severity.INFO) for change in changes]
    frozen = freeze(data, memory, place.span)
    assert isinstance(frozen, Table)
    return frozen, found


def _without_rules(tree: Table) -> tuple[Table, list[Diagnostic]]:
    """The fields of the kind alone: a rollout, and rules in the profile itself, are for a SchedulerPolicy and refused elsewhere."""
    body = tree.without("apiVersion", "kind")
    if _text_of(tree, "kind") == STOWPLAN[1]:
        return body, []
    refused = []
    if "rollout" in body.fields:
        place, notes = body.keys.get("rollout"), (f"it belongs to {STOWPLAN[1]} of {STOWPLAN[0]}",)
        refused.append(Diagnostic(Code.UNKNOWN_FIELD, Severity.ERROR, 'unknown field "rollout"', place, "", notes))
        body = body.without("rollout")
    profiles = tree.fields.get("profiles")
    if not isinstance(profiles, Items):
        return body, refused
    for index, profile in enumerate(profiles.items):
        for name in ("variables", "rules"):
            if isinstance(profile, Table) and name in profile.fields:
                message = f'unknown field "profiles[{index}].{name}"'
                both = (f"it belongs to {STOWPLAN[1]} of {STOWPLAN[0]}", f"or under the pluginConfig of {RULES}")
                refused.append(Diagnostic(Code.UNKNOWN_FIELD, Severity.ERROR, message, profile.keys.get(name), "", both))
    items = tuple(p.without("variables", "rules") if isinstance(p, Table) else p for p in profiles.items)
    fields = {**body.fields, "profiles": Items(items, profiles.span)}
    return Table(fields, body.keys, body.span), refused


def _hints(configuration: Configuration, origin: Origin) -> list[Diagnostic]:
    """What is accepted, and has no effect here or an unwelcome one in kube-scheduler."""
    percentages: list[tuple[Origin, int | None]] = [(origin, configuration.percentage_of_nodes_to_score)]
    percentages += [(p.origin, p.percentage_of_nodes_to_score) for p in configuration.versions if p.origin]
    message = (
        "has no effect in stowplan, which looks at every node in every decision; kube-scheduler stops at this share of the nodes"
    )
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
