"""Watches pods for the whole of a test: each is bound once, to one node, and no node takes more than it has room for."""

from collections import Counter

from controlplane.client import Client
from controlplane.watching import Watching

ROOM = 80
"""pods of 100m CPU on a node of objects.node"""


class Bindings:
    """Context manager. `nodes` holds where each pod was seen, by uid."""

    def __init__(self, client: Client):
        self.client = client
        self.nodes: dict[str, set[str]] = {}
        self.watching = Watching(client, "pods", self.see, fieldSelector="spec.nodeName!=")

    def see(self, event: str, pod) -> None:
        if event != "DELETED":
            self.nodes.setdefault(pod["metadata"]["uid"], set()).add(pod["spec"]["nodeName"])

    def __enter__(self):
        self.watching.start()
        return self

    def __exit__(self, *_):
        self.watching.stop()

    def check(self, count: int) -> None:
        """So many pods exist, all of them are bound, and none was ever seen on two nodes."""
        pods = self.client.list("pods", "default")
        assert len(pods) == len({each["metadata"]["uid"] for each in pods}) == count
        assert all(each["spec"].get("nodeName") for each in pods)
        assert all(len(where) == 1 for where in self.nodes.values())
        taken = Counter(each["spec"]["nodeName"] for each in pods)
        assert max(taken.values()) <= ROOM
