"""Taints and tolerations: the one definition of "this pod tolerates that taint".

Upstream: `Toleration.ToleratesTaint` of k8s.io/api/core/v1, with the gate TaintTolerationComparisonOperators off (its
default): the operators Gt and Lt then tolerate nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

_HARD = frozenset({"NoSchedule", "NoExecute"})


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node."""

    key: str
    value: str
    effect: str

    @property
    def hard(self) -> bool:
        """Does the taint forbid scheduling (NoSchedule, NoExecute), or only advise against it?"""
        return self.effect in _HARD


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration of a pod; an empty key or effect stands for every one, an empty operator for Equal."""

    key: str
    operator: str
    value: str
    effect: str

    def tolerates(self, taint: Taint) -> bool:
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator in ("", "Equal"):
            return self.value == taint.value
        return self.operator == "Exists"


@dataclass(frozen=True, slots=True)
class Tolerations:
    """All tolerations of a pod, in order."""

    items: tuple[Toleration, ...] = ()

    def tolerate(self, taint: Taint) -> bool:
        return any(toleration.tolerates(taint) for toleration in self.items)

    def preferring(self) -> Tolerations:
        """Those that count against PreferNoSchedule taints: with that effect or without any."""
        return Tolerations(tuple(t for t in self.items if t.effect in ("", "PreferNoSchedule")))
