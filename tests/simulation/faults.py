"""What can go wrong between a scheduler and its API server, as data: a scenario's list of faults is what is shrunk."""

from dataclasses import dataclass, field

WRITES = ("bind", "status", "evict", "volume", "look", "list", "event")
CALLS = (*WRITES, "record", "lease", "watch")
"""what a request is about; `watch` is the opening of one, `record` the history of policies"""
CODES = {"409": 409, "429": 429, "500": 500, "503": 503, "404": 404, "410": 410}
"""answers of a server that did nothing"""


@dataclass(frozen=True)
class Fault:
    """From `begin` to `end`, `count` requests of this kind go wrong this way, after `skip` that do not.

    how       refused        no connection, no effect
              lost           no answer until the client gives up, no effect
              unanswered     no answer until the client gives up, but it took effect
              reset          it took effect and the connection breaks at once
              a code of CODES, without effect
              slow           answers and watch events take `seconds` longer; counts nothing
              mute           watches send no bookmarks; counts nothing
              repeat         a watch that is opened sends the last changes of objects once more; counts nothing
              crash-before, crash-after   the process dies, and the request is not sent, or takes effect
              recreate, snatch, vanish    the pod is recreated, bound by somebody else or deleted just before the request arrives
    what      one of CALLS, or "" for any but leases
    plural    the resource, or "" for any
    process   number of the replica, None for any
    """

    how: str
    what: str = ""
    begin: float = 0.0
    end: float = 1e9
    count: int = 1
    plural: str = ""
    process: int | None = None
    seconds: float = 1.0
    skip: int = 0

    def applies(self, process: int, what: str, plural: str, now: float) -> bool:
        return (
            self.begin <= now < self.end
            and self.process in (None, process)
            and (self.what == what if self.what else what != "lease")
            and self.plural in ("", plural)
        )


LASTING = ("slow", "mute", "repeat")
MEDDLING = ("recreate", "snatch", "vanish")


@dataclass
class Faults:
    """The faults of a scenario while it runs."""

    faults: tuple[Fault, ...] = ()
    met: dict[int, int] = field(default_factory=dict)
    """by number of a fault, the requests that it applied to"""

    def take(self, process: int, what: str, plural: str, now: float) -> Fault | None:
        """The fault that a request meets, which is used up by it."""
        for number, fault in enumerate(self.faults):
            if fault.how not in LASTING and fault.applies(process, what, plural, now):
                met = self.met[number] = self.met.get(number, 0) + 1
                if fault.skip < met <= fault.skip + fault.count:
                    return fault
        return None

    def lasting(self, how: str, process: int, plural: str, now: float, what: str = "watch") -> float:
        """Seconds of the faults of this sort that last now; 0 if there is none."""
        return max((f.seconds for f in self.faults if f.how == how and f.applies(process, what, plural, now)), default=0.0)


def about(method: str, place) -> str:
    """Which of CALLS a request is, or "other"."""
    plural = place.kind.plural
    if plural in ("leases", "events"):
        return plural.removesuffix("s")
    if method == "GET":
        return "look" if place.name else "list"
    if plural == "configmaps":
        return "record"
    if place.sub == "binding":
        return "bind"
    if plural == "pods":
        return "evict" if method == "DELETE" else "status"
    return "volume" if plural in ("persistentvolumes", "persistentvolumeclaims") else "other"
