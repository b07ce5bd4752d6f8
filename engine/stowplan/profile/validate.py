"""What a configuration must not say, plugins aside (`ValidateKubeSchedulerConfiguration`); the texts are upstream's."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from stowplan.profile.model import Configuration, Extender, LeaderElection, PluginSet, Profile, Rollout, candidate_name
from stowplan.text import Kind, Path, Problem, unsupported

PERCENT = 100


def problems(configuration: Configuration) -> Iterator[Problem]:
    """Every validation error of a configuration whose defaults are set, with full paths."""
    if configuration.client_connection.burst < 0:
        burst = configuration.client_connection.burst
        yield _invalid(("clientConnection", "burst"), burst, "must be non-negative")
    for problem in _leader_election(configuration.leader_election):
        yield problem.under("leaderElection")
    yield from _numbers(configuration)
    yield from _profiles(configuration.profiles)
    if configuration.rollout is not None:
        yield from (problem.under("rollout") for problem in _rollout(configuration.rollout, configuration.profiles))
    yield from _extenders(configuration.extenders)


def _invalid(path: Path, value: Any, detail: str) -> Problem:
    return Problem(path, Kind.INVALID, detail, value)


def _numbers(configuration: Configuration) -> Iterator[Problem]:
    initial, longest = configuration.pod_initial_backoff_seconds, configuration.pod_max_backoff_seconds
    if configuration.parallelism <= 0:
        yield _invalid(("parallelism",), configuration.parallelism, "should be an integer value greater than zero")
    yield from _percentage((), configuration.percentage_of_nodes_to_score)
    if initial <= 0:
        yield _invalid(("podInitialBackoffSeconds",), initial, "must be greater than 0")
    if longest < initial:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        yield _invalid(("podMaxBackoffSeconds",), longest, detail)


def _percentage(parent: Path, percentage: int | None) -> Iterator[Problem]:
    if percentage is not None and not 0 <= percentage <= PERCENT:
        yield _invalid((*parent, "percentageOfNodesToScore"), percentage, "not in valid range [0-100]")


def _leader_election(election: LeaderElection) -> Iterator[Problem]:
    if not election.leader_elect:
        return
    durations = (
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    )
    for name, duration in durations:
        if duration.total_seconds() <= 0:
            yield _invalid((name,), f"{duration.total_seconds():g}s", "must be greater than zero")
    if election.lease_duration <= election.renew_deadline:
        deadline = f"{election.renew_deadline.total_seconds():g}s"
        yield _invalid(("leaseDuration",), deadline, "must be greater than `RenewDeadline`")
    if election.resource_lock != "leases":
        yield _invalid(("resourceLock",), election.resource_lock, 'resourceLock value must be "leases"')


def _profiles(profiles: tuple[Profile, ...]) -> Iterator[Problem]:
    seen: dict[str, None] = {}
    for index, profile in enumerate(profiles):
        path: Path = ("profiles", index)
        name = profile.scheduler_name
        if not name:
            yield Problem((*path, "schedulerName"), Kind.REQUIRED)
        if (name or "") in seen:
            first = f"profiles[{list(seen).index(name or '')}] has this name"
            yield Problem((*path, "schedulerName"), Kind.DUPLICATE, value=name or "", notes=(first,))
        seen.setdefault(name or "")
        yield from (problem.under(*path) for problem in _profile(profile))
    yield from _common_queue_sort(profiles)


def _profile(profile: Profile) -> Iterator[Problem]:
    """What is wrong with a profile by itself, its name aside."""
    yield from _percentage((), profile.percentage_of_nodes_to_score)
    configured: set[str] = set()
    for position, entry in enumerate(profile.plugin_config):
        if entry.name in configured:
            yield Problem(("pluginConfig", position), Kind.DUPLICATE, value=entry.name)
        configured.add(entry.name)


def _rollout(rollout: Rollout, profiles: tuple[Profile, ...]) -> Iterator[Problem]:
    names = [profile.scheduler_name or "" for profile in profiles]
    if not rollout.profile:
        yield Problem(("profile",), Kind.REQUIRED, "the schedulerName of the profile that has a candidate")
    elif rollout.profile not in names:
        yield unsupported(("profile",), rollout.profile, names)
    elif candidate_name(rollout.profile) in names:
        detail = "explanations call the candidate so, and another profile has this name"
        yield Problem(("profile",), Kind.DUPLICATE, detail, candidate_name(rollout.profile))
    if rollout.percent is None and rollout.match is None:
        yield Problem(("percent",), Kind.REQUIRED, "say which pods the candidate gets: percent, match, or both")
    elif rollout.percent is not None and not 0 <= rollout.percent <= PERCENT:
        percent = int(rollout.percent) if rollout.percent.is_integer() else rollout.percent
        yield _invalid(("percent",), percent, "not in valid range [0-100]")
    if rollout.candidate is None:
        yield Problem(("candidate",), Kind.REQUIRED, "a profile without schedulerName")
        return
    if rollout.candidate.scheduler_name is not None:
        detail = "the candidate has the name of its profile; pods are given to it by percent and match"
        yield Problem(("candidate", "schedulerName"), Kind.FORBIDDEN, detail)
    yield from (problem.under("candidate") for problem in _profile(rollout.candidate))
    yield from (problem.under("candidate") for problem in _queue_sort(profiles[0], rollout.candidate))


def _common_queue_sort(profiles: tuple[Profile, ...]) -> Iterator[Problem]:
    """All profiles share one queue, so they must agree on its order (`validateCommonQueueSort`)."""
    first = profiles[0].plugins.queue_sort
    if len(first.enabled) > 1:
        path: Path = ("profiles", 0, "plugins", "queueSort", "enabled")
        yield _invalid(path, len(first.enabled), "only one queue sort plugin can be enabled")
    for index, profile in enumerate(profiles[1:], 1):
        yield from (problem.under("profiles", index) for problem in _queue_sort(profiles[0], profile))


def _queue_sort(first: Profile, profile: Profile) -> Iterator[Problem]:
    """Where a profile orders the queue otherwise than the first one."""
    wanted = first.plugins.queue_sort
    name = wanted.enabled[0].name if wanted.enabled else ""
    if profile.plugins.queue_sort != wanted:
        shown = _shown(profile.plugins.queue_sort)
        path: Path = ("plugins", "queueSort")
        yield Problem(path, Kind.INVALID, "must be the same for all profiles", shown, _queue_remedy(first))
    # also where no plugin is named: args without a name are compared then
    if any(entry.name == name for entry in profile.plugin_config) and profile.args_of(name) != first.args_of(name):
        yield _invalid(("pluginConfig",), profile.args_of(name), "queueSort must be the same for all profiles")


def _queue_remedy(first: Profile) -> tuple[str, ...]:
    """What the first profile says about the queue, where, and what to do."""
    place = first.origin.under("plugins", "queueSort").span if first.origin else None
    line = f" (line {place.line})" if place else ""
    says = "says something else" if first.plugins.queue_sort.enabled or first.plugins.queue_sort.disabled else "says nothing"
    return (f'profile "{first.scheduler_name}"{line} {says} about queueSort', "write the same queueSort in every profile, or none")


def _shown(plugins: PluginSet) -> dict[str, Any]:
    return {key: [entry["name"] for entry in entries] for key, entries in dataclasses.asdict(plugins).items()}


def _extenders(extenders: tuple[Extender, ...]) -> Iterator[Problem]:
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        path: Path = ("extenders", index)
        if extender.prioritize_verb and extender.weight <= 0:
            yield _invalid((*path, "weight"), extender.weight, "must have a positive weight applied to it")
        for position, resource in enumerate(extender.managed_resources):
            where: Path = (*path, "managedResources", position, "name")
            for detail in _extended_resource_errors(resource.name):
                yield _invalid(where, resource.name, detail)
            if resource.name in managed:
                yield _invalid(where, resource.name, "duplicate extender managed resource name")
            managed.add(resource.name)
    binders = [f"extenders[{index}]" for index, extender in enumerate(extenders) if extender.bind_verb]
    if len(binders) > 1:
        found, detail = f"found {len(binders)} extenders implementing bind", "only one extender can implement bind"
        yield Problem(("extenders",), Kind.INVALID, detail, found, (f"remove bindVerb from all but one of {', '.join(binders)}",))


def _extended_resource_errors(name: str) -> list[str]:
    """What keeps a name from being that of an extended resource (`validateExtendedResourceName`)."""
    # few files need these, and the room of objects takes longer to import than a file to check
    from stowplan.objects.amounts import is_extended  # noqa: PLC0415
    from stowplan.objects.qualified import key_faults  # noqa: PLC0415

    return key_faults(name) or ([] if is_extended(name) else ["is an invalid extended resource name"])
