"""/configz: the policy in force, as it was written and as it is carried out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stowplan.edge.serve.pages import Asked, Page, Reply, as_json
from stowplan.policy.compile import Policy, Profile
from stowplan.profile import plain

_DEFAULT = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
_HASH_DIGITS = 12
_VEIL = "--- REDACTED ---"
FINDINGS = 20
"""Errors and warnings of one policy that are shown."""


@dataclass(frozen=True, slots=True)
class InForce:
    """A policy, how many were in force before it, and where it comes from ("" for the defaults).

    more    what else is to be told: since when, warnings, a text that was refused
    """

    policy: Policy
    generation: int = 0
    source: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)


def written(policy: Policy) -> Any:
    """The document that the policy was compiled from, as JSON types."""
    origin = policy.configuration.origin
    return dict(_DEFAULT) if origin is None else plain(origin.tree)


def policy_hash(policy: Policy) -> str:
    """Twelve hexadecimal digits that are equal for equal documents, comments and layout aside."""
    return hashlib.sha256(msgspec.json.encode(written(policy), order="deterministic")).hexdigest()[:_HASH_DIGITS]


def identified(now: InForce) -> dict[str, Any]:
    """Which policy it is, and what else is to be told of it, as JSON types."""
    return {"generation": now.generation, "hash": policy_hash(now.policy), "source": now.source, **bounded(now.more)}


def bounded(told: Mapping[str, Any]) -> dict[str, Any]:
    """The same with the first of the findings, and how many more there are."""
    shown = {name: _first(value) if name in ("warnings", "errors") else value for name, value in told.items()}
    return shown | ({"rejected": bounded(told["rejected"])} if "rejected" in told else {})


def _first(findings: Sequence[str]) -> list[str]:
    more = len(findings) - FINDINGS
    return [*findings[:FINDINGS], f"and {more} more"] if more > 0 else list(findings)


def configz(in_force: Callable[[], InForce]) -> Page:
    """The page; `componentconfig` has the written document, as under kube-scheduler's /configz."""

    def answer(_: Asked) -> Reply:
        now = in_force()
        return as_json(
            {
                "componentconfig": _veiled(written(now.policy)),
                "policy": {
                    **identified(now),
                    "profiles": {name: _effective(profile) for name, profile in now.policy.profiles.items()},
                },
            }
        )

    return Page("/configz", answer)


def _veiled(value: Any) -> Any:
    """The document without the private keys of extenders."""
    if isinstance(value, list):
        return [_veiled(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: _VEIL if name == "keyData" and item else _veiled(item) for name, item in value.items()}


def _effective(profile: Profile) -> Mapping[str, Any]:
    """Extension point -> plugins in running order, and the weights of those that score."""
    return {
        "plugins": {point: list(names) for point, names in profile.points.items() if names},
        "weights": dict(profile.weights),
        "audits": [plugin.name for plugin in profile.audits],
    }
