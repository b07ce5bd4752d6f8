"""NodeAffinity: the pod's node selector and node affinity, and the affinity that the profile adds.

narrows  the search to nodes named by matchFields
rejects  a node that the required terms do not match
scores   a node by the weights of the preferred terms it matches
"""

from dataclasses import dataclass

import numpy as np

from stowplan.objects import NodeSelector, Pod, PreferredTerm, Requirement, parse_error
from stowplan.plugins.arguments import NodeAffinityArgs
from stowplan.plugins.plugin import FILTERS_AND_SCORES, Code, Plugin, Reason, Refusal, Rejections, ScoringError, more_is_better
from stowplan.state import LABELS, NAME, Cluster, Feasible, Numbers, matching_term, meeting, selected

NOT_MATCHING = Reason("node(s) didn't match Pod's node affinity/selector", final=True)
NOT_ENFORCED = Reason("node(s) didn't match scheduler-enforced node affinity", final=True)
CONFLICT = Refusal(Code.UNRESOLVABLE, ("pod affinity terms conflict",))


@dataclass(frozen=True, slots=True)
class Ask:
    """Requirements of the pod and of the profile; None where there are none at all."""

    selector: tuple[Requirement, ...] | None
    required: NodeSelector | None
    added: NodeSelector | None
    preferred: tuple[PreferredTerm, ...] | None
    added_preferred: tuple[PreferredTerm, ...] | None


def asks(pod: Pod, args: NodeAffinityArgs, _: Cluster) -> Ask | None:
    spec = pod.spec
    ask = Ask(spec.node_selector, spec.required, args.required, spec.preferred, args.preferred)
    return None if ask == Ask(None, None, None, None, None) else ask


def narrows(ask: Ask) -> frozenset[str] | None:
    return ask.required.names() if ask.required else None


def refuses(ask: Ask, _: Cluster) -> Refusal | None:
    return CONFLICT if narrows(ask) == frozenset() else None


def rejects(ask: Ask, cluster: Cluster) -> Rejections | None:
    if ask.selector is None and ask.required is None and ask.added is None:
        return None
    unenforced = np.zeros(cluster.size, dtype=np.bool_) if ask.added is None else ~selected(ask.added, cluster)
    matching = meeting(ask.selector or (), cluster)
    if ask.required is not None:
        matching &= selected(ask.required, cluster)
    return {NOT_ENFORCED: unenforced, NOT_MATCHING: ~matching & ~unenforced}


def scores(ask: Ask, cluster: Cluster, _: Feasible) -> Numbers | None:
    if ask.preferred is None and ask.added_preferred is None:
        return None
    if fault := parse_error(ask.preferred or ()):
        raise ScoringError(fault)
    total = np.zeros(cluster.size, dtype=np.int64)
    for preferred in (*(ask.added_preferred or ()), *(ask.preferred or ())):
        total += preferred.weight * matching_term(preferred.term, cluster)
    return total


PLUGIN = Plugin(
    "NodeAffinity",
    FILTERS_AND_SCORES,
    weight=2,
    args=NodeAffinityArgs,
    reads=(LABELS, NAME),
    asks=asks,
    narrows=narrows,
    refuses=refuses,
    rejects=rejects,
    scores=scores,
    normalise=more_is_better,
)
