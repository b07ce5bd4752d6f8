"""The pending pod, its namespace and the pods on a node as rules see them: mappings that compute what is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from stowplan.cel.kinds import Type
from stowplan.cel.values import Duration
from stowplan.objects import Namespace, Owner, Pod
from stowplan.plugins.cel_rule.amounts import of_fact
from stowplan.plugins.cel_rule.types import object_type, read
from stowplan.state.objects import whole

SECOND = 10**9
STRUCTURES = frozenset(("metadata", "spec", "status"))
"""members that every object has, be they empty"""
ABSENT: Any = object()
Member = Callable[[Any], Any]


class View(Mapping[str, Any]):
    """A mapping of named members, each computed when it is first asked for; ABSENT ones are not there."""

    __slots__ = ("_known",)
    members: ClassVar[Mapping[str, Member]] = {}

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        found = self._known.get(name, self)
        if found is self:
            make = self.members.get(name)
            found = self._known[name] = make(self) if make is not None else ABSENT
        if found is ABSENT:
            raise KeyError(name)
        return found

    def __contains__(self, name: object) -> bool:
        try:
            self[name]  # type: ignore[index]
        except KeyError:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.members if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def owner_of(owner: Owner | None) -> Any:
    """The controller of a pod as a mapping."""
    if owner is None:
        return ABSENT
    return {"kind": owner.kind, "name": owner.name, "apiVersion": owner.api_version, "uid": owner.uid}


def since(then: float | None, now: float) -> Any:
    """The time from a moment to now, both in epoch seconds."""
    return ABSENT if then is None else Duration(int((now - then) * SECOND))


def of_raw(kind: str, name: str) -> Member:
    """A member of the raw object, read as its type says."""

    def member(view: Any) -> Any:
        found = view.raw().get(name)
        if found is None:
            return {} if name in STRUCTURES else ABSENT
        return read(found, object_type(kind).fields[name])

    return member


class PodView(View):
    """The pending pod."""

    __slots__ = ("now", "pod")
    cel_type = Type("Pod")

    def __init__(self, pod: Pod, now: float) -> None:
        super().__init__()
        self.pod, self.now = pod, now

    def raw(self) -> Mapping[str, Any]:
        """The JSON of the pod; what the fact knows of it if the object was not kept."""
        if self.pod.raw:
            found: Mapping[str, Any] = whole(self.pod.raw)
            return found
        pod = self.pod
        metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid, "labels": dict(pod.labels)}
        return {"metadata": metadata, "spec": {"schedulerName": pod.spec.scheduler_name, "priority": pod.spec.priority}}

    members: ClassVar[Mapping[str, Member]] = {
        "name": lambda view: view.pod.name,
        "namespace": lambda view: view.pod.namespace,
        "labels": lambda view: view.pod.labels,
        "annotations": lambda view: (view.raw().get("metadata") or {}).get("annotations") or {},
        "requests": lambda view: of_fact(view.pod.spec.requests),
        "priority": lambda view: view.pod.spec.priority,
        "owner": lambda view: owner_of(view.pod.owner),
        "age": lambda view: since(view.pod.created, view.now),
        **{name: of_raw("Pod", name) for name in ("apiVersion", "kind", "metadata", "spec", "status")},
    }


class NamespaceView(View):
    """The namespace of the pending pod; one that nobody has listed has only its name."""

    __slots__ = ("fact",)
    cel_type = Type("Namespace")

    def __init__(self, name: str, fact: Namespace | None) -> None:
        super().__init__()
        self._known["name"] = name
        self.fact = fact

    def raw(self) -> Mapping[str, Any]:
        """The JSON of the namespace."""
        return whole(self.fact.raw) if self.fact and self.fact.raw else {"metadata": {"name": self["name"]}}

    members: ClassVar[Mapping[str, Member]] = {
        "labels": lambda view: view.fact.labels if view.fact else {},
        "annotations": lambda view: (view.raw().get("metadata") or {}).get("annotations") or {},
        **{name: of_raw("Namespace", name) for name in ("apiVersion", "kind", "metadata", "spec", "status")},
    }


class SeatedView(View):
    """A pod on a node."""

    __slots__ = ("now", "pod")

    def __init__(self, pod: Pod, now: float) -> None:
        super().__init__()
        self.pod, self.now = pod, now

    members: ClassVar[Mapping[str, Member]] = {
        "name": lambda view: view.pod.name,
        "namespace": lambda view: view.pod.namespace,
        "labels": lambda view: view.pod.labels,
        "priority": lambda view: view.pod.spec.priority,
        "requests": lambda view: of_fact(view.pod.requested),
        "owner": lambda view: owner_of(view.pod.owner),
        "age": lambda view: since(view.pod.created, view.now),
    }
