"""A scenario: what happens in the world and what goes wrong, as data that can be made from a seed, printed, and shrunk."""

import json
from dataclasses import dataclass, field, replace

from simulation.faults import Fault

CALM = 60.0
"""when, at the latest, the world stands still and nothing goes wrong any more"""


@dataclass(frozen=True)
class Step:
    """`do` names a method of World, called with `arguments` at that time."""

    at: float
    do: str
    arguments: dict = field(default_factory=dict)

    def __str__(self) -> str:
        said = ", ".join(f"{name}={_short(value)}" for name, value in self.arguments.items())
        return f"{self.at:7.2f}  {self.do}({said})"


def _short(value) -> str:
    """An object without what all of its kind have."""
    if isinstance(value, dict) and "metadata" in value:
        value = {key: part for key, part in value.items() if key not in ("apiVersion", "status")}
        if value.get("kind") == "Node":
            value["metadata"] = value["metadata"] | {"labels": {}}
    return json.dumps(value, separators=(",", ":"))


@dataclass(frozen=True)
class Scenario:
    """`replicas`: how many schedulers run. `absent`: plurals of resources that this cluster does not serve.

    policy      name of the text that the policy's ConfigMap has at the start; "" for no ConfigMap
    last_good   schedulers keep the last good policy in a file of their own
    mounted     what the policy is instead of a ConfigMap that is watched: a "volume" or a "file", see `mount`
    """

    seed: int
    steps: tuple[Step, ...] = ()
    faults: tuple[Fault, ...] = ()
    replicas: int = 1
    absent: frozenset = frozenset()
    policy: str = "plain"
    last_good: bool = False
    mounted: str = ""

    def __str__(self) -> str:
        head = f"seed {self.seed}, {self.replicas} replica(s)" + (f", without {sorted(self.absent)}" if self.absent else "")
        head += (
            f", policy {self.policy or 'missing'}"
            + (f" in a {self.mounted}" if self.mounted else "")
            + (", last good ones kept" if self.last_good else "")
        )
        return "\n".join((head, *map(str, self.steps), *(f"         {fault}" for fault in self.faults)))

    @property
    def size(self) -> int:
        return len(self.steps) + len(self.faults) + self.replicas

    def less(self, parts) -> "Scenario":
        """With only these of its steps and faults."""
        kept = set(parts)
        steps = tuple(step for number, step in enumerate(self.steps) if number in kept)
        faults = tuple(fault for number, fault in enumerate(self.faults) if number + len(self.steps) in kept)
        return replace(self, steps=steps, faults=faults)
