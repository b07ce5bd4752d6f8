"""An API server with ConfigMaps and Events, in virtual or real time, as a transport."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import msgspec

from stowplan.edge.kube.transport import Answer, UnansweredError, UnsentError

FOLDER = "/api/v1/namespaces/s/configmaps"


def refusal(status, message):
    return Answer(status, msgspec.json.encode({"kind": "Status", "code": status, "message": message}))


class ConfigMaps:
    """Those of the namespace `s`. What is done to them is told to all watches; `down` answers nobody."""

    def __init__(self):
        self.objects, self.version = {}, 10
        self.events, self.calls, self.watches = [], [], set()
        self.down = False
        self.gone = False
        """the next watch is told that its version is forgotten"""

    # What users do

    def put(self, name, data, **metadata):
        self.version += 1
        known = self.objects.get(name)
        uid = known["metadata"]["uid"] if known else f"uid-{self.version}"
        if known:  # as an edit leaves them
            metadata = {"annotations": known["metadata"].get("annotations", {})} | metadata
        head = {"name": name, "namespace": "s", "uid": uid, "resourceVersion": str(self.version)}
        self.objects[name] = {"metadata": metadata | head, "data": data}
        self.tell("MODIFIED" if known else "ADDED", name, self.objects[name])

    def delete(self, name):
        self.version += 1
        item = self.objects.pop(name)
        item["metadata"]["resourceVersion"] = str(self.version)
        self.tell("DELETED", name, item)

    def tell(self, kind, name, item):
        for queue, wanted in self.watches:
            if wanted == name:
                queue.put_nowait(msgspec.json.encode({"type": kind, "object": item}))

    def break_watches(self):
        for queue, _ in self.watches:
            queue.put_nowait(UnansweredError("connection reset"))

    def told(self):
        """Reasons, types and notes of the Events."""
        return [(event["reason"], event["type"], event["note"]) for event in self.events]

    # The transport

    def takes(self, path):
        return path.startswith(FOLDER) or path.endswith("/events")

    async def request(self, request):
        await asyncio.sleep(0.001)
        if self.down:
            raise UnsentError("connection refused")
        self.calls.append((request.method, request.path))
        body = msgspec.json.decode(request.body) if request.body else {}
        if request.path.endswith("/events"):
            self.events.append(body)
            return Answer(201, b"{}")
        name = request.path.removeprefix(FOLDER).strip("/")
        if request.method == "GET" and not name:
            return self._list(request.query["fieldSelector"].removeprefix("metadata.name="))
        return self._object(request.method, name, body)

    def _list(self, wanted):
        items = [self.objects[wanted]] if wanted in self.objects else []
        return Answer(200, msgspec.json.encode({"metadata": {"resourceVersion": str(self.version)}, "items": items}))

    def _object(self, method, name, body):
        known = self.objects.get(name)
        if method == "POST":
            head = body["metadata"]
            self.put(head["name"], body["data"], labels=head.get("labels", {}), annotations=head.get("annotations", {}))
            return Answer(201, b"{}")
        if known is None:
            return refusal(404, f'configmaps "{name}" not found')
        if method == "GET":
            return Answer(200, msgspec.json.encode(known))
        version = body.get("metadata", {}).get("resourceVersion")
        if version is not None and version != known["metadata"]["resourceVersion"]:
            return refusal(409, "the object has been modified")
        notes = known["metadata"].get("annotations", {}) | body.get("metadata", {}).get("annotations", {})
        self.put(name, body["data"] if method == "PUT" else known["data"] | body["data"], annotations=notes)
        return Answer(200, msgspec.json.encode(self.objects[name]))

    @asynccontextmanager
    async def stream(self, path, query, *, silence):  # noqa: ARG002 - as the transport has it
        if self.down:
            raise UnsentError("connection refused")
        watch = (asyncio.Queue(), query["fieldSelector"].removeprefix("metadata.name="))
        if self.gone:
            self.gone = False
            watch[0].put_nowait(msgspec.json.encode({"type": "ERROR", "object": {"kind": "Status", "code": 410}}))
        elif int(query["resourceVersion"]) < self.version and watch[1] in self.objects:  # as much as is needed of the past
            watch[0].put_nowait(msgspec.json.encode({"type": "MODIFIED", "object": self.objects[watch[1]]}))
        self.watches.add(watch)

        async def lines():
            while True:
                line = await watch[0].get()
                if isinstance(line, Exception):
                    raise line
                yield line

        try:
            yield Answer(200), lines()
        finally:
            self.watches.discard(watch)
