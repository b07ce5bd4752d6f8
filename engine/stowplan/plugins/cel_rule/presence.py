"""Which members of objects are always there: those that the API requires, and those that the API server fills in itself."""

from __future__ import annotations

from stowplan.cel.kinds import Struct, Type

_CONTAINER = "name image resources terminationMessagePath terminationMessagePolicy imagePullPolicy"
_ALWAYS = {
    kind: frozenset(names.split())
    for kind, names in {
        "SeatedPod": "name namespace labels priority requests age",
        "Domain": "nodes allocatable requested free",
        "ObjectMeta": "name namespace uid resourceVersion creationTimestamp managedFields",
        "PodSpec": "containers restartPolicy terminationGracePeriodSeconds dnsPolicy serviceAccountName serviceAccount"
        " securityContext schedulerName tolerations priority enableServiceLinks preemptionPolicy",
        "PodStatus": "phase qosClass",
        "NodeSpec": "",
        "NodeStatus": "capacity allocatable conditions addresses daemonEndpoints nodeInfo images",
        "NamespaceSpec": "finalizers",
        "NamespaceStatus": "phase",
        "OwnerReference": "apiVersion kind name uid",
        "Container": _CONTAINER,
        "EphemeralContainer": _CONTAINER,
        "ContainerPort": "containerPort protocol",
        "EnvVar": "name",
        "ResourceRequirements": "",
        "Volume": "name",
        "Affinity": "",
        "NodeAffinity": "",
        "PodAffinity": "",
        "PodAntiAffinity": "",
        "LabelSelector": "",
        "PodSecurityContext": "",
        "SecurityContext": "",
        "Toleration": "",
        "Taint": "key value effect",
        "NodeCondition": "type status lastHeartbeatTime lastTransitionTime reason message",
        "PodCondition": "type status",
    }.items()
}
_ABSENT = {"Pod": frozenset(("owner",)), "Node": frozenset[str](), "Namespace": frozenset[str]()}
"""Of the variables themselves it is the other way round: nearly all members are there, if only as empty ones."""


def may_lack(kind: Type, member: str) -> bool:
    """Whether an object of this type may be without the member; false for types nothing is known about."""
    if not isinstance(kind, Struct) or member not in kind.fields:
        return False
    if kind.name in _ABSENT:
        return member in _ABSENT[kind.name]
    known = _ALWAYS.get(kind.name)
    return known is not None and member not in known
