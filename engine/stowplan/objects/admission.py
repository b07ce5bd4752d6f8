"""What the API server does to a pod before the scheduler sees it, so that raw manifests can be read like stored objects.

Upstream: `SetDefaults_Pod` and `SetDefaults_PodSpec` of pkg/apis/core/v1, the pod strategy's preparation for creation
(pkg/registry/core/pod) and the Priority admission plugin. Everything here leaves stored pods as they are. The defaults
that concern one field (limits for missing requests, protocol TCP, ...) are applied where that field is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from stowplan.objects import wire
from stowplan.objects.amounts import is_hugepages
from stowplan.objects.errors import ObjectError
from stowplan.objects.others import PriorityClass
from stowplan.objects.requests import aggregate, is_pod_level, shape

_SYSTEM = {
    "system-cluster-critical": PriorityClass("system-cluster-critical", 2_000_000_000),
    "system-node-critical": PriorityClass("system-node-critical", 2_000_001_000),
}


class Priorities:
    """Resolves priority class names as the Priority admission plugin does."""

    def __init__(self, classes: Iterable[PriorityClass] = ()) -> None:
        self._classes = {**_SYSTEM, **{c.name: c for c in classes}}
        # of several global defaults the lowest wins
        self._default = min((c for c in self._classes.values() if c.global_default), key=_value, default=None)

    def resolve(self, name: str) -> PriorityClass | None:
        """The class of this name; for the empty name the global default. None if there is none."""
        return self._classes.get(name) if name else self._default


def _value(priority_class: PriorityClass) -> int:
    return priority_class.value


_BUILT_IN = Priorities()


def admit(spec: wire.PodSpec, labels: Mapping[str, str] | None, priorities: Priorities | None) -> None:
    """Complete the spec of a pod in place; ObjectError for a priority class that does not exist.

    `labels` are those of a pod that was never stored, None for one that was.
    """
    if spec.priority is None:
        _set_priority(spec, priorities)
    if labels is None:
        return
    if spec.affinity is not None:
        spec.affinity = _merged_affinity(spec.affinity, labels)
    spec.topology_spread_constraints = tuple(
        replace(c, label_selector=_merged(c.label_selector, labels, In=c.match_label_keys))
        for c in spec.topology_spread_constraints or ()
    )
    if spec.resources is not None:
        spec.resources = _levelled(spec, spec.resources)


def _set_priority(spec: wire.PodSpec, priorities: Priorities | None) -> None:
    name = spec.priority_class_name or ""
    found = (priorities or _BUILT_IN).resolve(name)
    if found is None and name and priorities is not None:
        raise ObjectError("spec.priorityClassName", f'there is no PriorityClass "{name}"')
    if found is not None:
        spec.priority = found.value
        spec.preemption_policy = spec.preemption_policy or found.preemption_policy


def _merged_affinity(affinity: wire.Affinity, labels: Mapping[str, str]) -> wire.Affinity:
    def term(written: wire.PodTerm) -> wire.PodTerm:
        keys = {"In": written.match_label_keys, "NotIn": written.mismatch_label_keys}
        return replace(written, label_selector=_merged(written.label_selector, labels, **keys))

    def weighted(written: wire.WeightedPodTerm) -> wire.WeightedPodTerm:
        inner = written.pod_affinity_term
        return written if inner is None else replace(written, pod_affinity_term=term(inner))

    def side(written: wire.PodAffinity | None) -> wire.PodAffinity | None:
        if written is None:
            return None
        return wire.PodAffinity(
            required=tuple(map(term, written.required or ())),
            preferred=tuple(map(weighted, written.preferred or ())),
        )

    return replace(affinity, pod_affinity=side(affinity.pod_affinity), pod_anti_affinity=side(affinity.pod_anti_affinity))


def _merged(
    selector: wire.LabelSelector | None, labels: Mapping[str, str], **keys: tuple[str, ...] | None
) -> wire.LabelSelector | None:
    """The selector with an expression for each key that the pod has; nil stays nil, as it matches nothing anyway.

    Upstream: `applyLabelKeysToLabelSelector` of the pod strategy (matchLabelKeys: In, mismatchLabelKeys: NotIn).
    """
    more = tuple(
        wire.Expression(key, operator, (labels[key],)) for operator, names in keys.items() for key in names or () if key in labels
    )
    if selector is None or not more:
        return selector
    return replace(selector, match_expressions=(*(selector.match_expressions or ()), *more))


def _levelled(spec: wire.PodSpec, level: wire.Resources) -> wire.Resources:
    """Pod-level requests completed from the containers' requests and the pod-level limits.

    Upstream: `defaultHugePagePodLimits` and `defaultPodRequests`.
    """
    requests = dict(level.requests or {})
    limits = dict(level.limits or {})
    if not requests and not limits:
        return level
    form = shape(spec)
    for name, amount in aggregate(form, lambda part: part.limits).items():
        if is_hugepages(name) and name not in requests:
            limits.setdefault(name, _text(amount))
    if not limits:
        return level
    for name, amount in aggregate(form, lambda part: part.requests).items():
        if is_pod_level(name) and not is_hugepages(name):
            requests.setdefault(name, _text(amount))
    for name, limit in limits.items():
        if is_pod_level(name):
            requests.setdefault(name, limit)
    return wire.Resources(requests=requests, limits=limits)


def _text(nano: int) -> str:
    return f"{nano}n"
