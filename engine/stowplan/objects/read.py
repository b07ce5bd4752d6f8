"""The JSON door: one API object, as bytes or as a parsed mapping, becomes one fact.

    read(b'{"apiVersion": "v1", "kind": "Node", ...}')  ->  Node(...)

Bytes are decoded straight into typed structs that hold only what the scheduler reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isfinite
from typing import Any, Final, NamedTuple

import msgspec

from stowplan.objects import devicereader, node, others, outline, podreader, storage, wire, wire_cluster, wire_devices, wire_storage
from stowplan.objects.admission import Priorities
from stowplan.objects.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from stowplan.objects.errors import ObjectError
from stowplan.objects.node import Node
from stowplan.objects.others import DisruptionBudget, Namespace, PriorityClass, Workload
from stowplan.objects.pod import Pod
from stowplan.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

Storage = PersistentVolume | PersistentVolumeClaim | StorageClass | CSINode | CSIDriver | CSIStorageCapacity | VolumeAttachment
Devices = DeviceClass | DeviceTaintRule | ResourceClaim | ResourceSlice
OtherFact = Storage | Namespace | PriorityClass | Workload | DisruptionBudget | Devices
"""Facts that are neither node nor pod; all have a `key`."""
Fact = Pod | Node | OtherFact


class _Kind(NamedTuple):
    group: str
    decode: Callable[[bytes], Any]
    build: Callable[[Any, Any, Any], Fact]


def _kind(group: str, struct: Any, build: Callable[[Any, Any, Any], Fact]) -> _Kind:
    return _Kind(group, msgspec.json.Decoder(struct).decode, build)


_KINDS: Final = {
    "Pod": _kind("", outline.Pod, podreader.pod),
    "Node": _kind("", wire_cluster.Node, node.node),
    "Namespace": _kind("", wire_cluster.Namespace, others.namespace),
    "PriorityClass": _kind("scheduling.k8s.io", wire_cluster.PriorityClass, others.priority_class),
    "Service": _kind("", wire_cluster.MapSelected, others.map_selected),
    "ReplicationController": _kind("", wire_cluster.MapSelected, others.map_selected),
    "ReplicaSet": _kind("apps", wire_cluster.LabelSelected, others.label_selected),
    "StatefulSet": _kind("apps", wire_cluster.LabelSelected, others.label_selected),
    "DeviceClass": _kind("resource.k8s.io", wire_devices.DeviceClass, devicereader.device_class),
    "DeviceTaintRule": _kind("resource.k8s.io", wire_devices.DeviceTaintRule, devicereader.taint_rule),
    "ResourceClaim": _kind("resource.k8s.io", wire_devices.ResourceClaim, devicereader.resource_claim),
    "ResourceSlice": _kind("resource.k8s.io", wire_devices.ResourceSlice, devicereader.resource_slice),
    "PersistentVolume": _kind("", wire_storage.PersistentVolume, storage.persistent_volume),
    "PersistentVolumeClaim": _kind("", wire_storage.PersistentVolumeClaim, storage.claim),
    "StorageClass": _kind("storage.k8s.io", wire_storage.StorageClass, storage.storage_class),
    "CSINode": _kind("storage.k8s.io", wire_storage.CSINode, storage.csi_node),
    "CSIDriver": _kind("storage.k8s.io", wire_storage.CSIDriver, storage.csi_driver),
    "CSIStorageCapacity": _kind("storage.k8s.io", wire_storage.CSIStorageCapacity, storage.csi_storage_capacity),
    "VolumeAttachment": _kind("storage.k8s.io", wire_storage.VolumeAttachment, storage.volume_attachment),
    "PodDisruptionBudget": _kind("policy", wire_cluster.PodDisruptionBudget, others.disruption_budget),
}

_encode = msgspec.json.Encoder().encode
_decode_head = msgspec.json.Decoder(wire.Head).decode
_decode_identity = msgspec.json.Decoder(wire.Identified).decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

# kubectl and client libraries write these two first; anything else is found by decoding the head
_HEAD = re.compile(
    rb'\s*\{\s*"apiVersion"\s*:\s*"([\w./-]*)"\s*,\s*"kind"\s*:\s*"(\w+)"'
    rb'|\s*\{\s*"kind"\s*:\s*"(\w+)"\s*,\s*"apiVersion"\s*:\s*"([\w./-]*)"'
)


def read(item: bytes | Mapping[str, Any], priorities: Priorities | None = None) -> Fact | None:
    """The fact of one API object; None for a kind that the scheduler does not read.

    `priorities` resolves the priority class of pods that were never stored; without it only the built-in ones are known.
    ObjectError if the object has no kind or name, or holds something that cannot be read.
    """
    api_version, kind = _head(item)
    known = _KINDS.get(kind)
    if known is None or not _in_group(api_version, known.group):
        return None
    text = item if isinstance(item, bytes) else _as_bytes(item, kind)
    fact, _ = _built(known, kind, text, priorities)
    if _keeps_object(fact):
        object.__setattr__(fact, "raw", compact(text))  # not part of the value: copying the fact for it would cost more
    return fact


class Read(NamedTuple):
    """A fact with what tells this version of its object from others."""

    fact: Fact
    uid: str
    version: str


def read_as(kind: str, text: bytes) -> Read:
    """The fact of a stored object that is known to be of this kind, as items of a list do not say so themselves.

    ObjectError as for `read`. KeyError for a kind that the scheduler does not read.
    """
    known = _KINDS[kind]
    fact, metadata = _built(known, kind, text, None)
    if _keeps_object(fact):
        object.__setattr__(fact, "raw", _lean(kind, text))
    return Read(fact, metadata.uid or "", metadata.resource_version or "")


def identify(text: bytes) -> wire.Identity:
    """Name, uid and version of an object, without reading the rest of it. ObjectError if it is no object."""
    try:
        return _decode_identity(text).metadata or wire.Identity()
    except msgspec.MsgspecError as error:
        raise wire.fault(error).of("object") from None


def _built(known: _Kind, kind: str, text: bytes, priorities: Priorities | None) -> tuple[Fact, wire.Metadata | outline.Metadata]:
    try:
        decoded = known.decode(text)
    except msgspec.MsgspecError as error:
        raise wire.fault(error).of(_subject(text, kind)) from None
    metadata = decoded.metadata
    if metadata is None or not metadata.name:
        raise ObjectError("metadata.name", "is missing").of(f"{kind} without a name")
    try:
        return known.build(decoded, metadata, priorities if kind == "Pod" else kind), metadata
    except ObjectError as error:
        raise error.of(_name(kind, metadata)) from None


def _keeps_object(fact: Fact) -> bool:
    """Rules may ask anything of waiting pods, nodes and namespaces."""
    return isinstance(fact, Pod | Node | Namespace) and not (isinstance(fact, Pod) and fact.node_name)


def _lean(kind: str, text: bytes) -> bytes:
    """A stored object of the core group, compact, with its kind, and without the half of it that says who set which field."""
    if b'"managedFields"' in text:
        members = _decode_members(text)
        metadata = _decode_members(members["metadata"])
        metadata.pop("managedFields", None)
        text = _encode({**members, "metadata": metadata})
    if _HEAD.match(text) is None:
        text = b'{"kind":"%s","apiVersion":"v1",%s' % (kind.encode(), text.lstrip()[1:])
    return compact(text)


def with_object(fact: Pod, item: bytes | Mapping[str, Any]) -> Pod:
    """The fact of a running pod with its whole object, which is otherwise kept for waiting pods only."""
    return replace(fact, raw=compact(item if isinstance(item, bytes) else _as_bytes(item, "Pod")))


def compact(text: bytes) -> bytes:
    """A JSON text without white space between its tokens, as rules may want any of it later."""
    return msgspec.json.format(text, indent=-1)


def peek(item: bytes) -> tuple[str, str, str]:
    """kind, namespace and name ("" where there is none) of an object, without reading the rest of it."""
    try:
        head = _decode_head(item)
    except msgspec.MsgspecError as error:
        raise wire.fault(error).of("object") from None
    metadata = head.metadata or wire.Named()
    return head.kind or "", metadata.namespace or "", metadata.name or ""


def _head(item: bytes | Mapping[str, Any]) -> tuple[str, str]:
    """The apiVersion and kind of an object."""
    if isinstance(item, bytes):
        match = _HEAD.match(item)
        if match is not None:
            version, kind, kind_first, version_second = match.groups()
            return ((version or b"").decode(), kind.decode()) if kind else (version_second.decode(), kind_first.decode())
        try:
            head = _decode_head(item)
        except msgspec.MsgspecError as error:
            raise wire.fault(error).of("object") from None
        api_version, kind_read = head.api_version, head.kind
    else:
        api_version, kind_read = item.get("apiVersion"), item.get("kind")
    if not isinstance(kind_read, str) or not kind_read:
        raise ObjectError("kind", "is missing").of("object")
    return (api_version if isinstance(api_version, str) else ""), kind_read


def _in_group(api_version: str, group: str) -> bool:
    """Is this the Kubernetes kind, not a namesake of another API group? A missing apiVersion is forgiven."""
    return not api_version or api_version.rpartition("/")[0] == group


def _as_bytes(item: Mapping[str, Any], kind: str) -> bytes:
    """A parsed object as JSON again: there is one door, and the meaning of an object cannot depend on how it came."""
    try:
        text = _encode(item)
        if b"null" in text:
            _refuse_infinite(item, "")
    except RecursionError:
        raise ObjectError("", "holds itself or is nested too deeply").of(_mapped_name(item, kind)) from None
    except ObjectError as error:
        raise error.of(_mapped_name(item, kind)) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise ObjectError("", f"is no JSON object: {error}").of(_mapped_name(item, kind)) from None
    return text


def _refuse_infinite(value: Any, path: str) -> None:
    """ObjectError for a number that JSON does not have, which the encoder would turn into null."""
    if isinstance(value, float) and not isfinite(value):
        raise ObjectError(path, f"{value} is not a number that JSON has")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _refuse_infinite(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple | set | frozenset):
        for index, inner in enumerate(value):
            _refuse_infinite(inner, f"{path}[{index}]")


def _mapped_name(item: Mapping[str, Any], kind: str) -> str:
    metadata = item.get("metadata")
    named = [metadata.get(part) for part in ("namespace", "name")] if isinstance(metadata, Mapping) else [None, None]
    namespace, name = (part if isinstance(part, str) else None for part in named)
    return _name(kind, wire.Named(name, namespace)) if name else kind


def _name(kind: str, metadata: wire.Named | wire.Metadata | outline.Metadata) -> str:
    return f"{kind} {metadata.namespace}/{metadata.name}" if metadata.namespace else f"{kind} {metadata.name}"


def _subject(text: bytes, kind: str) -> str:
    """The object's name for an error message, as far as it can be read."""
    try:
        head = _decode_head(text)
    except msgspec.MsgspecError:
        return kind
    return _name(kind, head.metadata) if head.metadata and head.metadata.name else kind
