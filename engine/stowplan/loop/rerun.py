"""Running pods, each scheduled anew for itself under two policies, as if it were pending and all others stayed.

Upstream has no such thing: a scheduler never moves a pod. What comes out says where replacements would go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from stowplan.loop.comparison import Running, Workload
from stowplan.loop.fates import Case, Change, Fate, case, look, with_looks
from stowplan.objects import Pod
from stowplan.policy.choose import Choice, Chooser
from stowplan.policy.compile import Policy
from stowplan.state import Store

EXAMPLES = 20
"""Workloads of which a differing pod is looked at closely."""


@dataclass(slots=True)
class Rerun:
    """Which running pods to judge, at `most` so many of them, and the judging."""

    policies: tuple[Policy, Policy]
    store: Store
    most: int
    pods: list[Pod] = field(init=False)
    total: int = field(init=False)

    def __post_init__(self) -> None:
        served = [pod for seats in self.store.seats for pod in seats.values() if self._tried(pod)]
        self.total = len(served)
        self.pods = served if len(served) <= self.most else list(_in_turns(served))[: self.most]

    def _tried(self, pod: Pod) -> bool:
        """Whether a policy has a say about pods like this one; those that a kubelet runs from its own files have no scheduler."""
        static = pod.owner is not None and pod.owner.kind == "Node"
        return not pod.terminating and not static and any(policy.serves(pod) for policy in self.policies)

    def notes(self) -> list[str]:
        """What was left out."""
        if len(self.pods) == self.total:
            return []
        return [f"{len(self.pods)} of {self.total} running pods were judged, the same number of each workload where it has as many"]

    def run(self, sheets: int, step: Callable[[], None]) -> Running:
        """Judge the pods; keep the tables of so many examples."""
        choosers = [Chooser(policy, self.store) for policy in self.policies]
        counts: dict[str, Counter[Change]] = {}
        examples: dict[str, Case] = {}
        for pod in self.pods:
            seat, waiting = self.store.evict(pod), replace(pod, node_name="", nominated_node="")
            try:
                found = self._judge(waiting, choosers)
                name = pod.workload
                counts.setdefault(name, Counter())[found.change] += 1
                if found.change is not Change.SAME and name not in examples:
                    examples[name] = self._closely(found, len(examples), sheets)
            finally:
                self.store.put_back(pod, seat)
            step()
        differing = [
            Workload(name, found.total(), found, (examples[name],)) for name, found in sorted(counts.items()) if name in examples
        ]
        return Running(self.total, len(self.pods), tuple(differing))

    def _judge(self, pod: Pod, choosers: Sequence[Chooser]) -> Case:
        old, new = (self._fate(chooser.choose(pod)) for chooser in choosers)
        found = case(pod, old, new)
        return replace(found, change=Change.SAME) if found.change is Change.OTHER_REASON else found

    def _fate(self, choice: Choice) -> Fate:
        return Fate.of(choice, None if choice.row is None else self.store.nodes[choice.row].name)

    def _closely(self, found: Case, before: int, sheets: int) -> Case:
        """An example with its scores, if it is among the first."""
        if before >= EXAMPLES:
            return found
        nodes, keep = (found.old.node, found.new.node), before < sheets
        return with_looks(found, *(look(policy, self.store, found.pod, nodes, keep=keep) for policy in self.policies))


def _in_turns(pods: Sequence[Pod]) -> Iterator[Pod]:
    """The first pod of every workload, then the second of each that has one, and so on."""
    groups: dict[str, list[Pod]] = {}
    for pod in pods:
        groups.setdefault(pod.workload, []).append(pod)
    for turn in range(max(map(len, groups.values()), default=0)):
        yield from (group[turn] for group in groups.values() if turn < len(group))
