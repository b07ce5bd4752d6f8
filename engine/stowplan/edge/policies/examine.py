"""A policy text on its way into force: read, checked and compiled as at the start, and kept from what only a restart changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from stowplan.edge.election import elected
from stowplan.edge.serve.configz import policy_hash
from stowplan.policy import rules as _rules  # noqa: F401 - the first policy with rules is not to wait for this import
from stowplan.policy.compile import Policy, PolicyError, load
from stowplan.profile import Configuration, Origin, parse
from stowplan.profile.decode import camel
from stowplan.text import Code, Diagnostic, Severity, Source

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
        """The policy of a text. Raises PolicyError with everything that is wrong; `running` is what has been started with."""
        if offer.wrong is not None:
            raise PolicyError([offer.wrong])
        policy = load(offer.source)
        digest = policy_hash(policy)
        policy = self.overridden(policy)
        changed = [] if running is None else list(unchangeable(running, policy.configuration))
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
