"""Leader election as the configuration has it, with what the command line says instead."""

from __future__ import annotations

import dataclasses
from typing import Any

from stowplan.objects.qualified import subdomain_faults
from stowplan.profile import Configuration
from stowplan.profile.model import LeaderElection
from stowplan.profile.validate import problems

_JITTER = 1.2
"""client-go waits this much longer than `retryPeriod` at most (`JitterFactor`)."""


def elected(configuration: Configuration, instead: dict[str, Any]) -> tuple[Configuration, list[str]]:
    """The configuration with these fields of `leaderElection`, and what is wrong with the outcome."""
    election = dataclasses.replace(configuration.leader_election, **instead)
    changed = dataclasses.replace(configuration, leader_election=election)
    found = [str(problem) for problem in problems(changed)]
    return changed, found + _too_hasty(election) + _misnamed(election)


def _misnamed(election: LeaderElection) -> list[str]:
    """What no lease can be called, which the API server would say at every attempt."""
    if not election.leader_elect:
        return []
    names = {"resourceName": election.resource_name, "resourceNamespace": election.resource_namespace}
    return [f"leaderElection.{field}: {name!r}: {fault}" for field, name in names.items() for fault in subdomain_faults(name)]


def _too_hasty(election: LeaderElection) -> list[str]:
    """What client-go refuses on top (`NewLeaderElector`)."""
    if not election.leader_elect or election.renew_deadline > election.retry_period * _JITTER:
        return []
    return [f"leaderElection.renewDeadline: must be greater than {_JITTER} times retryPeriod"]
