"""From a decoded pod object to facts: the derived values of a spec, once per distinct spec, and the pod itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from sys import intern
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import msgspec
from msgspec import UnsetType

from stowplan.objects import outline, wire
from stowplan.objects.admission import Priorities, admit
from stowplan.objects.amounts import from_resource_list
from stowplan.objects.extended import container_devices
from stowplan.objects.labels import Labels, label_selector, match_labels
from stowplan.objects.nodeselector import node_selector, preferred_terms
from stowplan.objects.pod import HostPort, Owner, Pod, PodSpec, PodTerm, SpreadConstraint
from stowplan.objects.requests import MISSING, Usage, dominant, is_sidecar, plain, report, shape, usage
from stowplan.objects.taints import Toleration, Tolerations

_encode = msgspec.json.Encoder().encode
_decode_spec = msgspec.json.Decoder(wire.PodSpec).decode
_decode_status = msgspec.json.Decoder(wire.PodStatus).decode
_decode_labels = msgspec.json.Decoder(wire.Texts | None).decode
_decode_owners = msgspec.json.Decoder(tuple[wire.OwnerReference, ...] | None).decode

_labels_by_text: WeakValueDictionary[bytes, Labels] = WeakValueDictionary()
_spec_by_text: WeakValueDictionary[bytes, PodSpec] = WeakValueDictionary()
_spec_by_content: WeakValueDictionary[tuple[Any, ...], PodSpec] = WeakValueDictionary()

_NO_STATUS = outline.PodStatus()
T = TypeVar("T")


def pod(item: outline.Pod, metadata: outline.Metadata, priorities: Priorities | None) -> Pod:
    """The fact of a pod object; ObjectError for what cannot be read."""
    written = item.spec or outline.PodSpec()
    node_name = written.node_name or ""
    labels = _labels(metadata.labels)
    text = _shared_text(written, metadata, labels, priorities)
    spec = _spec(text)
    status = item.status or _NO_STATUS
    disruption, resizing = _conditions(status) if status.conditions else (None, None)
    requested, nonzero = _usage(spec, text, status, resizing)
    return Pod(
        intern(metadata.namespace or "default"),
        metadata.name or "",
        metadata.uid or "",
        labels,
        None if isinstance(metadata.owner_references, UnsetType) else _owner(bytes(metadata.owner_references)),
        spec,
        intern(node_name),
        intern(status.nominated_node_name or ""),
        intern(status.phase or "Pending"),
        metadata.deletion_timestamp is not None,
        wire.epoch(metadata.creation_timestamp),
        wire.epoch(status.start_time),
        requested,
        nonzero,
        disruption,
        status.resource_claim_statuses or (),
    )


def _decoded(decode: Callable[[bytes], T], text: bytes, path: str) -> T:
    """What the text holds; its faults are told as being below `path`."""
    try:
        return decode(text)
    except msgspec.MsgspecError as error:
        raise wire.fault(error, path) from None


def _labels(text: outline.Text) -> Labels:
    if isinstance(text, UnsetType):
        return Labels.EMPTY
    key = bytes(text)
    known = _labels_by_text.get(key)
    if known is None:
        known = Labels.of(wire.texts(_decoded(_decode_labels, key, "metadata.labels")))
        _labels_by_text[key] = known
    return known


def _shared_text(written: outline.PodSpec, metadata: outline.Metadata, labels: Labels, priorities: Priorities | None) -> bytes:
    """The spec as JSON, completed by admission, without what replicas do not share."""
    written.node_name = None
    if written.volumes:
        written.volumes = tuple(volume for volume in written.volumes if volume.matters()) or None
    text = _encode(written)
    stored = metadata.uid or metadata.generation is not None
    if stored and written.priority is not None:
        return text
    spec = _decoded(_decode_spec, text, "spec")
    admit(spec, None if stored else labels, priorities)
    return _encode(spec)


@lru_cache(maxsize=8192)  # replicas share their controller
def _owner(text: bytes) -> Owner | None:
    for reference in _decoded(_decode_owners, text, "metadata.ownerReferences") or ():
        if reference.controller:
            return Owner(reference.api_version or "", reference.kind or "", reference.name or "", reference.uid or "")
    return None


def _conditions(status: outline.PodStatus) -> tuple[str | None, wire.Condition | None]:
    """The reason of a true DisruptionTarget condition and the PodResizePending condition; the first of a type counts."""
    disruption = resizing = None
    for condition in status.conditions or ():
        if condition.type == "DisruptionTarget":
            disruption = disruption or condition
        elif condition.type == "PodResizePending":
            resizing = resizing or condition
    if disruption is None or disruption.status != "True":
        return None, resizing
    return disruption.reason or "", resizing


def _usage(spec: PodSpec, text: bytes, status: outline.PodStatus, resizing: wire.Condition | None) -> Usage:
    """What the pod occupies; computed once per spec and per thing that statuses say about resources."""
    told = outline.Told(
        status.container_statuses,
        status.init_container_statuses,
        status.allocated_resources,
        status.resources,
        None if resizing is None else (resizing,),
    )
    if told == outline.NOTHING_TOLD:
        return spec.usage
    key = _encode(told)
    known = spec.reported.get(key)
    if known is None:
        form = shape(_decoded(_decode_spec, text, "spec"))
        known = usage(form, report(_decoded(_decode_status, key, "status")))
        if known == spec.usage:
            known = spec.usage
        if len(spec.reported) > 1000:  # a spec whose pods never agree is not worth remembering
            spec.reported.clear()
        spec.reported[key] = known
    return known


def _spec(text: bytes) -> PodSpec:
    """The shared spec: looked up by its text, then (map orders differ) by what follows from it."""
    known = _spec_by_text.get(text)
    if known is None:
        derived = _derive(_decoded(_decode_spec, text, "spec"))
        content = tuple(getattr(derived, name) for name in _FIELDS)
        known = _spec_by_content.setdefault(content, derived)
        _spec_by_text[text] = known
    return known


_FIELDS = tuple(name for name in PodSpec.__dataclass_fields__ if name != "reported")


def _derive(spec: wire.PodSpec) -> PodSpec:
    form = shape(spec)
    affinity = spec.affinity or wire.Affinity()
    node_affinity = affinity.node_affinity or wire.NodeAffinity()
    with_pods = affinity.pod_affinity or wire.PodAffinity()
    against_pods = affinity.pod_anti_affinity or wire.PodAffinity()
    return PodSpec(
        scheduler_name=spec.scheduler_name or "default-scheduler",
        priority=spec.priority or 0,
        preemption_policy=spec.preemption_policy or "PreemptLowerPriority",
        gates=tuple(gate.name or "" for gate in spec.scheduling_gates or ()),
        tolerations=_tolerations(spec),
        node_selector=None if spec.node_selector is None else match_labels(wire.texts(spec.node_selector)),
        required=None
        if node_affinity.required is None
        else node_selector(node_affinity.required, f"spec.affinity.nodeAffinity.{_REQUIRED}"),
        preferred=None
        if node_affinity.preferred is None
        else preferred_terms(node_affinity.preferred, f"spec.affinity.nodeAffinity.{_PREFERRED}"),
        affinity=_terms(with_pods, "podAffinity"),
        anti_affinity=_terms(against_pods, "podAntiAffinity"),
        preferred_affinity=_weighted(with_pods, "podAffinity"),
        preferred_anti_affinity=_weighted(against_pods, "podAntiAffinity"),
        spread=_spread(spec),
        host_ports=_host_ports(spec),
        images=_images(spec),
        requests=from_resource_list(plain(form)),
        score_requests=from_resource_list(plain(form, pod_level=False, missing=MISSING)),
        required_features=_features(spec),
        volumes=spec.volumes or (),
        claims=spec.resource_claims or (),
        extended=container_devices(form),
        dominant=dominant(form),
        usage=usage(form),
    )


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _tolerations(spec: wire.PodSpec) -> Tolerations:
    return Tolerations(
        tuple(Toleration(t.key or "", t.operator or "", t.value or "", t.effect or "") for t in spec.tolerations or ())
    )


def _terms(side: wire.PodAffinity, name: str) -> tuple[PodTerm, ...]:
    path = f"spec.affinity.{name}.{_REQUIRED}"
    return tuple(_pod_term(term, f"{path}[{i}]") for i, term in enumerate(side.required or ()))


def _weighted(side: wire.PodAffinity, name: str) -> tuple[tuple[int, PodTerm], ...]:
    path = f"spec.affinity.{name}.{_PREFERRED}"
    return tuple(
        (term.weight or 0, _pod_term(term.pod_affinity_term or wire.PodTerm(), f"{path}[{i}].podAffinityTerm"))
        for i, term in enumerate(side.preferred or ())
    )


def _pod_term(term: wire.PodTerm, path: str) -> PodTerm:
    """Upstream `newAffinityTerm` and `getNamespacesFromPodAffinityTerm`."""
    listed = term.namespaces or ()
    chosen = term.namespace_selector
    return PodTerm(
        term.topology_key or "",
        label_selector(term.label_selector, f"{path}.labelSelector"),
        frozenset(listed),
        None if chosen is None else label_selector(chosen, f"{path}.namespaceSelector"),
        own_namespace=not listed and chosen is None,
    )


def _spread(spec: wire.PodSpec) -> tuple[SpreadConstraint, ...]:
    return tuple(
        SpreadConstraint(
            key=c.topology_key or "",
            max_skew=c.max_skew or 0,
            hard=c.when_unsatisfiable != "ScheduleAnyway",
            selector=label_selector(c.label_selector, f"spec.topologySpreadConstraints[{i}].labelSelector"),
            min_domains=1 if c.min_domains is None else c.min_domains,
            honor_affinity=c.node_affinity_policy != "Ignore",
            honor_taints=c.node_taints_policy == "Honor",
            match_label_keys=c.match_label_keys or (),
        )
        for i, c in enumerate(spec.topology_spread_constraints or ())
    )


def _host_ports(spec: wire.PodSpec) -> frozenset[HostPort]:
    """Upstream `GetHostPorts`: of containers and sidecars; in the host's network every container port is one."""
    running = (*(spec.containers or ()), *filter(is_sidecar, spec.init_containers or ()))
    ports = (
        HostPort(
            port.host_ip or "0.0.0.0",  # noqa: S104 - nothing is bound here
            port.protocol or "TCP",
            port.host_port or (spec.host_network and port.container_port) or 0,
        )
        for container in running
        for port in container.ports or ()
    )
    return frozenset(port for port in ports if port.port > 0)


def _images(spec: wire.PodSpec) -> tuple[str, ...]:
    containers = (*(spec.init_containers or ()), *(spec.containers or ()))
    volumes = (volume.image for volume in spec.volumes or () if volume.image is not None)
    return (*(image_key(c.image or "") for c in containers), *(image_key(v.reference or "") for v in volumes))


def image_key(image: str) -> str:
    """An image as nodes list it: `:latest` if it has no tag or digest (upstream `normalizedImageName`)."""
    return f"{image}:latest" if image.rfind(":") <= image.rfind("/") else image


def _features(spec: wire.PodSpec) -> frozenset[str]:
    """The declared features a pod needs: upstream `InferForScheduling` of each registered feature."""
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    mounting: tuple[wire.Container | wire.EphemeralContainer, ...] = (*containers, *(spec.ephemeral_containers or ()))
    needs: Mapping[str, bool] = {
        "RestartAllContainersOnContainerExits": any(
            rule.action == "RestartAllContainers" for c in containers for rule in c.restart_policy_rules or ()
        ),
        "UserNamespacesHostNetworkSupport": bool(spec.host_network) and spec.host_users is False,
        "VolumeBindMountOptions": any(m.bind_mount_options for c in mounting for m in c.volume_mounts or ()),
    }
    return frozenset(name for name, needed in needs.items() if needed)
