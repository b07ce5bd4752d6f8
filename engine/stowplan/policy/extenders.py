"""Extenders: web services that kube-scheduler would ask. Nobody asks them here; the verdicts that lack theirs are named.

Upstream: `HTTPExtender` of pkg/scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from stowplan.objects import Pod
from stowplan.policy.compile import Policy
from stowplan.profile import Extender


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An extender that was not asked; pods by their keys, in the order given."""

    extender: Extender
    place: str
    """`file:line`, or the path in a configuration that was not text"""
    pods: tuple[str, ...]
    """pods whose verdict it could change"""

    @property
    def verbs(self) -> list[str]:
        """What it would do that changes verdicts; binding changes none."""
        return verbs(self.extender)

    @property
    def resources(self) -> list[str]:
        """Resources that it manages; empty: it is asked about every pod."""
        return [resource.name for resource in self.extender.managed_resources]

    def to_json(self) -> dict[str, Any]:
        """`managedResources` only where there are some."""
        answer: dict[str, Any] = {"urlPrefix": self.extender.url_prefix, "place": self.place, "verbs": self.verbs}
        if self.resources:
            answer["managedResources"] = self.resources
        return answer | {"podsWithoutIt": list(self.pods)}


def verbs(extender: Extender) -> list[str]:
    """Verbs that the extender has and that change verdicts."""
    named = {"filter": extender.filter_verb, "prioritize": extender.prioritize_verb, "preempt": extender.preempt_verb}
    return [name for name, verb in named.items() if verb]


def concerns(extender: Extender, pod: Pod) -> bool:
    """Whether kube-scheduler would ask it about the pod (upstream: IsInterested).

    Limits need no look of their own: a container's request of an extended resource is its limit.
    """
    return bool(verbs(extender)) and manages(extender, pod)


def manages(extender: Extender, pod: Pod) -> bool:
    """Whether the extender looks after something that the pod requests; without a list it looks after every pod."""
    managed = extender.managed_resources
    return not managed or any(resource.name in pod.spec.requests for resource in managed)


def binder(policy: Policy, pod: Pod) -> Extender | None:
    """The extender that binds the pod in the scheduler's place: the first that binds and that the pod concerns."""
    return next((each for each in policy.configuration.extenders if each.bind_verb and manages(each, pod)), None)


def left_out(policy: Policy, pods: Iterable[Pod]) -> Iterator[LeftOut]:
    """Every extender that could change the verdict about some of the pods."""
    judged = list(pods)
    for index, extender in enumerate(policy.configuration.extenders):
        keys = tuple(pod.key for pod in judged if concerns(extender, pod))
        if keys:
            yield LeftOut(extender, _place(extender, index), keys)


def left_out_json(policy: Policy, pods: Iterable[Pod]) -> dict[str, Any]:
    """The member `extenders` of a result; nothing where no extender matters."""
    found = [left.to_json() for left in left_out(policy, pods)]
    return {"extenders": found} if found else {}


def _place(extender: Extender, index: int) -> str:
    span = extender.origin.span if extender.origin is not None else None
    return f"extenders[{index}]" if span is None else f"{span.source.name}:{span.line}"
