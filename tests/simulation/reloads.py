"""What must hold of policies that change: what comes into force is the last good text, whole, and every decision is made under it.

What a process knows of the ConfigMap is what it has read, in that order; texts that are overtaken while another one is being
looked at may be left out, no other.
"""

from collections import Counter
from dataclasses import dataclass, field

from simulation.policies import BY_TEXT, CONFIGMAPS, HISTORY, KEY, Text, text_in
from simulation.storage import BY_PLURAL
from stowplan.edge.policies import history
from stowplan.edge.policies.clerk import REJECTED
from stowplan.edge.policies.keeper import Accepted, Refusal
from stowplan.loop.events import Cycle

EVENTS = BY_PLURAL["events"]
SETTLED = 5.0
"""seconds within which a text that is read is looked at, unless another one comes"""
PROMPT = 1.0
"""seconds from when a policy is accepted until the loop decides by it"""


@dataclass
class Course:
    """The policies of one process: texts that it has read and when, None where there was none, and what came into force when."""

    read: list[tuple[float, Text | None]] = field(default_factory=list)
    begun: float = 0.0
    accepted: list[tuple[float, Text]] = field(default_factory=list)
    """by generation"""
    digests: list[str] = field(default_factory=list)
    kept: Text | None = None
    """what stood in the file with the last good policy when the process started"""
    refusals: Counter[str] = field(default_factory=Counter)
    """texts that were refused, by why"""
    place: int = 0
    """before which no text comes into force any more"""
    written: int = 0

    @property
    def started(self) -> Text | None:
        return self.accepted[0][1] if self.accepted else None

    @property
    def in_force(self) -> Text | None:
        return self.accepted[-1][1] if self.accepted else None

    def reads(self, now: float, text: Text | None) -> None:
        if not self.read or self.read[-1][1] is not text:
            self.read.append((now, text))


class Reloads:
    """The checks of a run. A keeper's `Listener`, by way of `Told`."""

    def __init__(self, run, violated):
        self.run, self.clock, self.storage, self.violated = run, run.clock, run.storage, violated
        self.courses: dict[str, Course] = {}
        self.edits = self.refusals = 0
        """policies that came into force after the first, and texts that were refused"""

    def course(self, identity: str) -> Course:
        return self.courses.setdefault(identity, Course(begun=self.clock.now))

    # What a process reads, and what its keeper says

    def knows(self, identity: str, configmap) -> None:
        self.course(identity).reads(self.clock.now, text_in(configmap))

    def reads(self, identity: str) -> None:
        """What stands in the file can be read from now on."""
        self.course(identity).reads(self.clock.now, self.newest())

    def newest(self) -> Text | None:
        """The policy that there is; None for none."""
        mount = self.run.mount
        if mount is None:
            return text_in(self.storage.objects[CONFIGMAPS].get(KEY))
        return None if mount.text is None else BY_TEXT[mount.text]

    def accepts(self, identity: str, now: Accepted) -> None:
        course, text = self.course(identity), BY_TEXT.get(now.offer.source.text)
        if text is None:
            self.violated(f"{identity} puts half a policy into force")
            return
        if not text.admitted(course.started):
            self.violated(f"{identity} puts a bad policy into force: {text.name}")
            return
        if not (text is course.kept and not course.accepted):
            places = [at for at, (_, read) in enumerate(course.read) if at >= course.place and read is text]
            if not places:
                self.violated(f"{identity} puts policy {text.name} into force, which was not read, or long ago")
                return
            course.place = places[0]
        if now.generation != len(course.accepted):
            self.violated(f"{identity} says generation {now.generation} after {len(course.accepted)} others")
        self.edits += bool(course.accepted)
        course.accepted.append((self.clock.now, text))
        course.digests.append(now.digest)
        self.clock.say(f"{identity}: policy {text.name} in force, generation {now.generation}")

    def rejects(self, identity: str, refusal: Refusal, now: Accepted | None) -> None:
        course, text = self.course(identity), BY_TEXT.get(refusal.offer.source.text)
        if text is None:
            self.violated(f"{identity} tells of half a policy")
            return
        if text.admitted(course.started):
            self.violated(f"{identity} refuses policy {text.name}, which is good: {refusal.reason}")
        if (None if now is None else BY_TEXT[now.offer.source.text]) is not course.in_force:
            self.violated(f"{identity}: a bad policy has changed what is in force")
        self.refusals += 1
        course.refusals[refusal.reason] += 1
        self.said(f"{identity}: policy {text.name} refused: {refusal.reason}")

    def said(self, text: str) -> None:
        """In the trace, without where this run has its files."""
        self.clock.say(text.replace(self.run.folder, "") if self.run.folder else text)

    # What its loop decides

    def handled(self, replica, event) -> None:
        """After a step of a loop: it decides by a policy that came into force, promptly; and so were its decisions made."""
        ledger, course = replica.loop.ledger, self.course(replica.identity)
        if ledger.generation >= len(course.digests) or course.digests[ledger.generation] != ledger.digest:
            self.violated(
                f"{replica.identity} decides by generation {ledger.generation}, {ledger.digest}, which was never in force"
            )
            return
        late = course.accepted[ledger.generation + 1 :]
        if late and isinstance(event, Cycle) and not replica.machine.frozen_until and late[0][0] < self.clock.now - PROMPT:
            self.violated(f"{replica.identity} still decides by generation {ledger.generation} of {len(course.accepted)}")
        fresh = ledger.records.written - course.written
        for record in list(ledger.records)[-fresh:] if fresh else ():
            self._decided(replica.identity, ledger, course, record)
        course.written = ledger.records.written

    def _decided(self, identity: str, ledger, course: Course, record) -> None:
        if (record.generation, record.digest) != (ledger.generation, ledger.digest):
            self.violated(f"{identity}: the record of {record.pod} says generation {record.generation} under {ledger.generation}")
        flight = ledger.flights.by_uid.get(record.uid)
        if record.result != "scheduled" or flight is None:
            return
        text, store = course.accepted[record.generation][1], ledger.store
        fault = text.fault(record.profile, flight.entry.pod, store.nodes[store.row_of[record.node]])
        if fault:
            where = f"on {record.node} by profile {record.profile}"
            self.violated(f"{identity} places pod {record.pod} {where} under policy {text.name}: {fault}")

    # When all is quiet

    def leftovers(self, replica) -> list[str]:
        """What a process has in force, and says of it, against what it has read and what the server has."""
        identity, keeper, course = replica.identity, replica.keeper, self.course(replica.identity)
        newest = self.newest()
        found = (
            [f"{identity} has last read another policy than there is"]
            if not course.read or course.read[-1][1] is not newest
            else []
        )
        wanted = self._wanted(replica, course)
        if course.in_force not in wanted:
            names = " or ".join(sorted(text.name if text else "none" for text in wanted))
            found.append(f"{identity} has policy {course.in_force and course.in_force.name} in force, not {names}")
        if replica.drive is not None and replica.loop.ledger.digest != keeper.in_force.digest:
            found.append(f"{identity} decides by {replica.loop.ledger.digest}, not by {keeper.in_force.digest}")
        if (newest is None) != bool(keeper.trouble):
            found.append(f"{identity} says of a policy that is {'not ' * (newest is None)}there: {keeper.trouble!r}")
        refused = None if keeper.refused is None else BY_TEXT[keeper.refused.offer.source.text]
        if newest is not None and refused is not (None if newest.admitted(course.started) else newest):
            found.append(f"{identity} refuses {refused and refused.name} where the policy is {newest.name}")
        return found

    def _wanted(self, replica, course: Course) -> set:
        """What may be in force: the last good text that stood long enough to be looked at, or one that came after it."""
        if replica.machine.frozen_until:  # who knows what was read when
            return {course.kept} | {text for _, text in course.read if text and text.admitted(course.started)}
        wanted, ends = {course.kept}, [when for when, _ in course.read[1:]] + [float("inf")]
        for (when, text), end in zip(course.read, ends, strict=True):
            if text is None or not text.admitted(course.started):
                continue
            wanted = {text} if end - when > SETTLED else wanted | {text}
        return wanted

    def untold(self, leader) -> list[str]:
        """Events about policies: each refusal of a process has one at most, and the last of the leader has one."""
        if self.run.mount is not None:
            return []
        told = Counter[tuple[str, str]]()
        for event in self.storage.objects[EVENTS].values():
            if event["reason"] == REJECTED and event["regarding"]["kind"] == "ConfigMap":
                identity = event["reportingInstance"]
                why = next((why for why in self.course(identity).refusals if event["note"].startswith(why)), event["note"])
                told[identity, why] += 1
        found = [
            f"{identity} tells {count} times of what it has refused {self.course(identity).refusals[why]} times: {why}"
            for (identity, why), count in told.items()
            if count > self.course(identity).refusals[why]
        ]
        refused = leader.keeper.refused
        if refused is not None and not told[leader.identity, refused.reason]:
            found.append(f"{leader.identity} has not told that it refuses the policy: {refused.reason}")
        return found

    def unrecorded(self, replica) -> list[str]:
        """The history that the leader keeps ends with the policy in force."""
        if self.run.mount is not None:
            return []
        item = self.storage.objects[CONFIGMAPS].get(HISTORY)
        kept = None if item is None else history.Kept(item["metadata"], item["data"])
        known, now = history.known(kept, lambda _: "").versions, replica.keeper.in_force
        if not known or known[-1].entry.hash != now.digest or known[-1].text != now.offer.source.text:
            return [f"the history does not end with the policy in force, {self.course(replica.identity).in_force.name}"]
        return []


@dataclass
class Told:
    """A `Listener` of one keeper."""

    reloads: Reloads
    identity: str

    def accepted(self, now: Accepted) -> None:
        self.reloads.accepts(self.identity, now)

    def tried(self, now: Accepted, found) -> None:  # noqa: ARG002 - as every listener
        self.reloads.clock.say(f"{self.identity}: {len(found)} warnings about the policy of the start")

    def rejected(self, refusal: Refusal, now: Accepted | None) -> None:
        self.reloads.rejects(self.identity, refusal, now)

    def lost(self, why: str) -> None:
        self.reloads.said(f"{self.identity}: {why}")
