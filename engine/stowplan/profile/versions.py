"""The apiVersions that a configuration has had, and which kube-scheduler reads them."""

from __future__ import annotations

GROUP = "kubescheduler.config.k8s.io"
KUBERNETES = (f"{GROUP}/v1", "KubeSchedulerConfiguration")
STOWPLAN = ("stowplan.io/v1alpha1", "SchedulerPolicy")
POLICY = ("v1", "Policy")

OLDEST, NEWEST = 25, 37
"""The minor versions of Kubernetes whose plugins and fields are known."""
SERVED = {
    "componentconfig/v1alpha1": (8, 12),
    f"{GROUP}/v1alpha1": (12, 18),
    f"{GROUP}/v1alpha2": (18, 18),
    f"{GROUP}/v1beta1": (19, 22),
    f"{GROUP}/v1beta2": (22, 27),
    f"{GROUP}/v1beta3": (23, 28),
    f"{GROUP}/v1": (25, NEWEST),
}
"""The first and last minor version of Kubernetes that reads an apiVersion, in the order in which they came."""

LAST_POLICY = 22
"""The last minor version that reads `kind: Policy`."""


def is_old(version: str, kind: str) -> bool:
    """Whether kube-scheduler read this once and does no longer."""
    if kind == POLICY[1]:
        return version in (POLICY[0], f"{GROUP}/v1", "")
    return kind == KUBERNETES[1] and version in SERVED and version != KUBERNETES[0]


def is_served(version: str, minor: int) -> bool:
    """Whether kube-scheduler 1.`minor` reads a configuration of this apiVersion."""
    first, last = SERVED.get(version, (0, -1))
    return first <= minor <= last


def last_served(version: str, kind: str) -> int:
    """The last minor version that reads an object for which `is_old` holds."""
    return LAST_POLICY if kind == POLICY[1] else SERVED[version][1]
