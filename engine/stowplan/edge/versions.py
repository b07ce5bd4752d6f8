"""A policy in which a rollout gives all pods of its profile to one version, so that a test can ask about either."""

from __future__ import annotations

from dataclasses import replace

from stowplan.loop.rollout import CANDIDATE, STABLE
from stowplan.policy.compile import Policy
from stowplan.text import did_you_mean

ALL = 100.0
"""Percent."""


def giving(policy: Policy, version: str) -> Policy:
    """The policy with every pod of the rolled-out profile on one version, `stable` or `candidate`; as it is for ""."""
    if policy.rollout is None or not version:
        return policy
    percent = ALL if version == CANDIDATE else 0.0
    return replace(policy, rollout=replace(policy.rollout, percent=percent, match=None))


def wrong_version(policy: Policy, version: str) -> str | None:
    """What is wrong with the name of a version in a test."""
    if version and version not in (STABLE, CANDIDATE):
        hint = did_you_mean(version, (STABLE, CANDIDATE))
        return f'Unsupported value: "{version}": supported values: "{STABLE}", "{CANDIDATE}"{f"; {hint}" if hint else ""}'
    return "the policy has no rollout" if version and policy.rollout is None else None
