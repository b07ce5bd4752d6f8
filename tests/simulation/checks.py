"""What must hold after every write and every step of a scheduler. The first breach ends the run.

The checks know the server's truth, what each process has been told by it, and what its loop decided when. A process cannot be
blamed for what it could not know: it is blamed for overcommitting a node with pods that it had read about, or bound itself.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from controlplane.volumes import BIND_COMPLETED
from simulation.actors import CLAIMS, NODES, PODS
from simulation.machine import BASE
from simulation.policies import CONFIGMAPS
from simulation.reloads import Reloads
from simulation.room import excess, on_node
from simulation.storage import BY_PLURAL
from simulation.stores import inconsistent
from stowplan.loop.effects import Bind, Evict, Prepare
from stowplan.loop.events import NotBound

SLACK = 0.05
"""seconds within which what was read counts as not yet known to the loop"""
LEASES = BY_PLURAL["leases"]
FREE = ("lease", "event", "look", "list")
"""what a process may send without being the leader"""
CHECK_EVERY = 60
"""steps of a loop between two comparisons of its store with a new one, which cost more than the steps"""
CLOSELY = 25
"""one of so many seeds is compared after every step"""


@dataclass
class View:
    """What one process knows: when it read which pod to be on which node, and how large nodes are."""

    bound: dict[str, tuple[float, str]] = field(default_factory=dict)
    sizes: dict[str, list] = field(default_factory=lambda: defaultdict(list))
    own: dict[str, str] = field(default_factory=dict)
    """pods by uid that it bound itself"""
    decided: dict[str, tuple[float, str]] = field(default_factory=dict)
    pages: dict[str, list] = field(default_factory=dict)
    steps: int = 0


class Checks:
    def __init__(self, run):
        self.run, self.storage, self.clock = run, run.storage, run.clock
        self.violation = ""
        self.views: dict[str, View] = defaultdict(View)
        self.scheduled: dict[str, float] = {}
        """when a process learned that the pod of a uid is bound, by (process, uid)"""
        self.bindings = 0
        self.reloads = Reloads(run, self.violated)
        self.requests: Counter[str] = Counter()
        self.every = CHECK_EVERY if run.scenario.seed % CLOSELY else 1

    def violated(self, message: str) -> None:
        if not self.violation:
            self.violation = f"{self.clock.now:.3f} s: {message}"
            self.clock.say(f"VIOLATION {message}")
            self.clock.halt()

    # What a process reads

    def listed(self, wire, place, request, body) -> None:
        """A page of a list; nothing is known before the last one."""
        if place.kind is CONFIGMAPS:
            self.reloads.knows(wire.identity, next(iter(body["items"]), None))
        if place.kind not in (PODS, NODES):
            return
        view = self.views[wire.identity]
        pages = view.pages.setdefault(place.kind.plural, [])
        if not request.query.get("continue"):
            pages.clear()
        pages.extend(body["items"])
        if not body["metadata"].get("continue"):
            for item in pages:
                self._knows(wire.identity, place.kind, item)
            pages.clear()

    def pulled(self, wire, event: str, change) -> None:
        if change.kind is CONFIGMAPS:
            self.reloads.knows(wire.identity, change.new)
        if change.kind in (PODS, NODES) and event != "DELETED":
            self._knows(wire.identity, change.kind, change.new)

    def _knows(self, identity: str, kind, item) -> None:
        view, name = self.views[identity], item["metadata"]["name"]
        if kind is NODES:
            view.sizes[name].append((self.clock.now, item))
        elif item["spec"].get("nodeName"):
            uid = item["metadata"]["uid"]
            view.bound.setdefault(uid, (self.clock.now, item["spec"]["nodeName"]))
            self.scheduled.setdefault((identity, uid), self.clock.now)

    # What a loop decides

    def handled(self, replica, event, effects) -> None:
        view = self.views[replica.identity]
        self.reloads.handled(replica, event)
        if isinstance(event, NotBound):
            view.decided.pop(event.uid, None)
        for effect in effects:
            if isinstance(effect, Prepare) or (isinstance(effect, Bind) and not self._goes_on(view, effect)):
                view.decided[effect.pod.uid] = (self.clock.now, effect.node)
            elif isinstance(effect, Evict):
                self._evicts(effect)
        view.steps += 1
        if view.steps % self.every == 0:
            self.consistent(replica.identity, replica.loop)

    def _goes_on(self, view: View, effect: Bind) -> bool:
        """Is this the second half of a decision whose first half was to prepare?"""
        return view.decided.get(effect.pod.uid, (0.0, ""))[1] == effect.node

    def _evicts(self, effect: Evict) -> None:
        for victim in effect.victims:
            if victim.spec.priority >= effect.preemptor.spec.priority:
                self.violated(f"pod {victim.key} is evicted for pod {effect.preemptor.key}, which is not more important")

    def consistent(self, identity: str, loop) -> None:
        trouble = inconsistent(loop.ledger.store)
        if trouble:
            self.violated(f"{identity}: the store is not what a new one is: {trouble}")

    # What a process writes

    def before(self, wire, what: str, request) -> None:
        """A request of a scheduler arrives."""
        self.requests[what] += 1
        if what in FREE:
            return
        holder = self.leader()
        if holder and holder != wire.identity:
            self.violated(f"{wire.identity} writes ({request.method} {request.path}) while {holder} holds the lease")

    def leader(self) -> str:
        lease = next(iter(self.storage.objects[LEASES].values()), None)
        return (lease or {}).get("spec", {}).get("holderIdentity") or ""

    def applied(self, wire, what: str, place, request, status: int) -> None:
        if what == "bind" and status == 201:
            self._bound(wire, place)
        elif what == "event" and status in (200, 201):
            self._event(wire, place, msgspec.json.decode(request.body))

    def _bound(self, wire, place) -> None:
        view, pod = self.views[wire.identity], self.storage.objects[PODS][place.key]
        uid, name, key = pod["metadata"]["uid"], pod["spec"]["nodeName"], "/".join(place.key)
        when, node = view.decided.get(uid, (0.0, ""))
        if node != name:
            self.violated(f"pod {key} (uid {uid}) is bound to {name}; what was decided for it: {node or 'nothing'}")
            return
        self.bindings += 1
        view.own[uid] = name
        self.run.clock.after(0.0, self.scheduled.setdefault, (wire.identity, uid), self.clock.now + 1.0)
        self._room(view, pod, name, when)
        self._volumes(pod, key)

    def _room(self, view: View, pod, name: str, when: float) -> None:
        """No node is over-committed by what the process knew when it decided, and what it did itself."""
        known = [other for other in on_node(self.storage, PODS, name) if self._counts(view, other, pod, when)]
        sizes = [node for seen, node in view.sizes[name] if seen <= when - SLACK][-1:]
        sizes += [node for seen, node in view.sizes[name] if seen > when - SLACK]
        sizes += [node] if (node := self.storage.objects[NODES].get(("", name))) else []
        if not sizes:
            self.violated(f"pod {pod['metadata']['name']} is bound to node {name}, of which nothing was known")
            return
        troubles = [excess(node, known, pod) for node in sizes]
        if all(troubles):
            pods = ", ".join(sorted(other["metadata"]["name"] for other in known))
            self.violated(f"node {name} is over-committed by pod {pod['metadata']['name']}: {troubles[0]} for pods {pods}")

    def _counts(self, view: View, other, pod, when: float) -> bool:
        uid = other["metadata"]["uid"]
        return other is pod or uid in view.own or view.bound.get(uid, (float("inf"), ""))[0] < when - SLACK

    def _volumes(self, pod, key: str) -> None:
        space = pod["metadata"]["namespace"]
        for volume in pod["spec"].get("volumes", ()):
            name = volume.get("persistentVolumeClaim", {}).get("claimName")
            claim = self.storage.objects[CLAIMS].get((space, name)) if name else None
            if name and (claim is None or BIND_COMPLETED not in claim["metadata"].get("annotations", {})):
                self.violated(f"pod {key} is bound before its claim {name} is")

    def _event(self, wire, place, body) -> None:
        """Nobody is told that a pod does not fit after its scheduler knew that it is bound."""
        found = self.storage.objects[place.kind].get(place.key) if place.name else body
        if found is None or found.get("reason") != "FailedScheduling":
            return
        times = [found.get("eventTime"), (found.get("series") or {}).get("lastObservedTime")]
        latest = max(datetime.fromisoformat(text).timestamp() - BASE - wire.skew for text in times if text)
        uid = found["regarding"].get("uid", "")
        if latest > self.scheduled.get((wire.identity, uid), float("inf")) + SLACK:
            name = found["regarding"]["name"]
            self.violated(f"{wire.identity} says FailedScheduling of pod {name}, which it knew to be bound: {found['note']}")
