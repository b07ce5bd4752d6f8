"""A policy text on its way into force: read, checked and compiled as at the start, and kept from what only a restart changes."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from stowplan.edge.election import elected
from stowplan.edge.policies.names import unsaid
from stowplan.edge.serve.configz import policy_hash
from stowplan.policy import rules as _rules  # noqa: F401 - the first policy with rules is not to wait for this import
from stowplan.policy.compile import Policy, PolicyError, load
from stowplan.profile import Configuration, Origin, parse
from stowplan.profile.decode import camel
from stowplan.text import Code, Diagnostic, Severity, Source, Span

_EMPTY = re.compile(r"(?:\s+|#[^\n]*|---(?=\s|$)|\.\.\.(?=\s|$))*")
FIXED = ("leader_election", "client_connection", "delay_cache_until_active")
"""What a running scheduler has used already: its connection, its lease, and when it began to watch."""
_PARSE = parse
"""As for the import above: YAML is read by a module that is loaded when somebody asks for it."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A text that was found, or what kept it from being read.

    about   the object that it stands in, as Events refer to it; None for a file
    """

    source: Source
    wrong: Diagnostic | None = None
    about: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """A policy that may come into force, and the hash of its document."""

    policy: Policy
    digest: str


@dataclass(frozen=True, slots=True)
class Examiner:
    """Checks texts. `instead`: what the command line says about leader election."""

    instead: Mapping[str, Any] = field(default_factory=dict)

    def examine(self, offer: Offer, running: Configuration | None) -> Checked:
        """The policy of a text. Raises PolicyError with everything that is wrong; `running` is what is in force.

        A text without profiles is hardly meant where there were some, or in a ConfigMap; a file may begin so, as kube-scheduler's.
        """
        if offer.wrong is not None:
            raise PolicyError([offer.wrong])
        policy = strict(offer.source)
        digest = policy_hash(policy)
        policy = self.overridden(policy)
        changed = [] if running is None else list(unchangeable(running, policy.configuration))
        if unsaid(policy.configuration) and not (offer.about is None if running is None else unsaid(running)):
            changed.append(_no_profiles(policy.configuration))
        if changed:
            raise PolicyError([*changed, *policy.warnings])
        return Checked(policy, digest)

    def overridden(self, policy: Policy) -> Policy:
        """The policy with what the command line says. Raises PolicyError where the two do not go together."""
        configuration, wrong = elected(policy.configuration, dict(self.instead))
        if wrong:
            origin = policy.configuration.origin
            place = None if origin is None else origin.under("leaderElection").span
            raise PolicyError([Diagnostic(Code.INVALID, Severity.ERROR, text, place) for text in wrong])
        return dataclasses.replace(policy, configuration=configuration)


def digest_of(text: str) -> str:
    """The hash of a document; "" for a text that is no policy."""
    try:
        return policy_hash(strict(Source("", text)))
    except PolicyError:
        return ""


def strict(source: Source) -> Policy:
    """The policy of a text that is to decide: as strict as kube-scheduler, and a text of several documents is refused.

    Raises PolicyError.
    """
    policy = load(source)
    more = [each for each in policy.warnings if each.code is Code.MORE_DOCUMENTS and not _nothing(each.span)]
    if more:
        notes = ("a policy that schedules is one document: give each scheduler its own file or key",)
        wrong = [dataclasses.replace(each, severity=Severity.ERROR, notes=(*each.notes, *notes)) for each in more]
        raise PolicyError([each for each in policy.warnings if each not in more] + wrong)
    return policy


def _nothing(span: Span | None) -> bool:
    """Whether there is nothing from here on but comments and marks between documents."""
    return span is not None and _EMPTY.fullmatch(span.source.text, span.start) is not None


def _no_profiles(configuration: Configuration) -> Diagnostic:
    """What a text is refused with that says nothing of profiles, where others have been served or might have been meant."""
    message = "missing: pods of the profiles so far would wait, and only default-scheduler would be served"
    note = "if that is meant, write profiles: [{schedulerName: default-scheduler}]"
    origin = configuration.origin
    place = origin.span if isinstance(origin, Origin) else None
    return Diagnostic(Code.REQUIRED, Severity.ERROR, message, place, "profiles", (note,))


def unchangeable(running: Configuration, wanted: Configuration) -> Iterator[Diagnostic]:
    """Fields that only a restart can change, where they differ."""
    for name in FIXED:
        old, new = getattr(running, name), getattr(wanted, name)
        if old == new:
            continue
        if not dataclasses.is_dataclass(old):
            yield _fixed(wanted, (camel(name),), old, new)
            continue
        for each in dataclasses.fields(old):
            before, after = getattr(old, each.name), getattr(new, each.name)
            if before != after:
                yield _fixed(wanted, (camel(name), camel(each.name)), before, after)


def _fixed(wanted: Configuration, path: tuple[str, ...], old: object, new: object) -> Diagnostic:
    message = f"cannot change while the scheduler runs: it was started with {_shown(old)}, not {_shown(new)}"
    note = "restart the scheduler for that; everything else may be changed at any time"
    origin = wanted.origin
    if not isinstance(origin, Origin):
        return Diagnostic(Code.FORBIDDEN, Severity.ERROR, message, None, ".".join(path), (note,))
    return origin.under(*path).diagnostic(Code.FORBIDDEN, message, Severity.ERROR, note)


def _shown(value: object) -> str:
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g}s"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)
