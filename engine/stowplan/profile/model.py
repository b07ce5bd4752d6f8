"""`kubescheduler.config.k8s.io/v1 KubeSchedulerConfiguration` as typed values.

Defaults are those of kube-scheduler 1.37. Absent and zero differ where they differ upstream: `parallelism: 0` is a
mistake, `qps: 0` means the default. Args of plugins stay positioned trees: what they mean is known to the plugins.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from stowplan.profile.decode import camel
from stowplan.profile.rules import Rule, Variable
from stowplan.profile.yaml_tree import Origin, Tree, plain
from stowplan.text import ZERO_MEANS_DEFAULT, Int32, written_as

DEFAULT_SCHEDULER = "default-scheduler"
ONLY_POLICY = {"only policy": True}
"""Metadata of a field that kube-scheduler does not have: it is for a SchedulerPolicy."""


@dataclass(frozen=True, slots=True)
class ClientConnection:
    """How to reach the API server."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = field(default="application/vnd.kubernetes.protobuf", metadata=ZERO_MEANS_DEFAULT)
    qps: float = field(default=50.0, metadata=ZERO_MEANS_DEFAULT)
    burst: Int32 = field(default=100, metadata=ZERO_MEANS_DEFAULT)


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """How replicas agree on the one that schedules."""

    leader_elect: bool = True
    lease_duration: timedelta = field(default=timedelta(seconds=15), metadata=ZERO_MEANS_DEFAULT)
    renew_deadline: timedelta = field(default=timedelta(seconds=10), metadata=ZERO_MEANS_DEFAULT)
    retry_period: timedelta = field(default=timedelta(seconds=2), metadata=ZERO_MEANS_DEFAULT)
    resource_lock: str = field(default="leases", metadata=ZERO_MEANS_DEFAULT)
    resource_name: str = field(default="kube-scheduler", metadata=ZERO_MEANS_DEFAULT)
    resource_namespace: str = field(default="kube-system", metadata=ZERO_MEANS_DEFAULT)


@dataclass(frozen=True, slots=True)
class PluginEntry:
    """A plugin in an `enabled` or `disabled` list; a weight of 0 means 1."""

    name: str = ""
    weight: Int32 = 0


@dataclass(frozen=True, slots=True)
class PluginSet:
    """What a profile says about one extension point. `disabled` may name `*`."""

    enabled: tuple[PluginEntry, ...] = ()
    disabled: tuple[PluginEntry, ...] = ()


_NOTHING = PluginSet()


@dataclass(frozen=True, slots=True)
class Plugins:
    """The extension points of a profile as written; `multi_point` stands for all the others."""

    pre_enqueue: PluginSet = _NOTHING
    queue_sort: PluginSet = _NOTHING
    pre_filter: PluginSet = _NOTHING
    filter: PluginSet = _NOTHING
    post_filter: PluginSet = _NOTHING
    pre_score: PluginSet = _NOTHING
    score: PluginSet = _NOTHING
    reserve: PluginSet = _NOTHING
    permit: PluginSet = _NOTHING
    pre_bind: PluginSet = _NOTHING
    bind: PluginSet = _NOTHING
    post_bind: PluginSet = _NOTHING
    placement_generate: PluginSet = _NOTHING
    placement_score: PluginSet = _NOTHING
    pod_group_post_filter: PluginSet = _NOTHING
    multi_point: PluginSet = _NOTHING

    def items(self) -> Iterator[tuple[str, PluginSet]]:
        """Every set with its key as written (`preFilter`), `multiPoint` last."""
        for entry in dataclasses.fields(self):
            yield camel(entry.name), getattr(self, entry.name)


POINTS = tuple(key for key, _ in Plugins().items() if key != "multiPoint")
"""The keys of the extension points proper."""


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """The args of one plugin, not read yet; None is the same as no entry."""

    name: str = ""
    args: Tree | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Profile:
    """A scheduler name and the plugins that work under it. A percentage of None means the global one."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()
    variables: tuple[Variable, ...] = field(default=(), metadata=ONLY_POLICY)
    rules: tuple[Rule, ...] = field(default=(), metadata=ONLY_POLICY)
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def args_of(self, name: str) -> Any:
        """The args written for a plugin as plain data; None if there are none."""
        written = [entry.args for entry in self.plugin_config if entry.name == name and entry.args is not None]
        return plain(written[-1]) if written else None


@dataclass(frozen=True, slots=True)
class Rollout:
    """A second version of a profile, and which of its pods are given to it; None stands for what was left out.

    profile    the schedulerName of the stable version
    percent    share of the workloads: those that `match`, where both are given
    match      expression over `pod` and `namespace`
    nodes      a LabelSelector of the only nodes for these pods, not read yet
    """

    profile: str = ""
    percent: float | None = None
    match: str | None = None
    nodes: Tree | None = field(default=None, compare=False)
    candidate: Profile | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)


def candidate_name(profile: str) -> str:
    """The name of the candidate of a profile. No pod can ask for it: only the rollout gives pods to it."""
    return f"{profile} (candidate)"


@dataclass(frozen=True, slots=True)
class ExtenderTLS:
    """Certificates for an extender; data wins over files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


@dataclass(frozen=True, slots=True)
class ManagedResource:
    """A resource that an extender looks after."""

    name: str = ""
    ignored_by_scheduler: bool = False


@dataclass(frozen=True, slots=True)
class Extender:
    """A web service that kube-scheduler asks for its opinion."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = field(default=False, metadata=written_as("enableHTTPS"))
    tls_config: ExtenderTLS | None = None
    http_timeout: timedelta = field(default=timedelta(seconds=5), metadata=ZERO_MEANS_DEFAULT)
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False
    origin: Origin | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything a configuration file says. `origin` is the file's tree, for messages about any part of it."""

    parallelism: Int32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool | None = None
    percentage_of_nodes_to_score: Int32 = 0
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    profiles: tuple[Profile, ...] = ()
    rollout: Rollout | None = field(default=None, metadata=ONLY_POLICY)
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def versions(self) -> tuple[Profile, ...]:
        """All profiles, and at the end the candidate of the rollout, under a name of its own."""
        rollout = self.rollout
        if rollout is None or rollout.candidate is None:
            return self.profiles
        return (*self.profiles, dataclasses.replace(rollout.candidate, scheduler_name=candidate_name(rollout.profile)))

    def with_defaults(self) -> Configuration:
        """The configuration with the defaults that depend on other fields (`SetDefaults_KubeSchedulerConfiguration`)."""
        profiles = self.profiles or (Profile(origin=self.origin and self.origin.under("profiles", 0)),)
        if len(profiles) == 1 and profiles[0].scheduler_name is None:
            profiles = (dataclasses.replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER),)
        contention = self.enable_contention_profiling
        if contention is None:
            contention = self.enable_profiling
        return dataclasses.replace(self, profiles=profiles, enable_contention_profiling=contention)
