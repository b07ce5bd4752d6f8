"""A pod as the scheduler sees it.

What depends on the spec alone is a `PodSpec`, computed once per distinct spec and shared by all replicas; a `Pod` adds
identity, labels, status and what it occupies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from stowplan.objects import wire
from stowplan.objects.amounts import Amounts
from stowplan.objects.extended import ContainerDevices
from stowplan.objects.labels import Labels, Requirement, Selector
from stowplan.objects.nodeselector import NodeSelector, PreferredTerm
from stowplan.objects.requests import Usage
from stowplan.objects.taints import Tolerations

_ANY = "0.0.0.0"  # noqa: S104 - the wildcard of host ports, nothing is bound here
TEMPLATE_HASHES = (("pod-template-hash", "Deployment"), ("rollouts-pod-template-hash", "Rollout"))
"""Labels of the pods of a ReplicaSet whose name ends with the value, and the kind that makes such ReplicaSets."""


class HostPort(NamedTuple):
    """A port that a pod takes on its node."""

    ip: str
    protocol: str
    port: int

    def conflicts(self, other: HostPort) -> bool:
        """Same protocol and port, and the same address or one of them the wildcard (upstream: `HostPortInfo`)."""
        return self.port == other.port and self.protocol == other.protocol and (self.ip == other.ip or _ANY in (self.ip, other.ip))


@dataclass(frozen=True, slots=True)
class PodTerm:
    """An inter-pod (anti-)affinity term.

    `own_namespace` stands for the namespace of the pod that owns the term: specs are shared between namespaces.
    A nil namespace selector (None) selects no namespace.
    """

    key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector | None
    own_namespace: bool

    def selects_namespace(self, namespace: str, labels: Mapping[str, str], owner_namespace: str) -> bool:
        """Does the term look at pods of this namespace, which has these labels?"""
        return (
            namespace in self.namespaces
            or (self.own_namespace and namespace == owner_namespace)
            or (self.namespace_selector is not None and self.namespace_selector.matches(labels))
        )


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A topology spread constraint, defaults applied; a nil label selector is Selector.NOTHING."""

    key: str
    max_skew: int
    hard: bool
    selector: Selector
    min_domains: int
    honor_affinity: bool
    honor_taints: bool
    match_label_keys: tuple[str, ...]

    def selector_for(self, labels: Mapping[str, str]) -> Selector:
        """The selector of a pod with these labels: `match_label_keys` that it has must be equal."""
        return self.selector.with_(*(Requirement(key, frozenset({labels[key]})) for key in self.match_label_keys if key in labels))


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class PodSpec:
    """A distinct pod spec. Interned: equal specs are the same object, so identity is equality.

    requests        what the Fit filter checks                       (shared by Fit, CEL's pod.requests)
    score_requests  what Fit's scores use: no pod-level requests, defaults for what is missing
    usage           what such a pod occupies while its status says nothing else
    dominant        what decided the cpu request: `containers`, `initContainers[NAME]`, `pod level` or `overhead`
    """

    scheduler_name: str
    priority: int
    preemption_policy: str
    gates: tuple[str, ...]
    tolerations: Tolerations
    node_selector: tuple[Requirement, ...] | None
    required: NodeSelector | None
    preferred: tuple[PreferredTerm, ...] | None
    affinity: tuple[PodTerm, ...]
    anti_affinity: tuple[PodTerm, ...]
    preferred_affinity: tuple[tuple[int, PodTerm], ...]
    preferred_anti_affinity: tuple[tuple[int, PodTerm], ...]
    spread: tuple[SpreadConstraint, ...]
    host_ports: frozenset[HostPort]
    images: tuple[str, ...]
    requests: Amounts
    score_requests: Amounts
    required_features: frozenset[str]
    volumes: tuple[wire.Volume, ...]
    claims: tuple[wire.PodResourceClaim, ...]
    extended: tuple[ContainerDevices, ...]
    dominant: str
    usage: Usage
    reported: dict[bytes, Usage] = field(default_factory=dict, repr=False)
    """What pods of this spec occupy by what their status says of resources; filled by the reader."""

    def selects_node(self, name: str, labels: Mapping[str, str]) -> bool:
        """The nodeSelector and required node affinity: upstream `GetRequiredNodeAffinity(pod).Match`."""
        return (self.node_selector is None or all(r.matches(labels) for r in self.node_selector)) and (
            self.required is None or self.required.matches(name, labels)
        )


@dataclass(frozen=True, slots=True)
class Owner:
    """The controller of a pod."""

    api_version: str
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Pod:
    """A pod; equality is identity.

    requested   what it occupies on its node, its status included (also BalancedAllocation's view of an incoming pod)
    nonzero     cpu milli and memory bytes with defaults for missing requests (NonZeroRequested)
    disruption  reason of the first DisruptionTarget condition, if that is true
    created, started   epoch seconds
    raw         the whole object as JSON while it waits for a node; empty for pods that run
    """

    namespace: str
    name: str
    uid: str
    labels: Labels
    owner: Owner | None
    spec: PodSpec
    node_name: str
    nominated_node: str
    phase: str
    terminating: bool
    created: float | None
    started: float | None
    requested: Amounts
    nonzero: tuple[int, int]
    disruption: str | None
    claim_statuses: tuple[wire.ClaimStatus, ...] = ()
    raw: bytes = b""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def workload(self) -> str:
        """What it belongs to, as `namespace/Kind/name`: its controller, a Deployment for its ReplicaSets; or the pod itself.

        A name, no uid: a controller that is deleted and made anew is the same to users.
        """
        owner = self.owner
        if owner is None:
            return f"{self.namespace}/Pod/{self.name}"
        if owner.kind == "ReplicaSet":
            for label, kind in TEMPLATE_HASHES:
                suffix = f"-{self.labels.get(label, '')}"
                if len(suffix) > 1 and owner.name.endswith(suffix):
                    return f"{self.namespace}/{kind}/{owner.name.removesuffix(suffix)}"
        return f"{self.namespace}/{owner.kind}/{owner.name}"

    def on(self, node: str) -> Pod:
        """The pod as it will be on a node, without its object. Ten thousand times a second, hence no `replace`."""
        return Pod(
            self.namespace, self.name, self.uid, self.labels, self.owner, self.spec, node, "", self.phase, self.terminating,
            self.created, self.started, self.requested, self.nonzero, self.disruption, self.claim_statuses,
        )  # fmt: skip

    @property
    def finished(self) -> bool:
        """Succeeded or Failed: it occupies nothing any more."""
        return self.phase in ("Succeeded", "Failed")
