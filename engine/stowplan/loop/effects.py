"""What the loop wants done: writes to the API server and questions to extenders, as values. The edge carries them out.

Answers come back as events. `Mark`, `Denominate` and `Note` are never answered, all others exactly once each.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from stowplan.objects import OtherFact, Pod, ResourceClaim
from stowplan.policy.offers import Offers
from stowplan.profile import Extender


@dataclass(frozen=True, slots=True)
class Prepare:
    """Write what must stand before the pod is bound. Answer: `Prepared` or `NotBound`.

    `facts` as binding will make them: a PersistentVolume with its claim, a PersistentVolumeClaim with its selected node, a
    ResourceClaim with its allocation and its consumer.
    """

    pod: Pod
    node: str
    facts: tuple[OtherFact, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """Bind the pod, by its uid, to a node; through `extender` where one binds. Answer: `Bound` or `NotBound`."""

    pod: Pod
    node: str
    extender: Extender | None = None


class Why(enum.StrEnum):
    """Reason of a PodScheduled condition that is False."""

    UNSCHEDULABLE = "Unschedulable"
    ERROR = "SchedulerError"


@dataclass(frozen=True, slots=True)
class Mark:
    """Patch the pod's status where it says something else: condition PodScheduled=False, and the nominated node.

    `nominated`: None leaves it as it is, "" clears it. `pod` is the object as last seen, its conditions are in `raw`.
    """

    pod: Pod
    why: Why
    message: str
    nominated: str | None = None


@dataclass(frozen=True, slots=True)
class Denominate:
    """Clear `status.nominatedNodeName` of a waiting pod that another one takes the place of."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class Evict:
    """Give each victim the condition DisruptionTarget, then delete it; the last one after all others. Answer: `Evicted`.

    A victim that is being deleted already is left alone. `node`: where they run.
    """

    preemptor: Pod
    node: str
    victims: tuple[Pod, ...]


class Tone(enum.StrEnum):
    """Type of an Event."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class Note:
    """An Event about a pod (events.k8s.io/v1), reported by the pod's scheduler unless `reporter` is given."""

    pod: Pod
    reason: str
    action: str
    text: str
    tone: Tone = Tone.NORMAL
    related: Pod | None = None
    reporter: str = ""


@dataclass(frozen=True, slots=True)
class Consult:
    """Ask extenders about a pod, one after the other. Answer: `Advice`.

    `nodes`: names of the feasible nodes, the first extender's input; each passes on what it keeps. Prioritize is asked where
    `prioritize` and more than one node is left.
    """

    pod: Pod
    extenders: tuple[Extender, ...]
    nodes: tuple[str, ...]
    prioritize: bool = True


@dataclass(frozen=True, slots=True)
class ConsultVictims:
    """Ask an extender which of these pods it would rather have evicted for a pod, or which others. Answer: `VictimAdvice`."""

    pod: Pod
    extender: Extender
    offers: Offers


@dataclass(frozen=True, slots=True)
class Deallocate:
    """Take from a claim what it holds, or delete it if it was made for extended resources, for a pod that cannot reach that.

    Nothing is done where others use it meanwhile. Answer: `Deallocated`.
    """

    pod: Pod
    claim: ResourceClaim


Effect = Prepare | Bind | Mark | Denominate | Evict | Note | Consult | ConsultVictims | Deallocate
