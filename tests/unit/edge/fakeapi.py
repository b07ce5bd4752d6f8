"""An API server for one process: lists what it was given, takes every binding and every lease, and never has any news."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

from stowplan.edge.kube.transport import Answer, UnsentError


class FakeApi:
    """A `Transport`. `objects`: Kubernetes objects by the path under which they are listed."""

    def __init__(self, objects=None, lease=True):
        self.objects, self.lease = objects or {}, lease
        self.bound, self.calls = {}, []
        self.binding, self.leased = asyncio.Event(), asyncio.Event()
        self.reachable = True

    async def request(self, request):
        await asyncio.sleep(0)
        self.calls.append((request.method, request.path))
        if not self.reachable:
            raise UnsentError("connection refused")
        if "/leases" in request.path:
            return self._lease(request)
        if request.path.endswith("/binding"):
            self.bound[request.path.split("/")[-2]] = json.loads(request.body)["target"]["name"]
            self.binding.set()
            return Answer(201, b"{}")
        if request.method == "GET":
            return Answer(
                200, json.dumps({"metadata": {"resourceVersion": "1"}, "items": self.objects.get(request.path, [])}).encode()
            )
        return Answer(201, request.body or b"{}")

    def _lease(self, request):
        if not self.lease:
            return Answer(403, b'{"kind": "Status", "code": 403, "message": "forbidden"}')
        if request.method == "GET":
            return Answer(404, b'{"kind": "Status", "code": 404}')
        item = json.loads(request.body)
        self.leased.set()
        item["metadata"] = {"name": "stowplan", "namespace": "x", "resourceVersion": "1"}
        return Answer(200, json.dumps(item).encode())

    @asynccontextmanager
    async def stream(self, path, query, *, silence):  # noqa: ARG002 - as the transport has it
        async def lines():
            await asyncio.sleep(3600)
            yield b""

        if not self.reachable:
            raise UnsentError("connection refused")
        yield Answer(200), lines()


class Stuck(FakeApi):
    """Says when it is asked to bind, and never answers."""

    async def request(self, request):
        if request.path.endswith("/binding"):
            print("binding", flush=True)
            await asyncio.sleep(3600)
        return await super().request(request)
