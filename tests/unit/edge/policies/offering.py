"""Policies as texts, and a keeper that examines them at once."""

from __future__ import annotations

from stowplan.edge.policies.examine import Checked, Examiner, Offer
from stowplan.edge.policies.keeper import Keeper, Live
from stowplan.edge.serve.configz import policy_hash
from stowplan.text import Source

HEAD = "apiVersion: stowplan.io/v1alpha1\nkind: SchedulerPolicy\n"
LABELLED = 'node.labels[?"{0}"].hasValue()'
NEVER = "node.allocatable.cpu < 0.0"


def document(*rules, name="default-scheduler", more=""):
    """A policy whose filter rules are these expressions."""
    written = "".join(f"  - name: r{place}\n    filter: '{rule}'\n" for place, rule in enumerate(rules))
    return f"{HEAD}{more}profiles:\n- schedulerName: {name}\n" + (f"  rules:\n{written}" if rules else "")


BAD = {
    "syntax": f"{HEAD}profiles: [\n",
    "unknown plugin": f"{HEAD}profiles:\n- plugins:\n    filter:\n      enabled: [{{name: NodeRessourcesFit}}]\n",
    "type error": document("node.allocatable.cpu + true"),
}
"""What is wrong with it -> a text; the place is always on a line of its own."""


def offer(text, name="policy.yaml", about=None):
    return Offer(Source(name, text), None, about)


class Told:
    """A listener that keeps what it was told."""

    def __init__(self):
        self.generations, self.refusals, self.losses, self.found = [], [], [], []

    def accepted(self, now):
        self.generations.append(now.generation)

    def tried(self, now, found):
        self.found.append((now.generation, found))

    def rejected(self, refusal, now):
        self.refusals.append((refusal.reason, None if now is None else now.generation))

    def lost(self, why):
        self.losses.append(why)


async def at_once(work):
    return work()


def keeper(first=None, scene=None, instead=None):
    """A keeper of some text, before a live loop if there is a scene; and what it has told."""
    told, examiner = Told(), Examiner(instead or {})
    made = Keeper(examiner, lambda: 1000.0, [told], at_once)
    if first is not None:
        found = offer(first)
        checked = examiner.examine(found, None)
        made.start(found, Checked(checked.policy, policy_hash(checked.policy)))
    if scene is not None:
        made.live = Live(scene.loop.ledger.store, scene.handle)
    return made, told
