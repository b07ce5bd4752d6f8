"""List and watch for the stand-ins: a thread that hands on every object of one kind, however often the API server dies."""

import contextlib
import http.client
import socket
import threading

import msgspec

from controlplane.client import ApiError, Client, with_query

RETRY = 0.1
"""seconds between attempts while the API server is away"""


class Watching:
    """Calls `handle(type, object)` in a thread of its own; `type` is ADDED (also for what was listed), MODIFIED or DELETED.

    What is deleted while the API server is away is not told: the stand-ins act on objects that exist.
    """

    def __init__(self, client: Client, resource: str, handle, **query):
        self.client, self.resource, self.handle, self.query = client, resource, handle, query
        self.connection: http.client.HTTPSConnection | None = None
        self.stopped = threading.Event()
        self.synced = threading.Event()
        self.thread = threading.Thread(target=self.run, name=f"watch {resource}", daemon=True)

    def start(self, timeout: float = 30.0) -> None:
        """Returns when what exists was handled."""
        self.thread.start()
        if not self.synced.wait(timeout):
            raise TimeoutError(f"{self.resource} are not listed after {timeout:.0f} s")

    def stop(self) -> None:
        self.stopped.set()
        connection = self.connection
        if connection is not None and connection.sock is not None:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join(10)

    def run(self) -> None:
        while not self.stopped.is_set():
            with contextlib.suppress(OSError, ValueError, http.client.HTTPException, ApiError):
                version = self.list()
                self.synced.set()
                self.watch(version)
            self.stopped.wait(RETRY)

    def list(self) -> str:
        path = self.client.resource(self.resource).path()
        listed = self.client.request("GET", path, **self.query)
        for item in listed["items"]:
            self.handle("ADDED", item)
        return listed["metadata"]["resourceVersion"]

    def watch(self, version: str) -> None:
        """Until the server closes the stream or reports an error."""
        path = self.client.resource(self.resource).path()
        query = self.query | {"watch": "true", "resourceVersion": version, "allowWatchBookmarks": "true"}
        self.connection = self.client.connect(timeout=90)
        with contextlib.closing(self.connection):
            self.connection.request("GET", with_query(path, query), None, self.client.headers())
            response = self.connection.getresponse()
            while response.status == http.HTTPStatus.OK and not self.stopped.is_set():
                line = response.readline()
                event = msgspec.json.decode(line) if line else {"type": "ERROR"}
                if event["type"] == "ERROR":
                    return
                if event["type"] != "BOOKMARK":
                    self.handle(event["type"], event["object"])
